"""Folding agrees with a reference that never folds, loses and doubles nothing, and keeps a prompt's size bounded."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from operators.chunks import flat
from operators.combine import apply
from operators.facts import Count, Delta, Evidence, PersonFact, Supersession, Text, Vote, merge
from operators.fold import fold
from operators.playbook import Playbook
from operators.view import removal, shown
from tests.operators.laws.history import BETWEEN, LEARNERS, Action, History, random_windows
from tests.operators.laws.reference import as_shown
from tests.operators.laws.strategies import deltas, known

START = apply(Playbook(), known())
AGAIN = Delta(evidence=frozenset({Evidence("a", "t9", 1, "s9")}))

_LEARNING = {"add": 4, "update": 4, "merge": 2, "refine": 1, "remove": 3, "vote": 8, "carry": 2, "keep": 1, "evict": 1}
_MIXES = {
    "learning": _LEARNING,
    "people": {**_LEARNING, "import": 1, "person": 2},
    "rollbacks": {**_LEARNING, "import": 1, "person": 1, "rollback": 1},
    "updates": {"add": 1, "update": 10, "merge": 6, "refine": 4, "remove": 1, "vote": 4},
    "removals": {**_LEARNING, "remove": 10, "evict": 3},
}


def edges(*each: tuple[str, int, str]) -> Delta:
    return Delta(supersessions=frozenset(Supersession(*edge) for edge in each))


def cast(*votes: Vote) -> Delta:
    return Delta(votes=frozenset(votes))


@st.composite
def _short(draw: st.DrawFn) -> tuple[History, list[list[Action]]]:
    max_staleness = draw(st.integers(0, 2))
    history = History(max_staleness, draw(st.integers(max_staleness + 2, 5)), draw(st.integers(1, 4)))
    number = st.integers(0, 23)
    action = st.tuples(st.sampled_from((*LEARNERS, "evict", *BETWEEN)), number, number)
    return history, draw(st.lists(st.lists(action, max_size=4), max_size=14))


@given(_short())
def test_agrees_on_short_histories(drawn: tuple[History, list[list[Action]]]) -> None:
    history, windows = drawn
    history.run(windows)


@pytest.mark.timeout(600)
@given(st.sampled_from(sorted(_MIXES)), st.integers(0, 2), st.integers(0, 6), st.integers(1, 20), st.integers(0, 2**64))
def test_agrees_on_long_histories(mix: str, max_staleness: int, fold_every: int, fold_after: int, seed: int) -> None:
    random = Random(seed)
    history = History(max_staleness, max_staleness + 2 + fold_every, fold_after)
    history.run(random_windows(random, 1 + int(120 * random.random() ** 2), _MIXES[mix]))


@given(st.integers(0, 2), st.integers(0, 3), st.integers(1, 6), st.integers(0, 2**64), st.sampled_from(sorted(_MIXES)))
def test_what_is_left_after_quiet_windows_is_bounded_by_the_bullets(
    max_staleness: int, fold_every: int, fold_after: int, seed: int, mix: str
) -> None:
    random = Random(seed)
    history = History(max_staleness, max_staleness + 2 + fold_every, fold_after)
    history.run(random_windows(random, random.randint(1, 25), _MIXES[mix]))
    history.run([[]] * (fold_after + 4 * history.fold_every + max_staleness))
    playbook = history.state.now.playbook
    decided = {bullet: record for bullet, record in playbook.records.items() if record.person is not None}
    led_to = {record.successor.by for record in decided.values() if record.successor is not None}
    assert set(playbook.records) <= {*shown(playbook), *decided, *led_to}
    assert not flat(playbook.evidence)
    assert not flat(playbook.votes)
    assert not dict(playbook.tallies.items())
    assert not any(record.counts or record.covered_counts for record in playbook.records.values())


def test_votes_and_updates_without_end_do_not_make_it_grow() -> None:
    sizes = []
    history = History(1, 5, 5)
    for number in range(120):
        history.run([[("update", 0, number), ("vote", number, 2), ("vote", number + 1, 3), ("add", number, 1)]])
        playbook = history.state.now.playbook
        sizes.append(len(playbook.records) + len(flat(playbook.evidence)) + len(flat(playbook.votes)))
    assert max(sizes[60:]) <= max(sizes[:60])


def test_a_bullet_updated_in_every_window_does_not_leave_all_it_was() -> None:
    playbook, anchors = Playbook(), [Playbook()]
    for number in range(1, 200):
        name, before = f"b{number:03d}", f"b{number - 1:03d}"
        taught = Delta(
            texts=frozenset({Text(name, False, name, "OTHERS", "")}),
            evidence=frozenset({Evidence(name, f"t{number}", 1, "s")}),
            votes=frozenset({Vote(before, f"t{number}", False)}),
        )
        playbook = apply(playbook, merge(taught, edges((before, number - 1, name)) if number > 1 else Delta()))
        anchors.append(playbook)
        if number % 5 == 0:
            playbook = anchors[-1] = fold(playbook, anchors[-3], number - 1, after=10)
            assert len(playbook.records) <= 20
    live = shown(playbook)
    assert {name: (bullet.helpful, bullet.traces) for name, bullet in live.items()} == {"b199": (198, 199)}


@given(deltas(max_size=20), deltas(max_size=8), st.integers(0, 6), st.integers(1, 4))
def test_changes_nothing_that_is_shown_and_is_deterministic(old: Delta, later: Delta, window: int, after: int) -> None:
    anchor = apply(START, old)
    playbook = apply(anchor, later)
    folded = fold(playbook, anchor, window, after=after)
    assert as_shown(folded) == as_shown(playbook)
    assert fold(playbook, anchor, window, after=after) == folded


@pytest.mark.parametrize("trace", ["t0", "t9"])
def test_takes_only_what_the_anchor_holds(trace: str) -> None:
    later = Delta(
        evidence=frozenset({Evidence("a", trace, 2, "s0")}),
        votes=frozenset({Vote("a", "t9", False)}),
        counts=frozenset({Count("a", "import 1", 0, 7)}),
    )
    folded = fold(apply(START, later), START, 1)
    left = shown(apply(folded, removal(START, ["a"], 1)))["a"]
    assert (left.traces, left.helpful, left.harmful) == (1, 1, 7)


def test_loses_no_open_count_of_a_bullet_that_could_be_dropped() -> None:
    anchor = apply(START, edges(("a", 1, "b")))
    playbook = apply(anchor, Delta(counts=frozenset({Count("a", "import 1", 5, 7)})))
    assert as_shown(fold(playbook, anchor, 9, after=2)) == as_shown(playbook)


def test_a_vote_that_joined_one_of_the_anchor_is_not_taken_with_it() -> None:
    anchor = apply(START, cast(Vote("a", "t1", False)))
    folded = fold(apply(anchor, cast(Vote("a", "t1", True))), anchor, 1)
    assert (shown(folded)["a"].helpful, shown(folded)["a"].harmful) == (0, 1)
    again = shown(apply(apply(folded, removal(anchor, ["a"], 1)), AGAIN))["a"]
    assert (again.helpful, again.harmful) == (0, 1)  # the removal had not seen that the trace took its word back


def test_a_removal_from_before_covers_what_was_folded_since() -> None:
    cover = removal(START, ["a"], 1)
    assert set(shown(apply(fold(START, START, 1), cover))) == {"b", "c", "d"}


def test_a_removal_from_before_covers_what_was_dropped_since() -> None:
    playbook = apply(START, edges(("a", 1, "b")))
    folded = fold(playbook, playbook, 5, after=2)
    assert "a" not in folded.records
    assert set(shown(apply(folded, removal(playbook, ["b"], 5)))) == {"c", "d"}


def test_a_removal_that_comes_very_late_covers_all_that_is_folded_or_nothing() -> None:
    """What it saw and what it did not are one count by then, also where a bullet with newer facts was dropped."""
    early = fold(START, START, 3)
    late = fold(apply(early, merge(AGAIN, edges(("a", 1, "b")))), early, 5)
    mixed = fold(late, late, 9, after=2)
    assert "a" not in mixed.records
    for base, left in ((4, {"b", "c", "d"}), (9, {"c", "d"})):
        assert set(shown(apply(mixed, removal(apply(START, edges(("a", 1, "b"))), ["b"], base)))) == left
    assert set(shown(apply(late, removal(early, ["c", "d"], 3)))) == {"b"}  # nothing new was folded of these


def test_a_vote_cast_just_before_its_bullet_is_dropped_counts_and_a_later_one_does_not() -> None:
    anchor = apply(START, edges(("a", 1, "b")))
    voted = apply(anchor, cast(Vote("a", "t1", False)))
    waiting = fold(voted, anchor, 9, after=2)
    assert "a" in waiting.records
    dropped = fold(waiting, waiting, 12, after=2)
    assert "a" not in dropped.records
    later = apply(dropped, cast(Vote("a", "t2", False)))
    assert shown(waiting)["b"].helpful == shown(dropped)["b"].helpful == shown(later)["b"].helpful == 1
    assert not flat(fold(later, later, 15).votes)


def test_a_bullet_learned_again_after_it_was_dropped_is_one_of_its_own() -> None:
    playbook = apply(START, edges(("a", 1, "b")))
    dropped = fold(playbook, playbook, 9, after=2)
    again = shown(apply(dropped, merge(AGAIN, Delta(texts=known(("a",)).texts))))
    assert (again["a"].traces, again["b"].traces) == (1, 2)


@pytest.mark.parametrize("circle", [("a", "b", "c"), ("b", "c", "a"), ("c", "a", "b")])
def test_a_circle_keeps_its_end_when_its_newest_supersession_is_dropped(circle: tuple[str, str, str]) -> None:
    """The bullet whose newest supersession closes the circle goes first; the other edges alone would end elsewhere."""
    one, other, third = circle
    playbook = apply(START, edges((one, 1, other), (other, 1, third), (third, 2, one)))
    assert set(shown(playbook)) == {one, "d"}
    kept_open = Delta(evidence=frozenset({Evidence(other, "t9", 1, "s9")}))
    folded = fold(apply(playbook, kept_open), playbook, 9, after=2)
    assert third not in folded.records
    assert other in folded.records
    assert set(shown(folded)) == {one, "d"}
    assert set(shown(fold(folded, folded, 12, after=2))) == {one, "d"}


@pytest.mark.parametrize("late", ["a", "b", "c"])
def test_a_tie_stays_decided_when_the_bullet_it_went_to_is_dropped(late: str) -> None:
    playbook = apply(START, edges(("c", 1, "a"), ("d", 5, "c")))
    folded = fold(playbook, playbook, 6, after=4)
    assert "c" not in folded.records
    assert set(shown(folded)) == set(shown(playbook)) == {"a", "b"}
    later = edges(("d", 5, late))
    assert as_shown(apply(folded, later)) == as_shown(apply(playbook, later))


def test_insights_of_one_trace_on_either_side_of_a_fold_count_as_one_trace() -> None:
    second = Delta(evidence=frozenset({Evidence("a", "t0", 2, "s0")}))
    together = fold(apply(START, second), START, 1)
    assert shown(together)["a"].traces == 1
    carried = fold(START, START, 1, carried={"t0"})
    assert shown(apply(carried, second))["a"].traces == 1


def test_imported_counts_are_folded_and_leave_no_cover_behind() -> None:
    counts = frozenset({Count("a", "import 1", 3, 1)})
    imported = apply(START, Delta(counts=counts))
    folded = fold(imported, imported, 1)
    assert (shown(folded)["a"].helpful, shown(folded)["a"].harmful) == (3, 1)
    assert not folded.records["a"].counts
    covered = apply(apply(folded, removal(imported, ["a"], 1)), AGAIN)
    assert (shown(covered)["a"].helpful, shown(covered)["a"].harmful) == (0, 0)
    assert not fold(covered, covered, 4).records["a"].covered_counts


@pytest.mark.parametrize("kind", ["edit", "pin", "unpin", "remove"])
def test_a_bullet_that_a_person_decided_about_is_neither_dropped_nor_forgotten(kind: str) -> None:
    said = PersonFact("a", 1, kind, "as said", "OTHERS")  # type: ignore[arg-type]
    playbook = apply(START, merge(edges(("a", 1, "b")), Delta(people=frozenset({said}))))
    removed = apply(playbook, removal(playbook, shown(playbook), 1))
    folded = fold(removed, removed, 9, after=2)
    assert folded.records["a"].person == said
    assert as_shown(folded) == as_shown(removed)


def test_a_dead_bullet_is_forgotten_with_its_votes() -> None:
    removed = apply(apply(START, removal(START, ["a"], 1)), cast(Vote("a", "t1", True)))
    folded = fold(removed, removed, 3)
    assert "a" not in folded.records
    again = shown(apply(folded, merge(AGAIN, Delta(texts=known(("a",)).texts))))["a"]
    assert (again.traces, again.harmful) == (1, 0)


def test_a_dead_bullet_with_a_count_not_yet_folded_is_not_forgotten() -> None:
    removed = apply(START, removal(START, ["a"], 1))
    folded = fold(apply(removed, Delta(counts=frozenset({Count("a", "import 1", 5, 7)}))), removed, 3)
    assert (shown(apply(folded, AGAIN))["a"].helpful, shown(apply(folded, AGAIN))["a"].harmful) == (5, 7)


def test_a_dead_bullet_that_a_base_in_flight_shows_is_kept_for_evidence_that_may_come() -> None:
    removed = apply(START, removal(START, ["a"], 1))
    folded = fold(removed, START, 3)
    assert "a" not in shown(folded)
    assert shown(apply(folded, AGAIN))["a"].content == "a, wording 1"


@pytest.mark.parametrize("anchored", [True, False])
def test_a_dead_bullet_that_others_lead_to_is_kept(anchored: bool) -> None:
    removed = apply(START, removal(START, ["b"], 8))
    playbook = apply(removed, edges(("a", 8, "b")))
    taught = shown(fold(playbook, playbook if anchored else removed, 9, after=5))
    assert taught["b"].content == "b, wording 1"
    assert "a" not in taught


def test_a_dead_bullet_that_others_lead_to_in_a_base_in_flight_is_kept() -> None:
    anchor = apply(apply(START, removal(START, ["b"], 8)), edges(("a", 8, "b")))
    assert "b" in shown(anchor)
    folded = fold(apply(anchor, edges(("a", 9, "c"))), anchor, 9, after=5)
    assert "b" not in shown(folded)
    again = Delta(evidence=frozenset({Evidence("b", "t9", 1, "s9")}))
    assert shown(apply(folded, again))["b"].content == "b, wording 1"


def test_an_anchor_older_than_the_last_fold_folds_nothing_twice() -> None:
    # Settings that change between runs may keep a state from before a fold.
    facts = Delta(
        texts=frozenset({Text("b", False, "lesson", "OTHERS", "")}),
        evidence=frozenset({Evidence("b", "t", 1, "s")}),
        votes=frozenset({Vote("b", "t", False)}),
    )
    old = apply(Playbook(), facts)
    once = fold(old, old, 5)
    assert shown(fold(once, old, 6)) == shown(once) == shown(old)
