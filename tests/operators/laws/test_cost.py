"""One apply costs its delta at any size of playbook: steps, look-ups and copies are counted, no time is measured."""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

import pytest

from operators.chunks import flat
from operators.combine import apply
from operators.facts import Count, Delta, Evidence, FoldCover, PersonFact, Supersession, Text, Vote
from operators.playbook import Playbook

SMALL, LARGE = 100, 10_000


class Name(str):
    """A bullet's identity that counts how often it is hashed, which each look-up in a map must do."""

    __slots__ = ()
    hashed = 0

    def __hash__(self) -> int:
        Name.hashed += 1
        return str.__hash__(self)


def bullets(count: int) -> Delta:
    names = [f"b{number}" for number in range(count)]
    return Delta(
        texts=frozenset(Text(name, False, name, "OTHERS", "") for name in names),
        evidence=frozenset(Evidence(name, f"t{name}", 1, "s") for name in names),
        votes=frozenset(Vote(name, f"t{name}", False) for name in names),
    )


PLAYBOOKS = {size: apply(Playbook(), bullets(size)) for size in (SMALL, LARGE)}

CHANGES = {
    "votes": Delta(votes=frozenset(Vote(Name(f"b{n}"), f"new {n}", n % 2 == 0) for n in range(20))),
    "known votes": Delta(votes=frozenset(Vote(Name(f"b{n}"), f"tb{n}", False) for n in range(20))),
    "changed votes": Delta(votes=frozenset(Vote(Name(f"b{n}"), f"tb{n}", True) for n in range(20))),
    "evidence": Delta(evidence=frozenset(Evidence(Name(f"b{n}"), f"new {n}", 1, "s") for n in range(20))),
    "a removal": Delta(
        covered_evidence=frozenset(Evidence(Name(f"b{n}"), f"tb{n}", 1, "s") for n in range(20)),
        covered_votes=frozenset(Vote(Name(f"b{n}"), f"tb{n}", False) for n in range(20)),
        covered_folds=frozenset(FoldCover(Name(f"b{n}"), 1) for n in range(20)),
    ),
    "records": Delta(
        texts=frozenset(Text(Name(f"b{n}"), False, "", "OTHERS", "") for n in range(20)),
        counts=frozenset(Count(Name(f"b{n}"), "import 1", 1, 1) for n in range(20)),
        supersessions=frozenset(Supersession(Name(f"b{n}"), 1, Name(f"b{n + 1}")) for n in range(20)),
        people=frozenset(PersonFact(Name(f"b{n}"), 1, "pin", "said", "OTHERS") for n in range(20)),
    ),
    "new bullets": Delta(texts=frozenset(Text(Name(f"new {n}"), False, "", "OTHERS", "") for n in range(20))),
}


def steps(playbook: Playbook, delta: Delta) -> tuple[int, int]:
    """Lines run and names hashed by one apply."""
    lines = 0

    def trace(frame: FrameType, event: str, arg: Any) -> Any:
        nonlocal lines
        lines += event == "line"
        return trace

    before, hashed = sys.gettrace(), Name.hashed
    sys.settrace(trace)
    try:
        apply(playbook, delta)
    finally:
        sys.settrace(before)
    return lines, Name.hashed - hashed


@pytest.mark.parametrize("change", CHANGES)
def test_takes_no_more_steps_in_a_playbook_a_hundred_times_as_large(change: str) -> None:
    delta = CHANGES[change]
    small, large = (steps(PLAYBOOKS[size], delta) for size in (SMALL, LARGE))
    assert large[0] <= small[0] + 20
    assert large[1] <= small[1] + 20


@pytest.mark.parametrize("change", CHANGES)
def test_leaves_every_record_alone_that_it_says_nothing_of(change: str) -> None:
    before, delta = PLAYBOOKS[LARGE], CHANGES[change]
    after = apply(before, delta)
    named = {f"b{n}" for n in range(20)}
    for old, new in ((before.records, after.records), (before.tallies, after.tallies)):
        kept: dict[str, Any] = dict(old.items())
        assert all(new[bullet] is value for bullet, value in kept.items() if bullet not in named)


def test_copies_no_open_fact_but_a_few_for_each_new_one() -> None:
    """Most windows copy next to nothing; now and then the dicts are merged, as in a log-structured tree."""
    playbook, copied = PLAYBOOKS[LARGE], 0
    open_facts = len(flat(playbook.votes))
    for window in range(200):
        before = {id(chunk) for chunk in playbook.votes}
        playbook = apply(
            playbook, Delta(votes=frozenset(Vote(f"b{n}", f"window {window}, {n}", False) for n in range(50)))
        )
        fresh = sum(len(chunk) for chunk in playbook.votes if id(chunk) not in before)
        assert fresh >= 50
        copied += fresh
    assert len(flat(playbook.votes)) == open_facts + 200 * 50
    assert copied < 200 * 50 * 25


def test_an_older_state_costs_nothing_to_keep() -> None:
    before = PLAYBOOKS[LARGE]
    after = apply(before, CHANGES["votes"])
    assert after.records is before.records
    assert after.evidence is before.evidence
    assert after.votes[0] is before.votes[0]
