"""Supersession: chains, circles and ties, and where the counts go."""

from __future__ import annotations

from itertools import permutations

from hypothesis import given
from hypothesis import strategies as st

from operators.combine import apply
from operators.facts import Delta, Evidence, Supersession, Vote
from operators.playbook import Playbook
from operators.view import chains, shown
from tests.operators.laws.strategies import BULLETS, deltas, known

VOTES = {"a": (1, 0), "b": (0, 2), "c": (4, 0), "d": (0, 8)}
"""So many votes, helpful and harmful, that a sum tells whose they are."""

START = apply(
    apply(Playbook(), known()),
    Delta(
        votes=frozenset(
            Vote(bullet, f"{bullet}{n}", harmful > 0)
            for bullet, (helpful, harmful) in VOTES.items()
            for n in range(helpful + harmful)
        )
    ),
)


def after(*edges: tuple[str, int, str]) -> Playbook:
    return apply(START, Delta(supersessions=frozenset(Supersession(*edge) for edge in edges)))


def sums(playbook: Playbook) -> dict[str, int]:
    """Each live bullet's counts, as the sum of the bits of :data:`VOTES`."""
    return {name: bullet.helpful + bullet.harmful for name, bullet in shown(playbook).items()}


def test_update_leaves_the_new_bullet_with_the_counts_of_both() -> None:
    live = shown(after(("a", 1, "b")))
    assert set(live) == {"b", "c", "d"}
    assert (live["b"].helpful, live["b"].harmful) == (1, 2)
    assert live["b"].content == "b, wording 1"


def test_merge_sums_all_that_it_replaces() -> None:
    assert sums(after(("a", 1, "d"), ("b", 1, "d"), ("c", 1, "d"))) == {"d": 15}


def test_a_chain_is_followed_to_its_end_whatever_its_order_in_time() -> None:
    for windows in permutations((1, 2, 3)):
        edges = zip("abc", windows, "bcd", strict=True)
        assert sums(after(*edges)) == {"d": 15}


def test_the_newest_of_two_updates_is_followed_and_both_live() -> None:
    assert sums(after(("a", 1, "b"), ("a", 2, "c"))) == {"b": 2, "c": 5, "d": 8}
    assert sums(after(("a", 2, "b"), ("a", 1, "c"))) == {"b": 3, "c": 4, "d": 8}


def test_a_tie_goes_by_identity() -> None:
    assert sums(after(("a", 1, "b"), ("a", 1, "c"))) == {"b": 2, "c": 5, "d": 8}


def test_in_a_circle_the_target_of_the_newest_survives() -> None:
    assert sums(after(("a", 1, "b"), ("b", 2, "a"))) == {"a": 3, "c": 4, "d": 8}
    assert sums(after(("a", 2, "b"), ("b", 1, "a"))) == {"b": 3, "c": 4, "d": 8}
    assert sums(after(("a", 1, "b"), ("b", 3, "c"), ("c", 2, "a"))) == {"c": 7, "d": 8}
    assert sums(after(("d", 9, "a"), ("a", 1, "b"), ("b", 1, "c"), ("c", 1, "a"))) == {"c": 15}


def test_a_bullet_does_not_supersede_itself() -> None:
    assert sums(after(("a", 1, "a"))) == VALUES
    assert sums(after(("a", 2, "a"), ("a", 1, "b"))) == {"b": 3, "c": 4, "d": 8}


VALUES = {bullet: helpful + harmful for bullet, (helpful, harmful) in VOTES.items()}


def test_evidence_and_votes_of_a_superseded_bullet_keep_counting_for_its_successor() -> None:
    late = Delta(votes=frozenset({Vote("a", "t9", False)}), evidence=frozenset({Evidence("a", "t9", 1, "s")}))
    live = shown(apply(after(("a", 1, "b")), late))
    assert "a" not in live
    assert (live["b"].helpful, live["b"].traces) == (2, 3)


def test_what_is_superseded_keeps_a_successor_without_evidence_alive() -> None:
    worded = Delta(texts=known(("b",)).texts, supersessions=frozenset({Supersession("a", 1, "b")}))
    assert set(shown(apply(apply(Playbook(), known(("a",))), worded))) == {"b"}


@given(deltas("supersessions", max_size=12))
def test_no_supersession_loses_or_doubles_a_count(delta: Delta) -> None:
    playbook = apply(START, delta)
    assert sum(sums(playbook).values()) == 15
    members = chains(playbook)
    assert sums(playbook) == {
        end: VALUES[end] + sum(VALUES[bullet] for bullet in members.get(end, ())) for end in sums(playbook)
    }
    assert sum(bullet.traces for bullet in shown(playbook).values()) == len(BULLETS)


@given(st.permutations(BULLETS), st.lists(st.integers(0, 3), min_size=4, max_size=4))
def test_a_circle_of_all_leaves_one(order: list[str], windows: list[int]) -> None:
    edges = list(zip(order, windows, [*order[1:], order[0]], strict=True))
    newest = max(edges, key=lambda edge: (edge[1], edge[2]))
    assert sums(after(*edges)) == {newest[2]: 15}
