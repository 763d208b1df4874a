"""Level 2: asked only where it can change something; what it does not cite stands; what it drops is bounded."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import reduce
from random import Random
from typing import Any

import pytest
from hypothesis import given as examples
from hypothesis import strategies as st

from operators.calls import Calls
from operators.combine import apply
from operators.facts import Delta, Evidence, Supersession, Text, merge
from operators.learn import Learning, learn
from operators.reduce import Reduced, level_two
from operators.scan import scan
from operators.settings import Settings
from operators.state import Standing
from operators.values import Bullet, Curation, Drop, Given, Insight, Operation
from operators.view import removal, roots, shown
from tests.operators.scripted import (
    REASONS,
    Reducer,
    Scripted,
    at_random,
    contents,
    covers_all,
    fails,
    fails_later,
    name_of,
    teaches,
    trace,
)
from tests.operators.test_cite import standing

EMPTY_BASE = Standing()
APART = ("wash the car", "feed a dog", "sing some songs", "paint that wall", "mow his lawn", "bake her bread")
ALIKE = ("pass amounts in cents", "pass the amounts in cents", "pass all amounts in cents", "amounts in cents")


def proposal(content: str, *traces: str) -> Delta:
    """What one group proposes."""
    return Delta(
        texts=frozenset({Text(name_of(content), False, content, "OTHERS", "")}),
        evidence=frozenset(Evidence(name_of(content), each, 1, "") for each in traces or ("t1",)),
    )


def update(old: str, new: str, window: int = 7) -> Delta:
    edge = Supersession(name_of(old), window, name_of(new))
    return merge(proposal(new), Delta(supersessions=frozenset({edge})))


class Level:
    """Runs level 2 on the deltas of some groups, and shows what comes of it."""

    def __init__(self, parts: Sequence[Delta], reducer: Reducer, base: Standing = EMPTY_BASE, **fields: Any) -> None:
        self.method = Scripted(reducer=reducer)
        self.parts, self.base = list(parts), base
        settings = Settings(**fields)
        self.result: Reduced = asyncio.run(
            level_two(scan(self.parts, merge), self.parts, base, self.method, Calls(4), settings)
        )

    def shown(self) -> dict[str, Bullet]:
        return shown(apply(self.base.playbook, reduce(merge, self.parts, self.result.facts)))

    def texts(self) -> list[str]:
        return contents(self.shown().values())

    def asked(self) -> list[list[str]]:
        return [contents(proposals) for proposals, _ in self.method.reduced]


def says_nothing(proposals: Sequence[Bullet], base: Sequence[Bullet]) -> Curation:
    return Curation()


def merges_all(proposals: Sequence[Bullet], base: Sequence[Bullet]) -> Curation:
    numbers = tuple(range(1, len(proposals) + 1))
    return Curation((Operation("MERGE", numbers, (), "OTHERS", "all in one"),))


def answers(*parts: Operation | Drop) -> Reducer:
    curation = Curation(
        tuple(part for part in parts if isinstance(part, Operation)),
        tuple(part for part in parts if isinstance(part, Drop)),
    )
    return lambda proposals, base: curation


def number(content: str, among: Sequence[str]) -> int:
    """The number under which a proposal is shown: they are sorted by identity."""
    return sorted(among, key=name_of).index(content) + 1


# Where it is asked


def test_proposals_that_have_nothing_in_common_need_no_call() -> None:
    level = Level([proposal(text) for text in APART], fails)
    assert (level.result, level.asked()) == (Reduced(), [])


def test_no_proposals_need_no_call() -> None:
    assert Level([Delta()], fails).result == Reduced()
    base = standing(*ALIKE)
    assert Level([proposal(text) for text in ALIKE], fails, base, token_budget=1).result == Reduced()


def test_one_lesson_that_two_groups_propose_is_no_overlap() -> None:
    assert Level([proposal("wash the car", "t1"), proposal("wash the car", "t2")], fails).result == Reduced()


def test_proposals_that_overlap_are_shown_to_it_with_the_base() -> None:
    base = standing("amounts are important")
    level = Level([proposal(ALIKE[0]), proposal(ALIKE[1]), proposal(APART[0])], says_nothing, base)
    assert level.asked() == [sorted([*ALIKE[:2], APART[0]])]
    assert [contents(bullets) for _, bullets in level.method.reduced] == [["amounts are important"]]
    assert (level.result.calls, level.result.facts) == (1, Delta())


def test_proposals_say_how_many_traces_teach_them() -> None:
    level = Level([proposal(ALIKE[0], "t1", "t2"), proposal(ALIKE[0], "t2", "t3"), proposal(ALIKE[1])], says_nothing)
    assert {b.content: b.traces for b in level.method.reduced[0][0]} == {ALIKE[0]: 3, ALIKE[1]: 1}


@pytest.mark.parametrize(
    "parts",
    [
        [update("old", "wash the car"), update("old", "feed a dog")],
        [update("old", "wash the car"), removal(standing("old").playbook, [name_of("old")], 7)],
    ],
    ids=["two updates", "update and removal"],
)
def test_groups_that_contradict_each_other_are_reason_enough(parts: list[Delta]) -> None:
    assert Level(parts, says_nothing, standing("old")).result.calls == 1


def test_one_update_is_no_contradiction() -> None:
    assert Level([update("old", "wash the car"), proposal("feed a dog")], fails, standing("old")).result.calls == 0


def test_a_budget_exceeded_is_reason_enough() -> None:
    parts = [proposal(text) for text in APART]
    assert Level(parts, says_nothing, token_budget=20).result.calls == 1
    assert Level(parts, says_nothing, token_budget=1000).result.calls == 0
    assert Level(parts[:1], says_nothing, standing(*APART[1:]), token_budget=30).result.calls == 1


def test_calls_of_level_two_are_counted_and_only_made_by_methods_that_have_one() -> None:
    table = [teaches(trace(at, ALIKE[at % 4]), ()) for at in range(4)]

    def run(method: Scripted) -> Learning:
        return asyncio.run(learn("p", 1, table, (), EMPTY_BASE, method, Calls(4), Settings()))

    assert run(Scripted(covers_all, reducer=says_nothing)).calls == 2 + 1
    assert run(Scripted(covers_all)).calls == 2


# What its answer does


def test_what_it_does_not_cite_stands() -> None:
    level = Level([proposal(text) for text in ALIKE], answers(Operation("MERGE", (1, 2), (), "OTHERS", "use cents")))
    rest = sorted(ALIKE, key=name_of)[2:]
    assert level.texts() == sorted(["use cents", *rest])


def test_what_it_cites_is_superseded_and_keeps_its_evidence_and_votes() -> None:
    level = Level([proposal(text, f"t{at}") for at, text in enumerate(ALIKE)], merges_all)
    assert level.texts() == ["all in one"]
    bullet = name_of("all in one")
    assert {fact.trace for fact in level.result.facts.evidence if fact.bullet == bullet} == {"t0", "t1", "t2", "t3"}
    assert {edge.bullet for edge in level.result.facts.supersessions} == {name_of(text) for text in ALIKE}
    assert {edge.window for edge in level.result.facts.supersessions} == {0}


def test_it_may_supersede_bullets_of_the_base_with_the_base_window() -> None:
    base = standing("old", "other")
    level = Level(
        [proposal(text) for text in ALIKE[:2]],
        answers(Operation("MERGE", (1, 2), (name_of("old"), "gone"), "", "use cents")),
        base,
    )
    assert level.texts() == ["other", "use cents"]
    assert {edge.window for edge in level.result.facts.supersessions} == {7}


def test_an_add_of_level_two_leaves_the_base_alone() -> None:
    level = Level(
        [proposal(text) for text in ALIKE[:2]],
        answers(Operation("ADD", (1, 2), (name_of("old"),), "", "use cents")),
        standing("old"),
    )
    assert level.texts() == ["old", "use cents"]


def test_it_may_remove_bullets_of_the_base() -> None:
    level = Level(
        [proposal(text) for text in ALIKE[:2]],
        answers(Operation("REMOVE", (1,), (name_of("old"),))),
        standing("old", "other"),
    )
    assert level.texts() == sorted(["other", *ALIKE[:2]])


@pytest.mark.parametrize(
    "operation",
    [
        Operation("MERGE", (), (), "OTHERS", "cites nothing"),
        Operation("MERGE", (0, -1, 99), (), "OTHERS", "cites nothing that was given"),
        Operation("MERGE", (1, 2), (), "OTHERS", "  "),
        Operation("REMOVE", (), (name_of("old"),)),
        Operation("REMOVE", (99,), (name_of("old"),)),
        Operation("REMOVE", (1,), ("gone",)),
    ],
)
def test_an_operation_that_cites_nothing_or_says_nothing_is_not_taken(operation: Operation) -> None:
    level = Level([proposal(text) for text in ALIKE[:2]], answers(operation), standing("old"))
    assert level.texts() == sorted(["old", *ALIKE[:2]])


@pytest.mark.parametrize("failing", [fails, fails_later, lambda *_: None])
def test_a_level_two_that_fails_changes_nothing(failing: Reducer) -> None:
    level = Level([proposal(text) for text in ALIKE], failing)
    assert level.texts() == sorted(ALIKE)
    assert (level.result.facts, level.result.calls, level.result.failures) == (Delta(), 1, 1)


def test_the_words_of_one_proposal_may_be_chosen_for_all() -> None:
    one = ALIKE[2]
    level = Level(
        [proposal(text, f"t{at}") for at, text in enumerate(ALIKE)],
        answers(Operation("MERGE", (1, 2, 3, 4), (), "OTHERS", one)),
    )
    assert level.texts() == [one]


def test_operations_in_a_circle_lose_no_evidence_and_leave_a_bullet() -> None:
    first, second = sorted(ALIKE[:2], key=name_of)
    level = Level(
        [proposal(first, "t1"), proposal(second, "t2")],
        answers(Operation("UPDATE", (1,), (), "OTHERS", second), Operation("UPDATE", (2,), (), "OTHERS", first)),
    )
    assert len(level.texts()) == 1


# Drops


@pytest.mark.parametrize("reason", [reason for reason in REASONS if reason != "duplicate"])
def test_it_may_drop_up_to_half(reason: str) -> None:
    level = Level([proposal(text) for text in ALIKE], answers(Drop((1, 2, 3, 4), reason)))
    assert level.texts() == sorted(sorted(ALIKE, key=name_of)[2:])
    assert [why for _, why in level.result.drops] == [reason] * 2


@pytest.mark.parametrize("drop", [Drop((1, 2), "because"), Drop((0, 9, -1), "vague"), Drop((), "vague")])
def test_a_drop_for_no_listed_reason_or_of_nothing_given_is_none(drop: Drop) -> None:
    level = Level([proposal(text) for text in ALIKE], answers(drop))
    assert (level.texts(), level.result.drops) == (sorted(ALIKE), ())


def test_drops_are_in_the_audit() -> None:
    table = [teaches(trace(at, ALIKE[at]), ()) for at in range(4)]
    method = Scripted(covers_all, reducer=answers(Drop((1,), "vague")))
    learning = asyncio.run(learn("p", 1, table, (), EMPTY_BASE, method, Calls(4), Settings()))
    first = min(ALIKE, key=name_of)
    assert learning.audit == {"level_2_drops": [[name_of(first), "vague"]]}


def test_a_failure_is_in_the_audit() -> None:
    table = [teaches(trace(at, ALIKE[at]), ()) for at in range(4)]
    learning = asyncio.run(
        learn("p", 1, table, (), EMPTY_BASE, Scripted(covers_all, reducer=fails), Calls(4), Settings())
    )
    assert learning.audit == {"level_2_failures": 1}


def test_what_replaces_a_bullet_of_the_base_cannot_be_dropped() -> None:
    parts = [update("old", "use cents"), update("old", "use cents always"), *(proposal(text) for text in APART)]
    among = ["use cents", "use cents always", *APART]
    one = number("use cents", among)
    level = Level(parts, answers(Drop((one, number(APART[0], among)), "wrong")), standing("old"))
    assert [name for name, _ in level.result.drops] == [name_of(APART[0])]
    assert not any(fact.bullet == name_of("use cents") for fact in level.result.facts.covered_evidence)


SAME = ("Amounts are in cents", "amounts were in cents", "amounts are  in cent")


def test_a_verified_duplicate_ends_in_what_it_repeats() -> None:
    one, other = number(SAME[0], SAME), number(SAME[1], SAME)
    level = Level([proposal(text, f"t{at}") for at, text in enumerate(SAME)], answers(Drop((one,), "duplicate", other)))
    assert level.texts() == sorted(SAME[1:])
    evidence = {fact for fact in level.result.facts.evidence if fact.bullet == name_of(SAME[1])}
    assert {fact.trace for fact in evidence} == {"t0"}


@pytest.mark.parametrize("order", [(1, 2, 3), (3, 2, 1), (2, 3, 1)])
def test_duplicates_in_a_circle_leave_one(order: tuple[int, int, int]) -> None:
    drops = [Drop((each,), "duplicate", each % 3 + 1) for each in order]
    level = Level([proposal(text, f"t{at}") for at, text in enumerate(SAME)], answers(*drops))
    assert len(level.texts()) == 1


def test_nothing_is_a_duplicate_of_itself_or_of_what_was_dropped() -> None:
    parts = [proposal(text) for text in SAME]
    assert Level(parts, answers(Drop((1,), "duplicate", 1))).texts() == sorted(SAME)
    level = Level(parts, answers(Drop((1,), "vague"), Drop((2,), "duplicate", 1)))
    assert level.texts() == sorted(sorted(SAME, key=name_of)[1:])


# The tree


def test_fan_in_bounds_the_proposals_of_one_call() -> None:
    texts = [f"pass amounts in cents {at}" for at in range(20)]
    level = Level([proposal(text) for text in texts], says_nothing, fan_in=6)
    assert [len(each) for each in level.asked()] == [6, 6, 6, 2]
    assert (level.texts(), level.result.calls) == (sorted(texts), 4)


def test_above_fan_in_what_came_of_the_groups_is_reduced_again() -> None:
    calls: list[int] = []

    def merges(proposals: Sequence[Bullet], base: Sequence[Bullet]) -> Curation:
        calls.append(len(proposals))
        numbers = tuple(range(1, len(proposals) + 1))
        return Curation((Operation("MERGE", numbers, (), "OTHERS", f"merged {len(calls)}"),))

    texts = [f"pass amounts in cents {at}" for at in range(20)]
    level = Level([proposal(text, f"t{at}") for at, text in enumerate(texts)], merges, fan_in=3)
    assert calls == [3, 3, 3, 3, 3, 3, 2, 3, 3, 1, 3]
    assert level.result.calls == 11
    assert level.texts() == ["merged 11"]
    evidence = {fact.trace for fact in level.result.facts.evidence if fact.bullet == name_of("merged 11")}
    assert evidence == {f"t{at}" for at in range(20)}


def test_a_bullet_of_the_base_is_never_a_proposal() -> None:
    def merges(proposals: Sequence[Bullet], base: Sequence[Bullet]) -> Curation:
        return Curation((Operation("MERGE", tuple(range(1, len(proposals) + 1)), (), "OTHERS", "old"),))

    level = Level([proposal(text) for text in ALIKE], merges, standing("old"), fan_in=3)
    assert [len(each) for each in level.asked()] == [3, 1]
    assert level.texts() == ["old"]


def test_a_tree_drops_no_more_than_half_in_all() -> None:
    texts = [f"pass amounts in cents {at}" for at in range(40)]
    level = Level(
        [proposal(text) for text in texts], lambda p, b: Curation((), (Drop(tuple(range(1, 9)), "vague"),)), fan_in=4
    )
    assert len(level.texts()) >= 20


@examples(
    st.integers(1, 30),
    st.integers(2, 6),
    st.integers(0, 2**32),
    st.sampled_from([EMPTY_BASE, standing("old", "other")]),
)
def test_any_level_two_ends_and_loses_nothing_that_it_did_not_drop(
    count: int, fan_in: int, seed: int, base: Standing
) -> None:
    rng = Random(seed)

    def reducer(proposals: Sequence[Bullet], bullets: Sequence[Bullet]) -> Curation:
        given = [Given(Insight(1, "OTHERS", each.content), "") for each in proposals]
        return at_random(rng, given, bullets)

    texts = [f"pass amounts in cents {'abcdefghij'[at % 10] * (at // 10 + 1)}" for at in range(count)]
    parts = [proposal(text, f"u{at}") for at, text in enumerate(texts)]
    level = Level(parts, reducer, base, fan_in=fan_in)
    most = -(-count // fan_in)
    assert level.result.calls <= most * (most + 1) // 2
    drops = [name for name, reason in level.result.drops if reason != "duplicate"]
    assert len(drops) <= count // 2
    playbook = apply(base.playbook, reduce(merge, level.parts, level.result.facts))
    live = shown(playbook)
    ends = roots(playbook)
    covered = {fact.trace for fact in level.result.facts.covered_evidence}
    for at, text in enumerate(texts):
        # Whatever was not refused by name is a live bullet, or ends in one.
        if f"u{at}" not in covered:
            assert ends.get(name_of(text), name_of(text)) in live
