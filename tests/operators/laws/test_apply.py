"""Apply is a homomorphism from merge, so no order, grouping, copy or replay of deltas can be told from another."""

from __future__ import annotations

from random import Random
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from rpds import HashTrieMap

from operators.chunks import flat
from operators.combine import apply
from operators.facts import EMPTY, Delta, Vote, merge
from operators.fold import rebuilt
from operators.playbook import Playbook
from operators.scan import scan
from operators.view import shown
from tests.operators.laws.reference import Reference, as_shown
from tests.operators.laws.strategies import FACTS, delta_of, deltas, facts_of, playbooks


def inside(playbook: Playbook) -> dict[str, Any]:
    """All of a playbook but its display ids, as plain dicts: equality that does not rest on Playbook's own."""
    return {
        "records": dict(playbook.records.items()),
        "evidence": dict(flat(playbook.evidence)),
        "votes": dict(flat(playbook.votes)),
        "tallies": dict(playbook.tallies.items()),
    }


@given(playbooks(), deltas(), deltas())
def test_applying_two_deltas_is_applying_their_merge(playbook: Playbook, a: Delta, b: Delta) -> None:
    stepwise, at_once = apply(apply(playbook, a), b), apply(playbook, merge(a, b))
    assert inside(stepwise) == inside(at_once)
    assert stepwise == at_once
    assert shown(stepwise) == shown(at_once)


@given(playbooks(), st.lists(deltas(max_size=6), min_size=1, max_size=7), st.randoms(use_true_random=False))
def test_any_order_and_any_tree_of_merges_give_one_playbook(
    playbook: Playbook, parts: list[Delta], random: Random
) -> None:
    in_order = playbook
    for part in parts:
        in_order = apply(in_order, part)
    shuffled = [*parts, *random.choices(parts, k=2)]
    random.shuffle(shuffled)
    growing = list(shuffled)
    while len(growing) > 1:
        left = growing.pop(random.randrange(len(growing)))
        growing.insert(random.randrange(len(growing)), merge(left, growing.pop(random.randrange(len(growing)))))
    by_tree, by_scan = apply(playbook, growing[0]), apply(playbook, scan(shuffled, merge).value)
    assert inside(in_order) == inside(by_tree) == inside(by_scan)
    assert shown(in_order) == shown(by_tree) == shown(by_scan)


@given(playbooks(), deltas(), deltas(), st.randoms(use_true_random=False))
def test_copies_and_replays_give_the_very_same_object(
    playbook: Playbook, delta: Delta, later: Delta, random: Random
) -> None:
    after = apply(apply(playbook, delta), later)
    facts = facts_of(merge(delta, later))
    assert apply(after, delta) is after
    assert apply(after, delta_of(random.sample(facts, random.randint(0, len(facts))))) is after


@given(playbooks())
def test_the_empty_delta_changes_nothing(playbook: Playbook) -> None:
    assert apply(playbook, EMPTY) is playbook


@given(playbooks(), deltas(), deltas())
def test_an_older_playbook_stays_what_it_was(playbook: Playbook, a: Delta, b: Delta) -> None:
    before, seen = inside(playbook), shown(playbook)
    after = apply(playbook, a)
    middle = inside(after)
    apply(after, b)
    apply(playbook, b)
    assert inside(playbook) == before
    assert shown(playbook) == seen
    assert inside(after) == middle


@given(playbooks(), deltas())
def test_display_ids_are_kept_and_say_nothing_of_equality(playbook: Playbook, delta: Delta) -> None:
    ids = HashTrieMap({"a": "misc-00001"})
    named = replace(playbook, ids=ids)
    after = apply(named, delta)
    assert after.ids == ids
    assert after == apply(playbook, delta)
    assert {name: replace(bullet, id="") for name, bullet in shown(after).items()} == shown(apply(playbook, delta))


@given(playbooks(), deltas())
def test_a_playbook_equals_one_with_the_same_facts_only(playbook: Playbook, delta: Delta) -> None:
    after = apply(playbook, delta)
    assert (after == playbook) == (inside(after) == inside(playbook))


def test_playbooks_that_count_the_same_are_not_the_same() -> None:
    for field in ("evidence", "votes", "texts", "counts"):
        one, other = (apply(Playbook(), delta_of([(field, fact)])) for fact in FACTS[field][:2])
        assert one != other, field
        assert one == apply(Playbook(), delta_of([(field, FACTS[field][0])]))
    by_trace = [apply(Playbook(), Delta(votes=frozenset({Vote("a", trace, False)}))) for trace in ("t1", "t2")]
    assert by_trace[0].tallies == by_trace[1].tallies
    assert by_trace[0] != by_trace[1]


@given(playbooks(), deltas())
def test_running_tallies_are_those_of_a_count_from_scratch(playbook: Playbook, delta: Delta) -> None:
    after = apply(playbook, delta)
    again = rebuilt(dict(flat(after.evidence)), dict(flat(after.votes)))
    assert {b: t for b, t in after.tallies.items() if any(t)} == {b: t for b, t in again.tallies.items() if any(t)}


@given(st.lists(deltas(max_size=16), max_size=4))
def test_what_is_shown_is_what_the_facts_say_by_definition(parts: list[Delta]) -> None:
    playbook, reference = Playbook(), Reference()
    for part in parts:
        playbook = apply(playbook, part)
        reference.add(part)
        assert as_shown(playbook) == reference.shown()
