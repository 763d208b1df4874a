"""From reflections to a delta, and that no lesson is ever lost on the way: carried insights over whole histories."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from functools import partial
from random import Random
from typing import Any

import msgspec
import pytest
from hypothesis import given as examples
from hypothesis import strategies as st

from operators.calls import Calls
from operators.combine import apply
from operators.facts import Evidence, Text, Vote
from operators.learn import Learning, enter_all, learn
from operators.learner import Learner
from operators.settings import Settings
from operators.similar import is_same
from operators.sizes import FixedSize
from operators.snapshot import Snapshot, dump, load
from operators.state import Carried, PromptState, Standing
from operators.values import Bullet, Curation, Drop, Given, Insight, Operation, Reflection, Trace
from operators.version import publish_rollback
from operators.view import shown
from operators.wire import encode
from tests.operators.scripted import (
    Clock,
    Curator,
    Reducer,
    Scripted,
    Shelf,
    at_random,
    cites_nothing,
    cites_wrongly,
    contents,
    covers_all,
    covers_first,
    drops_rest,
    fails,
    fails_later,
    feed_all,
    learn_all,
    learner,
    leaves_all,
    name_of,
    saturated,
    teaches,
    trace,
)
from tests.operators.test_cite import standing

NEVER = Standing()


def learned(
    curator: Curator,
    reflections: Sequence[Reflection],
    *,
    due: Sequence[Carried] = (),
    base: Standing = NEVER,
    window: int = 1,
    **fields: Any,
) -> Learning:
    async def run() -> Learning:
        return await learn("p", window, reflections, due, base, Scripted(curator), Calls(8), Settings(**fields))

    return asyncio.run(run())


def reflections(*lessons: Sequence[str]) -> list[Reflection]:
    return [teaches(trace(at, *each), ()) for at, each in enumerate(lessons, 1)]


def after(learning: Learning, base: Standing = NEVER) -> list[str]:
    """What the base shows with what was learned."""
    playbook = apply(base.playbook, learning.extra)
    if learning.tree is not None:
        playbook = apply(playbook, learning.tree.value)
    return contents(shown(playbook).values())


WORDS = ("alpha beta", "gamma delta", "epsilon zeta", "eta theta", "iota kappa", "lambda mu", "nu xi", "omicron pi")


# One window


def test_each_copy_is_in_front_of_another_curator() -> None:
    method = Scripted(covers_all)
    table = reflections(*[[f"lesson {at}"] for at in range(1, 41)])
    asyncio.run(learn("p", 1, table, (), NEVER, method, Calls(8), Settings()))
    assert len(method.curated) == 6
    counts = Counter(one.trace for given, _ in method.curated for one in given)
    assert set(counts.values()) == {2}
    for given, _ in method.curated:
        assert len({one.trace for one in given}) == len(given)


def test_covered_beats_dropped_beats_uncited() -> None:
    calls: list[int] = []

    def curator(given: Sequence[Given], base: Sequence[Bullet]) -> Curation:
        calls.append(len(given))
        by_text = {one.insight.content: number for number, one in enumerate(given, 1)}
        first = len(calls) % 2 == 1
        operations = [Operation("ADD", (by_text[WORDS[0]],), (), "OTHERS", "kept")] if first else []
        drops = [Drop((by_text[WORDS[0]],), "vague")] if not first else []
        drops += [Drop((by_text[WORDS[1]],), "vague")] if first else []
        return Curation(tuple(operations), tuple(drops))

    # One trace among nine whose insights stand before two of the three curators, who disagree.
    learning = learned(curator, reflections(WORDS[:3], *[[]] * 8))
    assert calls == [3, 3]
    assert after(learning) == ["kept"]
    assert [each.given.insight.content for each in learning.carried] == [WORDS[2]]
    assert learning.load == learning.load.__class__(9, 3, 1, 0, 1)


def test_votes_are_facts_and_stay_apart_from_evidence() -> None:
    table = [
        Reflection("t1", helpful=("x", "y")),
        Reflection("t2", harmful=("x",)),
        *(Reflection(f"h{at}", helpful=("x",)) for at in range(5)),
    ]
    learning = learned(covers_all, table)
    assert Vote("x", "t2", True) in learning.extra.votes
    assert sum(vote.bullet == "x" and not vote.harmful for vote in learning.extra.votes) == 6
    assert not learning.extra.evidence
    assert learning.calls == 0


def test_five_helpful_votes_and_a_harmful_one_count_each() -> None:
    base = standing(WORDS[0])
    bullet = name_of(WORDS[0])
    table = [Reflection(f"h{at}", helpful=(bullet,)) for at in range(5)] + [Reflection("t", harmful=(bullet,))]
    playbook = apply(base.playbook, learned(covers_all, table).extra)
    assert (shown(playbook)[bullet].helpful, shown(playbook)[bullet].harmful) == (5, 1)


def test_votes_for_what_does_not_exist_show_nothing() -> None:
    assert after(learned(covers_all, [Reflection("t", helpful=("err-00001", "nothing"))])) == []


def test_a_window_without_insights_makes_no_call() -> None:
    method = Scripted(fails)
    learning = asyncio.run(learn("p", 1, reflections(*[[]] * 9), (), NEVER, method, Calls(8), Settings()))
    assert not method.curated
    assert (learning.calls, learning.tree, learning.load.size) == (0, None, 9)


@pytest.mark.parametrize("failing", [fails, fails_later], ids=["at once", "awaited"])
def test_a_curator_that_fails_is_replaced_by_the_plain_union(failing: Curator) -> None:
    learning = learned(failing, reflections(["a b"], ["A b."], ["c d"], ["e f"]))
    assert after(learning) == ["A b.", "c d", "e f"]
    assert learning.carried == ()
    assert learning.audit["curator_fallbacks"] == learning.calls == 2
    assert learning.load.first_covered == 4


def test_one_curator_that_fails_loses_no_other_group() -> None:
    turns: list[int] = []

    def curator(given: Sequence[Given], base: Sequence[Bullet]) -> Curation:
        turns.append(len(given))
        return fails() if len(turns) == 2 else covers_all(given, base)

    table = reflections(*[[f"lesson {at}"] for at in range(16)])
    assert after(learned(curator, table)) == sorted(f"lesson {at}" for at in range(16))


@pytest.mark.parametrize("reply", [None, "no", [], {"operations": []}])
def test_a_curator_that_gives_no_curation_is_replaced_as_well(reply: object) -> None:
    learning = learned(lambda given, base: reply, reflections(["a b"], ["c d"]))  # type: ignore[arg-type,return-value]
    assert after(learning) == ["a b", "c d"]
    assert learning.audit["curator_fallbacks"] == 1


def test_a_curator_whose_awaitable_was_cancelled_elsewhere_is_replaced_as_well() -> None:
    async def curator(given: Sequence[Given], base: Sequence[Bullet]) -> Curation:
        connection = asyncio.ensure_future(asyncio.sleep(60))
        connection.cancel()
        await connection
        raise AssertionError("never here")

    for count in (2, 9):  # one call, several calls
        assert after(learned(curator, reflections(*[["a b"]] * count))) == ["a b"]


def test_an_insight_without_text_is_none() -> None:
    for curator in (covers_all, leaves_all, fails):
        learning = learned(curator, reflections(["  "], [" . "], ["a b"]))
        assert all(each.given.insight.content == "a b" for each in learning.carried)
        assert set(after(learning)) <= {"a b"}


def test_insights_of_one_number_are_told_apart() -> None:
    twice = Reflection("t1", insights=(Insight(1, "OTHERS", "a b"), Insight(1, "OTHERS", "c d")))
    learning = learned(saturated(1), [twice])
    assert after(learning) == ["a b"]
    assert [each.given.insight.content for each in learning.carried] == ["c d"]


def test_curators_see_the_base() -> None:
    method = Scripted(covers_all)
    base = standing(*WORDS[:3])
    asyncio.run(learn("p", 1, reflections(["a"], ["b"]), (), base, method, Calls(8), Settings()))
    assert [contents(bullets) for _, bullets in method.curated] == [sorted(WORDS[:3])]


def test_what_no_curator_takes_is_refused_and_carried() -> None:
    def curator(given: Sequence[Given], base: Sequence[Bullet]) -> Curation:
        return Curation((Operation("ADD", (), (), "OTHERS", "quantum chromodynamics"),))

    learning = learned(curator, reflections(["a b"], ["c d"]))
    assert after(learning) == []
    assert learning.audit["refused"] == {"covers nothing that was given": 1}
    assert len(learning.carried) == 2


def test_the_audit_tells_drops_and_drops_that_do_not_hold() -> None:
    def curator(given: Sequence[Given], base: Sequence[Bullet]) -> Curation:
        return Curation((), (Drop(tuple(range(1, len(given) + 1)), "vague"),))

    learning = learned(curator, reflections(["a b"], ["c d"], ["e f"]))
    assert learning.audit["drops"] == [["t1", 1, "vague"]]
    assert learning.audit["drops_that_do_not_hold"] == [["t2", 1, "vague"], ["t3", 1, "vague"]]
    assert [each.given.trace for each in learning.carried] == ["t2", "t3"]


# Duplicates over several groups


def test_what_two_groups_call_each_others_duplicate_is_not_lost() -> None:
    calls: list[int] = []

    def curator(given: Sequence[Given], base: Sequence[Bullet]) -> Curation:
        calls.append(1)
        one, other = (1, 2) if len(calls) % 2 else (2, 1)
        return Curation((), (Drop((one,), "duplicate", other),))

    learning = learned(curator, reflections(["amounts are in cents", "Amounts are in cents."], *[[]] * 8))
    assert len(calls) == 2
    assert len(learning.carried) == 1


def test_a_circle_of_repeats_ends_in_what_was_refused_for_a_reason() -> None:
    calls: list[int] = []

    def curator(given: Sequence[Given], base: Sequence[Bullet]) -> Curation:
        calls.append(1)
        if len(calls) % 2:
            return Curation((), (Drop((1,), "duplicate", 2),))
        return Curation((), (Drop((2,), "duplicate", 1), Drop((1,), "vague")))

    # Both curators see both insights and a third; the first insight is refused by one of them.
    lessons = ["amounts are in cents", "Amounts are in cents.", "feed a dog"]
    learning = learned(curator, reflections(lessons, *[[]] * 8))
    assert [each.given.insight.number for each in learning.carried] == [3]


def test_a_duplicate_is_evidence_for_what_covers_its_original_in_another_group() -> None:
    calls: list[int] = []

    def curator(given: Sequence[Given], base: Sequence[Bullet]) -> Curation:
        calls.append(1)
        if len(calls) % 2:
            return Curation((), (Drop((1,), "duplicate", 2),))
        return Curation((Operation("ADD", (2,), (), "OTHERS", "use cents"),))

    learning = learned(curator, reflections(["amounts are in cents", "Amounts are in cents."], *[[]] * 8))
    assert learning.tree is not None
    evidence = learning.tree.value.evidence | learning.extra.evidence
    assert evidence == {Evidence(name_of("use cents"), "t1", number, "") for number in (1, 2)}
    assert learning.carried == ()


@examples(st.lists(st.integers(0, 2), min_size=1, max_size=30), st.integers(0, 2**32))
def test_however_groups_repeat_each_other_one_of_each_lesson_stays(lessons: list[int], seed: int) -> None:
    rng = Random(seed)

    def curator(given: Sequence[Given], base: Sequence[Bullet]) -> Curation:
        """All that a group can repeat, it calls a duplicate of something, true or not."""
        numbers = range(1, len(given) + 1)
        return Curation((), tuple(Drop((number,), "duplicate", rng.choice(numbers)) for number in numbers))

    learning = learned(curator, reflections(*[[WORDS[lesson]] for lesson in lessons]), seed=seed)
    left = {each.given.insight.content for each in learning.carried}
    false = sum(reason == "duplicate" for _, _, reason in learning.audit.get("drops", ()))
    assert left
    if len(set(lessons)) == 1:
        assert left == {WORDS[lessons[0]]}
    assert false <= 2 * len(lessons)


# Carrying


def test_a_carried_insight_keeps_trace_number_and_due() -> None:
    learning = learned(leaves_all, reflections(["a b", "c d"]), window=5, max_staleness=2)
    assert learning.carried == tuple(
        Carried(Given(Insight(number, "OTHERS", text), "t1", missed=1), 8) for number, text in ((1, "a b"), (2, "c d"))
    )


@pytest.mark.parametrize("staleness", [0, 1, 2, 3])
def test_an_uncited_insight_is_given_twice_more_in_its_windows_and_then_enters_raw(staleness: int) -> None:
    method = Scripted(leaves_all)
    traces = [trace(at, *([WORDS[0]] if at == 3 else [])) for at in range(1, 31)]

    async def run() -> Shelf:
        return await learn_all(method, traces, size=2, max_staleness=staleness, end=False)

    shelf = asyncio.run(run())
    step = 1 + staleness
    # The lesson is in window 2 and stands alone, so every call is about it.
    assert len(method.curated) == 3
    assert [given[0].missed for given, _ in method.curated] == [0, 1, 2]
    windows = [p.entry.window for p in shelf.of() if p.entry.stats["calls"]]
    assert windows == [2, 2 + step, 2 + 2 * step]
    for published in shelf.of():
        entered = 2 + 2 * step
        assert contents(published.update.bullets) == ([WORDS[0]] if published.entry.window >= entered else [])
        carried = [(each.due, each.given.missed) for each in published.state.carried]
        if published.entry.window < 2 or published.entry.window >= entered:
            assert carried == []
        else:
            given_at = max(window for window in windows if window <= published.entry.window)
            assert carried == [(given_at + step, windows.index(given_at) + 1)]
    raw = shelf.of()[2 + 2 * step - 1]
    assert [bullet.raw for bullet in raw.update.bullets] == [True]
    assert raw.entry.audit == {"raw": [["t3", 1]]}


def test_a_carried_insight_that_is_covered_in_time_is_no_raw_bullet() -> None:
    turn: list[int] = []

    def curator(given: Sequence[Given], base: Sequence[Bullet]) -> Curation:
        turn.append(1)
        return covers_all(given, base) if len(turn) == 3 else Curation()

    traces = [trace(at, *([WORDS[0]] if at == 1 else [])) for at in range(1, 21)]
    shelf = asyncio.run(learn_all(Scripted(curator), traces, size=2))
    assert [bullet.raw for bullet in shelf.of()[-1].update.bullets] == [False]
    assert shelf.of()[-1].update.kind == "window"
    assert len(shelf.of()) == 10


def test_carried_insights_join_one_group_each_and_do_not_count_for_k() -> None:
    due = [Carried(Given(Insight(1, "OTHERS", f"old {at}"), f"o{at}", missed=1), 3) for at in range(30)]
    method = Scripted(covers_all)
    table = reflections(*[[f"new {at}"] for at in range(9)])
    asyncio.run(learn("p", 3, table, due, NEVER, method, Calls(8), Settings()))
    assert len(method.curated) == 3
    counts = Counter(one.trace for given, _ in method.curated for one in given)
    assert all(counts[f"o{at}"] == 1 for at in range(30))
    sizes = [sum(one.trace.startswith("o") for one in given) for given, _ in method.curated]
    assert sizes == [10, 10, 10]


def test_carried_insights_are_given_though_every_reflection_failed() -> None:
    due = [Carried(Given(Insight(1, "OTHERS", "old"), "o", missed=1), 3)]
    assert after(learned(covers_all, [], due=due, window=3)) == ["old"]


def test_a_near_duplicate_of_a_kept_bullet_becomes_its_evidence() -> None:
    base = standing("amounts are in cents")
    method = Scripted(leaves_all)
    due = [Carried(Given(Insight(4, "OTHERS", "Amounts are in cents!"), "t7", "s7", missed=1), 3)]
    learning = asyncio.run(learn("p", 3, (), due, base, method, Calls(8), Settings()))
    assert learning.extra.evidence == {Evidence(name_of("amounts are in cents"), "t7", 4, "s7")}
    assert (learning.carried, method.curated) == ((), [])


def test_a_raw_insight_is_evidence_for_a_bullet_of_its_own_window() -> None:
    due = [Carried(Given(Insight(1, "OTHERS", "amounts are in cents!"), "t7", missed=2), 3)]

    def curator(given: Sequence[Given], base: Sequence[Bullet]) -> Curation:
        number = next(at for at, one in enumerate(given, 1) if not one.missed)
        return Curation((Operation("ADD", (number,), (), "OTHERS", "Amounts are in cents"),))

    learning = learned(curator, reflections(["amounts: in cents", "x"]), due=due, window=3)
    assert after(learning) == ["Amounts are in cents"]
    assert Evidence(name_of("Amounts are in cents"), "t7", 1, "") in learning.extra.evidence


def test_raw_insights_that_say_one_thing_are_one_bullet() -> None:
    carried = [Carried(Given(Insight(1, "OTHERS", text), f"t{at}"), 9) for at, text in enumerate(["a b c", "A b c."])]
    learning = enter_all(4, carried, NEVER)
    assert after(learning) == ["a b c"]
    assert {fact.trace for fact in learning.extra.evidence} == {"t0", "t1"}
    assert learning.extra.texts == {Text(name_of("a b c"), True, "a b c", "OTHERS", "")}


def test_a_raw_insight_that_says_what_the_base_says_is_its_evidence() -> None:
    base = standing("a b c")
    learning = enter_all(4, [Carried(Given(Insight(1, "OTHERS", "A b c!"), "t9"), 9)], base)
    assert learning.extra.evidence == {Evidence(name_of("a b c"), "t9", 1, "")}
    assert learning.extra.texts == {Text(name_of("a b c"), False, "a b c", "OTHERS", "")}, "it may be forgotten since"


def test_the_end_of_a_replay_lets_everything_carried_enter_in_one_empty_window() -> None:
    traces = [trace(at, f"lesson number {chr(96 + at) * 9}") for at in range(1, 7)]
    method = Scripted(leaves_all)
    shelf = asyncio.run(learn_all(method, traces, size=2))
    last = shelf.of()[-1]
    assert [p.entry.batch_size for p in shelf.of()] == [2, 2, 2, 0]
    assert last.update.base == last.update.version - 1
    assert last.update.kind == "window"
    assert last.entry.window == 4
    assert len(last.update.bullets) == 6
    assert all(bullet.raw for bullet in last.update.bullets)
    assert last.state.carried == ()
    assert last.update.stats["calls"] == 0
    assert last.update.learned.traces == 0


def test_nothing_carried_needs_no_window_at_the_end() -> None:
    shelf = asyncio.run(learn_all(Scripted(covers_all), [trace(1, "a"), trace(2, "b")], size=2))
    assert len(shelf.of()) == 1


def test_an_idle_prompt_lets_what_it_carries_enter_after_max_wait() -> None:
    async def run() -> None:
        shelf, clock = Shelf(), Clock()
        async with learner(Scripted(leaves_all), shelf, size=2, clock=clock, max_wait=60.0) as learning:
            await learning.feed([trace(1, "a b")])
            clock.now += 30
            await learning.feed([trace(2, "c d")])
            clock.now += 59
            await learning.tick()
            assert len(shelf.of()) == 1
            clock.now += 1
            await learning.tick()
            assert [p.entry.batch_size for p in shelf.of()] == [2, 0]
            assert contents(shelf.of()[-1].update.bullets) == ["a b", "c d"]
            clock.now += 1000
            await learning.tick()
            assert len(shelf.of()) == 2
            await learning.feed([trace(3, "e f"), trace(4, "g h")])
            assert [p.entry.window for p in shelf.of()] == [1, 2, 3]

    asyncio.run(run())


def test_an_idle_prompt_with_an_open_window_keeps_its_windows_in_order() -> None:
    async def run() -> None:
        shelf, clock = Shelf(), Clock()
        async with learner(Scripted(leaves_all), shelf, size=2, clock=clock, max_wait=60.0) as learning:
            await learning.feed([trace(1, "a b"), trace(2, "c d")])
            clock.now += 40
            await learning.feed([trace(3, "e f")])
            clock.now += 20
            await learning.tick()  # nothing has closed for a minute, and a window is open
            assert contents(shelf.of()[-1].update.bullets) == ["a b", "c d"]
            await learning.feed([trace(4, "g h"), trace(5, "i j"), trace(6, "k l")])
            clock.now += 60
            await learning.tick()
            await learning.drain()
        assert [p.entry.window for p in shelf.of()] == list(range(1, len(shelf.of()) + 1))
        assert len(shelf.of()[-1].update.bullets) == 6

    asyncio.run(run())


def test_a_prompt_just_loaded_is_not_idle() -> None:
    async def run() -> None:
        shelf, clock = Shelf(), Clock()
        async with learner(Scripted(leaves_all), shelf, size=2, clock=clock, max_wait=60.0) as learning:
            await learning.feed([trace(1, "a b"), trace(2, "c d")])
        async with learner(Scripted(leaves_all), shelf, size=2, clock=clock, max_wait=60.0) as learning:
            learning.lane("p")
            await learning.tick()
            assert len(shelf.of()) == 1
            clock.now += 60
            await learning.tick()
            assert len(shelf.of()) == 2

    asyncio.run(run())


def test_raw_bullets_wait_for_support_like_all_others() -> None:
    traces = [trace(1, "a b c"), trace(2, "d e f"), trace(3, "A b c."), trace(4)]
    shelf = asyncio.run(learn_all(Scripted(leaves_all), traces, size=2, support_traces=2))
    assert contents(shelf.of()[-1].update.bullets) == ["a b c"]
    assert {fact.bullet for fact in shelf.of()[-1].state.pending.evidence} == {name_of("d e f")}


# Nothing is lost, whatever the curators do


LESSONS = (*WORDS, "Alpha beta.", "alpha  BETA", "gamma delta 2", "gamma delta 3")


def reload(state: PromptState) -> PromptState:
    """The state as it comes back after a kill: through the bytes that were written."""
    return load(msgspec.json.decode(encode(dump(state)), type=Snapshot))


class Keeping(Scripted):
    """Remembers which insights its curators gave for a removal: those leave no evidence."""

    def __init__(self, curator: Curator, reducer: Reducer | None = None) -> None:
        super().__init__(curator, reducer=reducer)
        self.spent: set[tuple[str, int]] = set()

    def curate(self, given: Sequence[Given], base: Sequence[Bullet]) -> Any:
        curation = super().curate(given, base)
        assert isinstance(curation, Curation)
        for operation in curation.operations:
            if operation.type == "REMOVE":
                cited = [n for n in operation.cites if 1 <= n <= len(given)] or range(1, len(given) + 1)
                self.spent |= {(given[n - 1].trace, given[n - 1].insight.number) for n in cited}
        return curation


def lost(traces: Sequence[Trace], shelf: Shelf, method: Keeping) -> set[tuple[str, int]]:
    """The insights that have no fate."""
    published = shelf.of()
    done = {id for each in published for id, _ in each.entry.traces}
    taught = {(one.id, insight.number) for one in traces if one.id in done for insight in teaches(one, ()).insights}
    assert done <= {one.id for one in traces}
    fates: set[tuple[str, int]] = set(method.spent)
    for each in published:
        fates |= {(fact.trace, fact.number) for fact in each.entry.delta.evidence | each.entry.pending.evidence}
        fates |= {(id, number) for id, number, _ in each.entry.audit.get("drops", ())}
    fates |= {(each.given.trace, each.given.insight.number) for each in published[-1].state.carried}
    return taught - fates


CURATORS = {
    "any": at_random,
    "any again": at_random,
    "all": lambda rng, given, base: covers_all(given, base),
    "first": lambda rng, given, base: covers_first(rng.randrange(3), given, base),
    "drops": lambda rng, given, base: drops_rest(rng.randrange(3), "vague", given, base),
    "wrong": lambda rng, given, base: cites_wrongly(given, base),
    "uncited": lambda rng, given, base: cites_nothing(given, base),
    "none": lambda rng, given, base: leaves_all(given, base),
}


@examples(
    st.lists(st.lists(st.sampled_from(LESSONS), max_size=3), min_size=1, max_size=24),
    st.sampled_from(sorted(CURATORS)),
    st.integers(0, 3),
    st.integers(1, 5),
    st.integers(1, 2),
    st.lists(st.sampled_from(["go on", "go on", "kill", "roll back", "end"]), max_size=8),
    st.booleans(),
    st.integers(0, 2**32),
)
def test_no_lesson_is_ever_lost(
    lessons: list[list[str]],
    kind: str,
    staleness: int,
    size: int,
    support: int,
    events: list[str],
    reduces: bool,
    seed: int,
) -> None:
    rng = Random(seed)

    def reducer(proposals: Sequence[Bullet], base: Sequence[Bullet]) -> Curation:
        return at_random(rng, [Given(Insight(1, "OTHERS", each.content), "") for each in proposals], base)

    method = Keeping(partial(CURATORS[kind], rng), reducer if reduces else None)
    traces = [trace(at, *each, session=f"s{at % 3}") for at, each in enumerate(lessons)]
    settings = Settings(seed=seed, max_staleness=staleness, support_traces=support, fold_every=staleness + 2)
    shelf = Shelf()

    async def run() -> None:
        left = list(traces)
        for event in [*events, "end"]:
            async with Learner(
                method, shelf.put, sizes=FixedSize(size), clock=Clock(), settings=settings, load=shelf.load
            ) as learning:
                learning.lane("p")
                take = left[: rng.randrange(1, 7) if event != "end" else len(left)]
                await learning.feed(take)
                if event == "roll back" and shelf.of():
                    to = reload(rng.choice(shelf.of()).state)
                    await learning.amend("p", partial(publish_rollback, to=to, settings=settings))
                if event in ("end", "go on"):
                    await learning.drain(end=event == "end")
                if shelf.of():
                    assert lost(traces, shelf, method) == set()
            # Whoever leaves without draining has the traces of open windows still before it.
            done = {id for each in shelf.of() for id, _ in each.entry.traces}
            left = [one for one in traces if one.id not in done]
            shelf.states = {prompt: reload(state) for prompt, state in shelf.states.items()}
        assert not left
        assert shelf.of()[-1].state.carried == ()

    asyncio.run(run())
    assert lost(traces, shelf, method) == set()
    windows = [each.entry.window for each in shelf.of() if each.entry.kind == "window"]
    assert windows == list(range(1, len(windows) + 1))
    for published in shelf.of():
        due = [each.due for each in published.state.carried]
        assert all(window > published.entry.window for window in due)


@examples(st.lists(st.sampled_from(LESSONS), min_size=1, max_size=16), st.integers(0, 3), st.integers(0, 3))
def test_without_drops_every_lesson_is_shown_in_the_end(lessons: list[str], most: int, staleness: int) -> None:
    traces = [trace(at, lesson) for at, lesson in enumerate(lessons)]
    shelf = asyncio.run(learn_all(Scripted(saturated(most)), traces, size=4, max_staleness=staleness))
    shown_texts = [bullet.content for bullet in shelf.of()[-1].update.bullets]
    for lesson in lessons:
        assert any(is_same(lesson, text) for text in shown_texts)
    assert sum(bullet.traces for bullet in shelf.of()[-1].update.bullets) == len(lessons)


@examples(st.lists(st.sampled_from(LESSONS), min_size=1, max_size=16), st.integers(0, 3), st.integers(1, 5))
def test_a_kill_between_any_windows_changes_no_byte(lessons: list[str], staleness: int, size: int) -> None:
    traces = [trace(at, lesson) for at, lesson in enumerate(lessons)]
    settings: dict[str, Any] = {"size": size, "max_staleness": staleness, "fold_every": staleness + 2}
    whole = asyncio.run(learn_all(Scripted(saturated(1)), traces, **settings))

    async def killed() -> Shelf:
        shelf = Shelf()
        for at in range(0, len(traces), size):
            async with learner(Scripted(saturated(1)), shelf, **settings) as learning:
                await learning.feed(traces[at : at + size])
                await learning.drain(end=at + size >= len(traces))
            shelf.states = {prompt: reload(state) for prompt, state in shelf.states.items()}
        return shelf

    assert asyncio.run(killed()).lines() == whole.lines()


async def test_a_whole_history_of_one_trace_windows() -> None:
    shelf = Shelf()
    async with learner(Scripted(leaves_all), shelf, size=1) as learning:
        await feed_all(learning, [trace(1, "a b")])
    assert [p.entry.batch_size for p in shelf.of()] == [1, 0]
