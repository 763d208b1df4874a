"""Removals cover what they saw and nothing else: an observed-remove set."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from operators.combine import apply
from operators.facts import EMPTY, Count, Delta, Evidence, Supersession, Vote, merge
from operators.fold import fold
from operators.playbook import Playbook
from operators.view import removal, shown
from tests.operators.laws.reference import Reference, as_shown
from tests.operators.laws.strategies import deltas, known

START = apply(Playbook(), known())
LEARNED_AGAIN = Delta(evidence=frozenset({Evidence("a", "t9", 1, "s9")}))
VOTED_AGAIN = Delta(votes=frozenset({Vote("a", "t9", False)}))


def test_removes_the_bullet_alone() -> None:
    assert set(shown(apply(START, removal(START, ["a"], 1)))) == {"b", "c", "d"}


def test_removes_a_bullet_with_all_that_end_in_it() -> None:
    playbook = apply(START, Delta(supersessions=frozenset({Supersession("a", 1, "b"), Supersession("b", 1, "c")})))
    assert set(shown(apply(playbook, removal(playbook, ["c"], 1)))) == {"d"}


def test_a_later_supersession_does_not_bring_a_removed_chain_back() -> None:
    playbook = apply(START, Delta(supersessions=frozenset({Supersession("a", 1, "b")})))
    removed = apply(playbook, removal(playbook, ["b"], 1))
    for target in ("b", "c", "d"):
        moved = apply(removed, Delta(supersessions=frozenset({Supersession("a", 2, target)})))
        assert {"a", "b"}.isdisjoint(shown(moved))
        assert sum(bullet.traces for bullet in shown(moved).values()) == 2


def test_evidence_it_did_not_see_keeps_or_brings_back_the_bullet_in_any_order() -> None:
    cover = removal(START, ["a"], 1)
    for playbook in (
        apply(apply(START, cover), LEARNED_AGAIN),
        apply(apply(START, LEARNED_AGAIN), cover),
        apply(START, merge(cover, LEARNED_AGAIN)),
    ):
        assert shown(playbook)["a"].traces == 1


def test_a_vote_it_did_not_see_neither_keeps_nor_brings_back() -> None:
    cover = removal(START, ["a"], 1)
    assert "a" not in shown(apply(apply(START, cover), VOTED_AGAIN))
    assert "a" not in shown(apply(apply(START, VOTED_AGAIN), cover))


def test_a_lesson_learned_again_has_only_the_counts_that_were_not_covered() -> None:
    voted = apply(
        START,
        Delta(
            votes=frozenset({Vote("a", "t1", False), Vote("a", "t2", True)}),
            counts=frozenset({Count("a", "import 1", 5, 6)}),
        ),
    )
    assert (shown(voted)["a"].helpful, shown(voted)["a"].harmful) == (6, 7)
    again = apply(apply(apply(voted, removal(voted, ["a"], 1)), VOTED_AGAIN), LEARNED_AGAIN)
    assert (shown(again)["a"].helpful, shown(again)["a"].harmful) == (1, 0)


def test_naming_nothing_covers_nothing() -> None:
    assert removal(START, [], 1) == EMPTY


def test_covers_what_a_fold_in_the_meantime_has_counted() -> None:
    cover = removal(START, ["a"], 1)
    folded = fold(apply(START, VOTED_AGAIN), START, 1)
    assert set(shown(apply(folded, cover))) == {"b", "c", "d"}
    again = shown(apply(apply(folded, cover), LEARNED_AGAIN))["a"]
    assert (again.traces, again.helpful) == (1, 1)  # the vote was not seen, so it stands


def test_does_not_cover_what_was_folded_after_its_base() -> None:
    cover = removal(START, ["a"], 1)
    taught = apply(START, LEARNED_AGAIN)
    folded = fold(taught, taught, 2)
    assert "a" in shown(apply(folded, cover))


@given(deltas(max_size=20), deltas(), st.sets(st.integers(0, 3)), st.integers(0, 4))
def test_covers_what_it_saw_by_definition(delta: Delta, unseen: Delta, which: set[int], window: int) -> None:
    seen = apply(Playbook(), delta)
    live = sorted(shown(seen))
    names = [live[n] for n in which if n < len(live)]
    cover = removal(seen, names, window)
    reference = Reference(delta)
    reference.cover(reference.seen_by_removal(names))
    reference.add(unseen)
    assert as_shown(apply(apply(seen, cover), unseen)) == reference.shown()
    assert as_shown(apply(apply(seen, unseen), cover)) == reference.shown()
    unpinned = [name for name in names if not shown(seen)[name].pinned]
    assert set(unpinned).isdisjoint(shown(apply(seen, cover)))


@given(deltas(max_size=20), deltas(max_size=6))
def test_of_a_removal_and_its_replay_the_second_changes_nothing(delta: Delta, later: Delta) -> None:
    playbook = apply(Playbook(), delta)
    cover = removal(playbook, shown(playbook), 3)
    after = apply(apply(playbook, cover), later)
    assert apply(after, cover) is after
