"""People's facts: the latest control wins, and outranks all that the learner says."""

from __future__ import annotations

from random import Random

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from operators.combine import apply
from operators.facts import Delta, Evidence, PersonFact, PersonKind, Supersession, Text, merge
from operators.fold import fold
from operators.playbook import Playbook
from operators.values import Bullet
from operators.view import removal, shown
from tests.operators.laws.strategies import FACTS, KINDS, deltas, known, people, playbooks

START = apply(Playbook(), known())
LEARNERS = tuple(field for field in FACTS if field != "people")
learners = deltas(*LEARNERS, max_size=16)


def said(*facts: PersonFact) -> Delta:
    return Delta(people=frozenset(facts))


def fact(kind: PersonKind, offset: int = 1, content: str = "as a person says") -> PersonFact:
    return PersonFact("a", offset, kind, content, "OTHERS")


def learner_s_part(bullet: Bullet) -> Bullet:
    """A bullet without what votes and evidence may change of it under a pin."""
    return replace(bullet, helpful=0, harmful=0, traces=0)


@given(deltas(max_size=16), st.lists(people, min_size=1, max_size=6), st.randoms(use_true_random=False))
def test_the_latest_offset_wins_in_any_order(delta: Delta, facts: list[PersonFact], random: Random) -> None:
    playbook = apply(apply(Playbook(), replace(delta, people=frozenset())), said(*facts))
    latest = max(facts, key=lambda each: each[1:])
    random.shuffle(facts)
    for each in facts:
        playbook = apply(playbook, said(each))
    others = [each for each in facts if each.bullet != latest.bullet]
    assert shown(playbook) == shown(apply(apply(Playbook(), replace(delta, people=frozenset())), said(latest, *others)))


@given(learners, st.sampled_from(("edit", "pin")), learners, learners)
def test_an_edit_or_pin_holds_against_all_that_the_learner_says(
    before: Delta, kind: PersonKind, after: Delta, more: Delta
) -> None:
    playbook = apply(apply(START, before), said(fact(kind)))
    held = shown(playbook)["a"]
    assert (held.content, held.section, held.pinned, held.raw) == ("as a person says", "OTHERS", True, False)
    removed = apply(playbook, removal(playbook, shown(playbook), 9))
    smaller = Delta(texts=frozenset({Text("a", False, "", "", "key of a")}))
    superseded = Delta(supersessions=frozenset({Supersession("a", 99, "b")}))
    for state in (playbook, removed):
        later = apply(apply(apply(state, after), merge(smaller, superseded)), more)
        assert learner_s_part(shown(later)["a"]) == learner_s_part(held)


@given(learners, st.sampled_from(("edit", "pin")), learners)
def test_unpin_gives_the_bullet_back_to_the_learner(before: Delta, kind: PersonKind, after: Delta) -> None:
    learnt = apply(START, merge(before, after))
    released = apply(apply(apply(apply(START, before), said(fact(kind))), after), said(fact("unpin", 2)))
    assert shown(released) == shown(learnt)


@given(learners, learners, st.integers(0, 3))
def test_a_person_s_removal_is_final_against_the_learner(before: Delta, after: Delta, window: int) -> None:
    removed = apply(apply(START, before), said(fact("remove")))
    assert "a" not in shown(removed)
    taught = Delta(evidence=frozenset({Evidence("a", "t9", 1, "s9")}), texts=known(("a",)).texts)
    later = apply(apply(removed, after), taught)
    assert "a" not in shown(later)
    assert "a" not in shown(fold(later, removed, window))


@given(learners, st.sampled_from(("edit", "pin", "unpin")))
def test_a_later_control_undoes_a_removal(delta: Delta, kind: PersonKind) -> None:
    removed = apply(apply(START, delta), said(fact("remove")))
    undone = apply(removed, said(fact(kind, 2)))
    assert shown(undone) == shown(apply(apply(START, delta), said(fact(kind, 2))))
    assert shown(apply(undone, said(fact("remove", 3)))) == shown(removed)
    assert "a" not in shown(apply(undone, said(fact("remove", 3))))


@given(learners, st.sampled_from(KINDS), st.sampled_from(KINDS))
def test_an_earlier_control_that_comes_late_changes_nothing(
    delta: Delta, kind: PersonKind, earlier: PersonKind
) -> None:
    playbook = apply(apply(START, delta), said(fact(kind, 5)))
    assert apply(playbook, said(fact(earlier, 4, "said before"))) is playbook


def test_what_ends_in_a_pinned_bullet_counts_for_it() -> None:
    playbook = apply(START, Delta(supersessions=frozenset({Supersession("b", 1, "a"), Supersession("a", 2, "c")})))
    pinned = shown(apply(playbook, said(fact("pin"))))
    assert set(shown(playbook)) == {"c", "d"}
    assert {name: bullet.traces for name, bullet in pinned.items()} == {"a": 2, "c": 1, "d": 1}


@given(playbooks(), playbooks(), st.integers(0, 9))
def test_folding_leaves_people_s_facts_alone(playbook: Playbook, other: Playbook, window: int) -> None:
    folded = fold(playbook, Playbook(), window, after=1)
    before = {name: record.person for name, record in playbook.records.items() if record.person}
    assert {name: record.person for name, record in folded.records.items() if record.person} == before
