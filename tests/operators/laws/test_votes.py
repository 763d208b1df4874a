"""Votes: whose they are, how two of one trace join, and what they cannot do."""

from __future__ import annotations

from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from operators.combine import apply
from operators.facts import Delta, Vote
from operators.playbook import Playbook
from operators.view import shown
from tests.operators.laws.strategies import BULLETS, deltas, known, votes

START = apply(Playbook(), known())
HELPFUL, HARMFUL = Vote("a", "t1", False), Vote("a", "t1", True)


def cast(*ballots: Vote) -> Delta:
    return Delta(votes=frozenset(ballots))


def counts(playbook: Playbook, bullet: str = "a") -> tuple[int, int]:
    live = shown(playbook)[bullet]
    return live.helpful, live.harmful


def test_five_helpful_and_one_harmful_count_as_such() -> None:
    ballots = [Vote("a", f"t{n}", n == 3) for n in range(6)]
    assert counts(apply(START, cast(*ballots))) == (5, 1)


@pytest.mark.parametrize("order", tuple(permutations((HELPFUL, HARMFUL, HELPFUL))))
def test_two_different_votes_of_one_trace_on_one_bullet_join_to_harmful(order: tuple[Vote, ...]) -> None:
    playbook = START
    for ballot in order:
        playbook = apply(playbook, cast(ballot))
    assert counts(playbook) == (0, 1)


@given(st.lists(votes, max_size=12))
def test_one_trace_counts_once_for_each_bullet(ballots: list[Vote]) -> None:
    live = shown(apply(START, cast(*ballots)))
    for bullet in BULLETS:
        harmful = {vote.trace for vote in ballots if vote.bullet == bullet and vote.harmful}
        helpful = {vote.trace for vote in ballots if vote.bullet == bullet} - harmful
        assert (live[bullet].helpful, live[bullet].harmful) == (len(helpful), len(harmful))


@given(deltas("texts", "votes", "counts"), deltas("votes", "counts"))
def test_votes_and_imported_counts_alone_make_nothing_live(one: Delta, other: Delta) -> None:
    assert shown(apply(apply(Playbook(), one), other)) == {}


@given(deltas(max_size=16), deltas("votes", max_size=16))
def test_votes_change_no_bullet_but_in_its_counts(delta: Delta, ballots: Delta) -> None:
    def without_counts(playbook: Playbook) -> dict[str, tuple[object, ...]]:
        return {name: (b.content, b.section, b.raw, b.pinned, b.traces) for name, b in shown(playbook).items()}

    before = apply(Playbook(), delta)
    assert without_counts(apply(before, ballots)) == without_counts(before)


@pytest.mark.parametrize(
    ("known_votes", "covered", "expected"),
    [
        ((HELPFUL,), (HELPFUL,), (0, 0)),
        ((HARMFUL,), (HARMFUL,), (0, 0)),
        ((HELPFUL, HARMFUL), (HELPFUL, HARMFUL), (0, 0)),
        ((HELPFUL, HARMFUL), (HELPFUL,), (0, 1)),  # the removal had seen the helpful vote only
        ((HELPFUL, HARMFUL), (HARMFUL,), (1, 0)),  # likewise: what it did not see counts
        ((HELPFUL,), (HARMFUL,), (1, 0)),
        ((HARMFUL,), (HELPFUL,), (0, 1)),
        ((HELPFUL,), (Vote("a", "t2", False),), (1, 0)),
    ],
)
def test_a_covered_vote_does_not_count_whenever_it_comes(
    known_votes: tuple[Vote, ...], covered: tuple[Vote, ...], expected: tuple[int, int]
) -> None:
    cover = Delta(covered_votes=frozenset(covered))
    assert counts(apply(apply(START, cast(*known_votes)), cover)) == expected
    assert counts(apply(apply(START, cover), cast(*known_votes))) == expected
