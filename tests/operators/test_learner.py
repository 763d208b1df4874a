"""The learner: which base each window is curated on, versions in order, failures, and the same bytes at any speed."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import anyio
import pytest
from hypothesis import example
from hypothesis import given as examples
from hypothesis import strategies as st

from operators.facts import Delta, PersonFact
from operators.imports import import_delta
from operators.lane import WindowLost
from operators.learner import Learner
from operators.modelfree import ModelFree
from operators.settings import Settings
from operators.sizes import FixedSize
from operators.state import PromptState
from operators.values import Bullet, Call, Curation, Given, Outcome, Reflection, Step, Trace
from operators.version import Published, publish_delta, publish_rollback
from tests.operators.scripted import (
    Broken,
    Clock,
    Dealt,
    Gates,
    Scripted,
    Shelf,
    at_random,
    contents,
    covers_all,
    fails,
    fails_later,
    feed_all,
    in_order,
    late_curator,
    late_reflector,
    learn_all,
    learner,
    leaves_all,
    name_of,
    saturated,
    settle,
    teaches,
    trace,
    value_of,
)


def numbered(windows: int, size: int, prompt: str = "p") -> list[Trace]:
    """The first trace of each window teaches the bullet ``lesson <window>``, so a base tells which windows it holds."""
    return [
        trace(at, *([f"lesson {at // size + 1}"] if at % size == 0 else []), prompt=prompt)
        for at in range(windows * size)
    ]


def held(bullets: Sequence[Bullet]) -> set[int]:
    """The windows whose lessons these bullets show."""
    return {int(found[1]) for bullet in bullets if (found := re.search(r"lesson (\d+)$", bullet.content))}


def bases(method: Scripted) -> list[tuple[int, set[int]]]:
    """(window, windows that its base held) of each call of a curator."""
    return [(int(given[0].insight.content.split()[-1]), held(base)) for given, base in method.curated]


def choosing(rng: Random) -> Any:
    return rng.choice


# Windows and versions


async def test_a_closed_window_makes_one_version_also_when_nothing_changes() -> None:
    shelf = await learn_all(Scripted(covers_all), [trace(at) for at in range(7)], size=3)
    assert [(p.update.version, p.update.changed, p.entry.batch_size) for p in shelf.of()] == [
        (1, False, 3),
        (2, False, 3),
        (3, False, 1),
    ]
    assert [p.entry.stats["closed_by"] for p in shelf.of()] == ["size", "size", "drain"]
    assert [[id for id, _ in p.entry.traces] for p in shelf.of()] == [["t0", "t1", "t2"], ["t3", "t4", "t5"], ["t6"]]


async def test_the_log_names_traces_by_id_and_digest() -> None:
    shelf = await learn_all(Scripted(), [trace(1), trace(2)], size=2, digest=lambda each: f"hash of {each.id}")
    assert shelf.of()[0].entry.traces == (("t1", "hash of t1"), ("t2", "hash of t2"))


async def test_nothing_in_makes_nothing() -> None:
    assert (await learn_all(Scripted(fails), [])).versions == []


async def test_each_prompt_has_versions_of_its_own() -> None:
    traces = [trace(at, f"lesson {at}", prompt="ab"[at % 2]) for at in range(12)]
    shelf = await learn_all(Scripted(), traces, size=3)
    for prompt in "ab":
        assert [p.update.version for p in shelf.of(prompt)] == [1, 2]
        assert [p.update.learned.traces for p in shelf.of(prompt)] == [3, 3]
        mine = [each.task for each in traces if each.prompt == prompt]
        assert contents(shelf.of(prompt)[-1].update.bullets) == sorted(mine)


async def test_at_is_the_newest_time_else_the_one_before() -> None:
    traces = [trace(1), trace(2, ended="2026-01-02T03:04:05Z"), trace(3, ended="2026-01-01T00:00:00Z"), trace(4)]
    traces += [trace(5, started="2025-01-01T00:00:00+01:00")]
    shelf = await learn_all(Scripted(), traces, size=1)
    assert [p.entry.at for p in shelf.of()] == [
        None,
        "2026-01-02T03:04:05Z",
        "2026-01-01T00:00:00Z",
        "2026-01-01T00:00:00Z",
        "2024-12-31T23:00:00Z",
    ]


# Bases


def expected_base(window: int, staleness: int) -> set[int]:
    return set(range(1, window - staleness))


@pytest.mark.parametrize("staleness", [0, 1, 2, 3])
async def test_a_window_is_curated_on_the_state_max_staleness_windows_back(staleness: int) -> None:
    method = Scripted(covers_all)
    shelf = await learn_all(method, numbered(8, 2), size=2, max_staleness=staleness)
    assert bases(method) == [(window, expected_base(window, staleness)) for window in range(1, 9)]
    assert [p.update.base for p in shelf.of()] == [max(0, window - 1 - staleness) for window in range(1, 9)]
    assert held(shelf.of()[-1].update.bullets) == set(range(1, 9))


@examples(st.integers(0, 3), st.integers(1, 6), st.integers(1, 3), st.booleans(), st.booleans(), st.integers(0, 2**32))
def test_the_base_is_exact_whatever_completes_first(
    staleness: int, windows: int, size: int, slow_sink: bool, reduces: bool, seed: int
) -> None:
    rng, gates = Random(seed), Gates()
    method = Scripted(
        late_curator(gates), reflector=late_reflector(gates), reducer=(lambda *_: Curation()) if reduces else None
    )
    shelf = Shelf(gates if slow_sink else None)

    async def work() -> None:
        async with learner(method, shelf, size=size, max_staleness=staleness) as learning:
            await feed_all(learning, numbered(windows, size), [rng.randrange(1, 5)])

    asyncio.run(in_order(gates, choosing(rng), work()))
    assert sorted(bases(method)) == [(window, expected_base(window, staleness)) for window in range(1, windows + 1)]
    assert [p.entry.window for p in shelf.of()] == list(range(1, windows + 1))
    assert [p.update.version for p in shelf.of()] == list(range(1, windows + 1))


async def test_imports_are_in_the_base_of_the_first_windows() -> None:
    method, shelf, settings = Scripted(), Shelf(), Settings()
    async with learner(method, shelf, size=2) as learning:
        imported = import_delta([Bullet(section="OTHERS", content="from a file")])
        await learning.amend("p", lambda state: publish_delta(state, imported, settings, kind="import"))
        await feed_all(learning, numbered(3, 2))
    assert [contents(base) for _, base in method.curated] == [
        ["from a file"],
        ["from a file"],
        ["from a file", "lesson 1"],
    ]
    assert [p.update.kind for p in shelf.of()] == ["import", "window", "window", "window"]
    assert [p.entry.window for p in shelf.of()] == [0, 1, 2, 3]


async def test_a_curation_waits_for_its_base_and_reflections_do_not() -> None:
    gates = Gates()
    method = Scripted(late_curator(gates), reflector=late_reflector(gates))
    shelf = Shelf()
    async with learner(method, shelf, size=2, max_staleness=1) as learning:
        await learning.feed(numbered(4, 2))
        await settle()
        assert [name for name in gates.waiting if name.startswith("reflect")] == [f"reflect p t{at}" for at in range(8)]
        gates.open_all("reflect")
        await settle()
        # Windows 1 and 2 have the empty state for a base; 3 waits for 1.
        assert gates.waiting == ["curate t0.1", "curate t2.1"]
        gates.open("curate t2.1")
        await settle()
        assert shelf.versions == []
        gates.open("curate t0.1")
        await settle()
        assert [p.entry.window for p in shelf.of()] == [1, 2]
        assert gates.waiting == ["curate t4.1", "curate t6.1"]


async def test_windows_of_different_prompts_never_wait_for_each_other() -> None:
    gates, shelf = Gates(), Shelf()
    method = Scripted(late_curator(gates))
    async with learner(method, shelf, size=2) as learning:
        slow = [trace(at, "slow", prompt="slow") for at in (1, 2)]
        with anyio.fail_after(5):  # reached only by a learner that waits for the first curator
            await learning.feed([*slow, *(trace(at, "quick", prompt="quick") for at in (3, 4))])
            await settle()
            assert gates.waiting == ["curate t1.1", "curate t3.1"]
            gates.open("curate t3.1")
            await settle()
            assert [p.update.prompt for p in shelf.versions] == ["quick"]
            gates.open("curate t1.1")
            await learning.drain()
    assert [p.update.prompt for p in shelf.versions] == ["quick", "slow"]


async def test_a_window_fills_while_the_one_before_aggregates() -> None:
    gates, shelf = Gates(), Shelf()
    method = Scripted(late_curator(gates))
    async with learner(method, shelf, size=2) as learning:
        with anyio.fail_after(5):
            await learning.feed(numbered(1, 2))
            await learning.feed([trace(at, "more") for at in range(2, 5)])
        await settle()
        assert gates.waiting == ["curate t0.1", "curate t2.1"]
        assert len(method.reflected) == 5
        await in_order(gates, min, learning.drain())


# The same bytes


WORDS = ("alpha beta", "gamma delta", "epsilon zeta", "Alpha  beta!", "eta theta", "")


class ByWindow(Scripted):
    """Answers at random, but always the same to the same question, and asks for its gate before it does."""

    def __init__(self, seed: int, gates: Gates | None, kind: str) -> None:
        super().__init__(
            self._curate, reflector=self._reflect, reducer=self._reduce if kind.endswith("reduce") else None
        )
        self._seed, self._gates, self._kind = seed, gates, kind

    def _rng(self, *question: object) -> Random:
        return Random(f"{self._seed} {question}")

    def _reflect(self, trace: Trace, seen: Sequence[Bullet]) -> Any:
        rng = self._rng("reflect", trace.id)
        if rng.random() < 0.1:
            return fails()
        if self._gates is None or rng.random() < 0.3:
            return teaches(trace, seen)
        return late_reflector(self._gates)(trace, seen)

    def _curate(self, given: Sequence[Given], base: Sequence[Bullet]) -> Any:
        rng = self._rng("curate", [(one.trace, one.missed) for one in given], contents(base))
        inner = partial(at_random, rng) if self._kind.startswith("random") else saturated(1)
        return inner(given, base) if self._gates is None else late_curator(self._gates, inner)(given, base)

    def _reduce(self, proposals: Sequence[Bullet], base: Sequence[Bullet]) -> Any:
        rng = self._rng("reduce", contents(proposals), contents(base))
        table = [Given(teaches(trace(at, each.content), ()).insights[0], "") for at, each in enumerate(proposals)]
        return at_random(rng, table, base)


@examples(
    st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from(WORDS)), min_size=1, max_size=24),
    st.integers(0, 3),
    st.integers(1, 5),
    st.integers(3, 30),
    st.sampled_from(["random", "random, reduce", "saturated", "saturated, reduce"]),
    st.booleans(),
    st.integers(0, 2**32),
)
def test_the_same_bytes_at_any_speed_and_in_any_chunks(
    log: list[tuple[str, str]], staleness: int, size: int, bound: int, kind: str, slow_sink: bool, seed: int
) -> None:
    rng, gates = Random(seed), Gates()
    traces = [trace(at, word, prompt=prompt, session=f"s{at % 3}") for at, (prompt, word) in enumerate(log)]
    fields: dict[str, Any] = {
        "max_staleness": staleness,
        "open_traces": bound,
        "fold_every": staleness + 2,
        "seed": seed,
        "token_budget": 30,
        "fan_in": 2,
        "support_traces": 1 + seed % 2,
    }

    async def work(gates: Gates | None, chunks: Sequence[int], sink: bool) -> Shelf:
        shelf = Shelf(gates if sink else None)
        return await learn_all(ByWindow(seed, gates, kind), traces, chunks, shelf=shelf, size=Dealt(size, 3), **fields)

    plain = asyncio.run(work(None, [1], False))
    chunks = [rng.randrange(1, 9) for _ in range(3)]
    mixed = asyncio.run(in_order(gates, choosing(rng), work(gates, chunks, slow_sink)))
    for prompt in "ab":
        assert mixed.lines(prompt) == plain.lines(prompt)


ELSEWHERE = """
import asyncio, hashlib
from functools import partial
from random import Random
from operators.values import Insight, Reflection
from tests.operators.scripted import Scripted, at_random, learn_all, trace

def keyed(one, seen):
    keys = ("", "k1", "k2", "k3", "k4", "k5") if int(one.id[1:]) % 2 else ("",)
    insights = (Insight(at, "OTHERS", one.task, key) for at, key in enumerate(keys, 1))
    return Reflection(one.id, one.session, tuple(insights))

words = ("alpha beta", "gamma delta", "epsilon zeta", "Alpha  beta!", "eta theta")
traces = [trace(at, words[at % 5], session=f"s{at % 3}") for at in range(60)]
print([
    hashlib.sha256(b"".join(
        asyncio.run(learn_all(Scripted(curator, reflector=keyed), traces, size=5, token_budget=60)).lines()
    )).hexdigest()
    for curator in (partial(at_random, Random(4)), lambda given, base: 1 / 0)
])
"""


def test_no_byte_depends_on_the_hashes_of_a_process() -> None:
    root = Path(__file__).parents[2]
    seen = set()
    for seed in ("1", "2", "3"):
        environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(root)}
        command = [sys.executable, "-c", ELSEWHERE]
        ran = subprocess.run(command, env=environment, cwd=root, capture_output=True, text=True, check=False)
        assert ran.returncode == 0, ran.stderr
        seen.add(ran.stdout)
    assert len(seen) == 1


# What it costs


async def test_plain_answers_cost_no_task(monkeypatch: pytest.MonkeyPatch) -> None:
    shelf = Shelf()
    async with learner(Scripted(covers_all), shelf, size=4) as learning:
        before = asyncio.all_tasks()
        started: list[object] = []
        loop = asyncio.get_running_loop()

        def factory(loop: asyncio.AbstractEventLoop, work: Any, **options: Any) -> asyncio.Task[Any]:
            started.append(work)
            return asyncio.Task(work, loop=loop, **options)

        loop.set_task_factory(factory)
        try:
            await feed_all(learning, [trace(at, f"lesson {at}") for at in range(21)], [5])
        finally:
            loop.set_task_factory(None)
        assert started == []
        assert asyncio.all_tasks() == before
    assert len(shelf.of()) == 6


async def test_no_more_calls_are_under_way_than_the_limit() -> None:
    gates, shelf = Gates(), Shelf()
    method = Scripted(late_curator(gates), reflector=late_reflector(gates))

    async def work() -> None:
        async with learner(method, shelf, size=9, in_flight=3) as learning:
            await feed_all(learning, [trace(at, f"lesson {at}", prompt="ab"[at % 2]) for at in range(40)])

    await in_order(gates, choosing(Random(7)), work())
    assert gates.most == 3
    assert sum(p.entry.batch_size for p in shelf.versions) == 40


async def test_feed_waits_while_too_many_traces_have_no_version() -> None:
    gates, shelf = Gates(), Shelf()
    method = Scripted(reflector=late_reflector(gates))
    async with learner(method, shelf, size=2, open_traces=4) as learning:
        await learning.feed([trace(at) for at in range(4)])
        feeding = asyncio.ensure_future(learning.feed([trace(at) for at in range(4, 8)]))
        await settle()
        assert not feeding.done()
        gates.open_all("reflect p t0", "reflect p t1")
        await settle()
        assert not feeding.done()
        gates.open_all("reflect p t2", "reflect p t3")
        await settle()
        assert feeding.done()
        await feeding
        gates.open_all("reflect")
        await learning.drain()
    assert len(shelf.of()) == 4


async def test_windows_are_reported_with_their_delay() -> None:
    clock, sizes, shelf, gates = Clock(), Dealt(3, 2), Shelf(), Gates()
    async with learner(Scripted(late_curator(gates)), shelf, size=sizes, clock=clock) as learning:
        await learning.feed([trace(at, f"lesson {at}") for at in range(3)])
        await settle()
        clock.now += 7
        gates.open_all("curate")
        await settle()
        assert [each[:6] for each in sizes.reported] == [("p", 1, 3, 3, "size", 7.0)]
        assert (sizes.reported[0][6].size, sizes.reported[0][6].covered) == (3, 3)
        await learning.feed([trace(9, "one more")])
        await in_order(gates, min, learning.drain())
    assert [each[:6] for each in sizes.reported[1:]] == [("p", 2, 2, 1, "drain", 0.0)]


async def test_the_delay_runs_from_when_the_base_is_there() -> None:
    clock, sizes, shelf, gates = Clock(), Dealt(1), Shelf(), Gates()
    async with learner(Scripted(late_curator(gates)), shelf, size=sizes, clock=clock, max_staleness=0) as learning:
        await learning.feed([trace(1, "a")])
        await learning.feed([trace(2, "b")])
        await settle()
        clock.now += 10
        gates.open_all("curate t1")
        await settle()
        clock.now += 5
        gates.open_all("curate t2")
        await settle()
    assert [each[5] for each in sizes.reported] == [10.0, 5.0]


# Failures


def recovery(number: int, **fields: Any) -> Trace:
    """A trace from which the model-free method learns something."""
    steps = (
        Step("assistant", calls=(Call("1", "refund", {"amount": 10.5}),)),
        Step("tool", call="1", error="amount must be in cents"),
        Step("assistant", calls=(Call("2", "refund", {"amount": 1050}),)),
        Step("tool", "ok", call="2"),
    )
    return Trace(id=f"t{number}", prompt="p", steps=steps, outcome=Outcome(success=True), **fields)


@pytest.mark.parametrize(
    "failing", [fails, fails_later, lambda *_: None, lambda *_: 7], ids=["raises", "later", "None", "7"]
)
async def test_a_failed_reflection_is_replaced_by_the_model_free_one(failing: Any) -> None:
    seen: list[Reflection] = []

    class Fallback(ModelFree):
        def reflect(self, trace: Trace, shown: Sequence[Bullet]) -> Reflection:
            seen.append(super().reflect(trace, shown))
            return seen[-1]

    method = Scripted(reflector=failing)
    shelf = await learn_all(method, [recovery(1), recovery(2)], size=2, fallback=Fallback())
    assert [each.trace for each in seen] == ["t1", "t2"]
    assert len(shelf.of()[0].update.bullets) == 1
    assert shelf.of()[0].update.bullets[0].traces == 2
    assert shelf.of()[0].entry.rejected == ()
    assert shelf.of()[0].update.learned.traces == 2


async def test_a_reflection_by_the_fallback_is_marked() -> None:
    caught: list[Reflection] = []

    async def run() -> None:
        async with learner(Scripted(reflector=fails), Shelf(), size=2) as learning:
            await learning.feed([recovery(1)])
            window = next(learning._windows.close_all())
            caught.extend(window.reflections)

    await run()
    assert [each.fallback for each in caught] == [True]


async def test_what_the_model_free_method_cannot_reflect_is_rejected_with_the_reason() -> None:
    method = Scripted(reflector=fails_later)
    shelf = await learn_all(method, [trace(1), trace(2)], size=2, fallback=Scripted(reflector=fails))
    entry = shelf.of()[0].entry
    assert [id for id, _ in entry.traces] == ["t1", "t2"]
    assert entry.rejected == (("t1", "Broken: no answer"), ("t2", "Broken: no answer"))
    assert shelf.of()[0].update.learned.traces == 0


async def test_a_rejected_trace_leaves_the_others_of_its_window() -> None:
    def some(one: Trace, seen: Sequence[Bullet]) -> Reflection:
        return fails() if one.id == "t1" else teaches(one, seen)

    shelf = await learn_all(
        Scripted(reflector=some), [trace(1, "x"), trace(2, "y")], size=2, fallback=Scripted(reflector=fails)
    )
    assert contents(shelf.of()[0].update.bullets) == ["y"]
    assert shelf.of()[0].update.learned.traces == 1


async def test_a_reflection_that_something_else_cancels_is_replaced_too() -> None:
    async def cancelled(one: Trace, seen: Sequence[Bullet]) -> Reflection:
        connection = asyncio.ensure_future(asyncio.sleep(60))
        connection.cancel()
        await connection
        raise AssertionError("never here")

    with anyio.fail_after(5):
        shelf = await learn_all(Scripted(reflector=cancelled), [recovery(1), recovery(2)], size=2)
    assert len(shelf.of()) == 1
    assert shelf.of()[0].update.bullets[0].traces == 2


def errors_of(group: BaseException) -> list[BaseException]:
    if isinstance(group, BaseExceptionGroup):
        return [error for each in group.exceptions for error in errors_of(each)]
    return [group]


@pytest.mark.parametrize("late", [False, True])
async def test_an_error_of_the_sink_ends_the_run_and_nothing_later_is_published(late: bool) -> None:
    gates = Gates()
    method = Scripted(reflector=late_reflector(gates) if late else teaches)
    shelf = Shelf(fails_at=2)

    async def work() -> None:
        async with learner(method, shelf, size=2) as learning:
            await feed_all(learning, numbered(5, 2), [2])

    with pytest.raises(BaseException) as caught:  # noqa: PT011 - a group or the error itself
        await in_order(gates, choosing(Random(3)), work())
    assert any(isinstance(error, Broken) for error in errors_of(caught.value))
    assert [p.update.version for p in shelf.of()] == [1]
    assert shelf.calls == 2


async def test_leaving_without_a_drain_abandons_what_is_not_published() -> None:
    gates, shelf = Gates(), Shelf()
    async with learner(Scripted(reflector=late_reflector(gates)), shelf, size=2, in_flight=1) as learning:
        await learning.feed([trace(at) for at in range(6)])
        await settle()
    async with learner(Scripted(reflector=late_reflector(gates)), shelf, size=2, in_flight=1) as learning:
        await learning.feed([trace(at) for at in range(6)])
    assert shelf.versions == []


# Rollbacks and other amendments


def roll_back(to: PromptState, settings: Settings) -> Any:
    return lambda state: publish_rollback(state, to, settings)


async def test_windows_in_flight_are_curated_again_on_a_rollback() -> None:
    gates, shelf, settings = Gates(), Shelf(), Settings()
    method = Scripted(late_curator(gates))
    async with learner(method, shelf, size=2) as learning:
        feeding = asyncio.ensure_future(feed_all(learning, numbered(4, 2), [2]))
        for name in ("curate t0.1", "curate t2.1"):
            await settle()
            gates.open(name)
        await settle()
        assert len(shelf.of()) == 2
        assert gates.waiting == ["curate t4.1", "curate t6.1"]
        assert (3, {1}) in bases(method)
        await learning.amend("p", roll_back(PromptState("p"), settings))
        for _ in range(8):
            gates.open_all("curate")
            await settle()
        await feeding
    assert bases(method)[-2:] == [(3, set()), (4, set())]
    last = shelf.of()
    assert [p.update.kind for p in last] == ["window", "window", "rollback", "window", "window"]
    assert [held(p.update.bullets) for p in last] == [{1}, {1, 2}, set(), {3}, {3, 4}]
    assert [p.entry.window for p in last] == [1, 2, 2, 3, 4]
    assert [p.update.base for p in last[3:]] == [3, 3]


@examples(
    st.integers(0, 2), st.integers(1, 3), st.lists(st.integers(0, 60), max_size=3), st.booleans(), st.integers(0, 2**32)
)
def test_no_base_is_older_than_the_newest_rollback(
    staleness: int, size: int, when: list[int], slow_sink: bool, seed: int
) -> None:
    rng, gates = Random(seed), Gates()
    method = Scripted(late_curator(gates), reflector=late_reflector(gates))
    shelf, settings = Shelf(gates if slow_sink else None), Settings(max_staleness=staleness, fold_every=50)

    async def roll_back_now_and_then(learning: Learner) -> None:
        for turn in sorted(when):
            for _ in range(turn):
                await settle(3)
            states = [PromptState("p"), *(p.state for p in shelf.of())]
            await learning.amend("p", roll_back(rng.choice(states), settings))

    async def work() -> None:
        fields: dict[str, Any] = {"size": size, "max_staleness": staleness, "fold_every": 50}
        async with learner(method, shelf, **fields) as learning, anyio.create_task_group() as tasks:
            tasks.start_soon(feed_all, learning, numbered(5, size), [2])
            await roll_back_now_and_then(learning)

    asyncio.run(in_order(gates, choosing(rng), work()))
    published = shelf.of()
    assert [p.update.version for p in published] == list(range(1, len(published) + 1))
    assert [p.entry.window for p in published if p.entry.kind == "window"] == [1, 2, 3, 4, 5]
    by_version = {0: PromptState("p"), **{p.update.version: p.state for p in published}}
    newest_rollback = 0
    for p in published:
        if p.entry.kind == "rollback":
            newest_rollback = p.update.version
            continue
        base, window = by_version[p.update.base].now, p.entry.window
        assert p.update.base >= newest_rollback
        assert base.window <= max(window - 1 - staleness, 0) or p.update.base == newest_rollback
        # None newer was allowed: the next version after the base holds a later window, or came after the curation.
        following = [
            each
            for each in published
            if p.update.base < each.update.version < p.update.version and each.entry.kind == "window"
        ]
        if following and p.update.base != newest_rollback:
            assert following[0].entry.window > window - 1 - staleness


async def test_an_edit_between_two_windows_stays() -> None:
    shelf, settings = Shelf(), Settings()
    async with learner(Scripted(), shelf, size=2) as learning:
        await learning.feed(numbered(1, 2))
        pin = Delta(people=frozenset({PersonFact(name_of("lesson 1"), 1, "edit", "as a person says", "OTHERS")}))
        published = await learning.amend("p", lambda state: publish_delta(state, pin, settings, kind="edit"))
        assert published.update.changed
        await feed_all(learning, numbered(3, 2)[2:])
    assert contents(shelf.of()[-1].update.bullets) == ["as a person says", "lesson 2", "lesson 3"]
    assert [p.update.kind for p in shelf.of()] == ["window", "edit", "window", "window"]


async def test_amendments_wait_for_a_publish_under_way() -> None:
    gates = Gates()
    shelf, settings = Shelf(gates), Settings()
    async with learner(Scripted(), shelf, size=2) as learning:
        feeding = asyncio.ensure_future(learning.feed(numbered(1, 2)))
        await settle()
        amending = asyncio.ensure_future(learning.amend("p", roll_back(PromptState("p"), settings)))
        await settle()
        assert gates.waiting == ["sink p 1"]
        gates.open("sink p 1")
        await settle()
        gates.open("sink p 2")
        await amending
        await feeding
    assert [p.update.kind for p in shelf.of()] == ["window", "rollback"]


async def test_what_is_carried_waits_for_an_amendment_under_way() -> None:
    gates = Gates()
    shelf, settings, clock = Shelf(gates), Settings(), Clock()
    async with learner(Scripted(leaves_all), shelf, size=2, max_wait=60.0, clock=clock) as learning:
        feeding = asyncio.ensure_future(learning.feed(numbered(1, 2)))
        await settle()
        gates.open("sink p 1")
        await feeding
        imported = import_delta([Bullet(section="OTHERS", content="from a file")])
        amending = asyncio.ensure_future(
            learning.amend("p", lambda state: publish_delta(state, imported, settings, kind="import"))
        )
        await settle()
        clock.now += 100
        ticking = asyncio.ensure_future(learning.tick())
        for _ in range(4):
            await settle()
            gates.open_all("sink")
        await amending
        await ticking
    assert [p.update.version for p in shelf.of()] == [1, 2, 3]
    assert contents(shelf.of()[-1].update.bullets) == ["from a file", "lesson 1"]


async def test_a_window_that_closes_while_what_is_carried_waits_goes_first() -> None:
    gates = Gates()
    shelf, settings, clock = Shelf(gates), Settings(), Clock()
    async with learner(Scripted(leaves_all), shelf, size=2, max_wait=60.0, clock=clock) as learning:
        feeding = asyncio.ensure_future(learning.feed(numbered(1, 2)))
        await settle()
        gates.open("sink p 1")
        await feeding
        amending = asyncio.ensure_future(
            learning.amend("p", lambda state: publish_delta(state, Delta(), settings, kind="edit"))
        )
        await settle()
        clock.now += 100
        ticking = asyncio.ensure_future(learning.tick())
        await settle()
        feeding = asyncio.ensure_future(learning.feed(numbered(2, 2)[2:]))
        for _ in range(6):
            await settle()
            gates.open_all("sink")
        await asyncio.gather(amending, ticking, feeding)
    assert [(p.update.kind, p.entry.window, p.entry.batch_size) for p in shelf.of()] == [
        ("window", 1, 2),
        ("edit", 1, 0),
        ("window", 2, 2),
    ]


async def test_what_is_carried_waits_for_a_window_under_way() -> None:
    gates, shelf, clock = Gates(), Shelf(), Clock()
    method = Scripted(late_curator(gates, leaves_all))
    async with learner(method, shelf, size=2, max_wait=60.0, clock=clock, max_staleness=0) as learning:
        feeding = asyncio.ensure_future(learning.feed(numbered(1, 2)))
        await settle()
        gates.open_all("curate")
        await feeding
        await settle()
        assert len(shelf.of()[0].state.carried) == 1
        feeding = asyncio.ensure_future(learning.feed(numbered(2, 2)[2:]))
        await settle()
        clock.now += 100
        ticking = asyncio.ensure_future(learning.tick())
        for _ in range(4):
            await settle()
            gates.open_all("curate")
        await feeding
        await ticking
        await learning.drain()
    assert [p.entry.window for p in shelf.of()] == [1, 2, 3]


# Bounds and time


async def test_the_span_closes_windows_by_the_places_of_traces_and_of_what_held_none() -> None:
    traces = [trace(at, prompt=prompt) for at, prompt in enumerate("abaac")]
    places = [100, 104, 109, 110, 115]
    versions = []
    for chunks in ([5], [1, 1, 1, 1, 1], [2, 3], [4, 1]):
        shelf = Shelf()
        async with learner(Scripted(), shelf, size=9, span=10) as learning:
            at = 0
            for chunk in chunks:
                await learning.feed(traces[at : at + chunk], places[at : at + chunk])
                at += chunk
            await learning.passed(119)
            await learning.passed(120)
            await learning.drain()
        versions.append([(p.update.prompt, p.entry.batch_size, p.entry.stats["closed_by"]) for p in shelf.versions])
    assert versions == [[("a", 2, "span"), ("b", 1, "span"), ("a", 1, "span"), ("c", 1, "drain")]] * 4


async def test_the_bound_closes_the_window_with_the_oldest_first_trace() -> None:
    traces = [trace(at, prompt=prompt) for at, prompt in enumerate("abacdd")]
    shelf = await learn_all(Scripted(), traces, size=10, open_traces=4)
    assert [(p.update.prompt, p.entry.batch_size, p.entry.stats["closed_by"]) for p in shelf.versions] == [
        ("a", 2, "bound"),
        ("b", 1, "drain"),
        ("c", 1, "drain"),
        ("d", 2, "drain"),
    ]


@examples(
    st.lists(st.sampled_from("abcd"), max_size=40),
    st.integers(1, 4),
    st.integers(1, 8),
    st.lists(st.integers(1, 9), min_size=1, max_size=4),
)
@example(list("aaabaccddab"), 3, 5, [2, 3])  # one chunk fills a window of a, opens one of b, then opens another of a
def test_the_bound_does_not_depend_on_chunks(log: list[str], size: int, bound: int, chunks: list[int]) -> None:
    traces = [trace(at, f"lesson {at}", prompt=prompt) for at, prompt in enumerate(log)]

    def run(chunks: Sequence[int]) -> Shelf:
        return asyncio.run(learn_all(Scripted(), traces, chunks, size=size, open_traces=bound))

    one, other = run(chunks), run([1])
    for prompt in "abcd":
        assert one.lines(prompt) == other.lines(prompt)


async def test_a_window_closes_after_max_wait() -> None:
    clock, shelf = Clock(), Shelf()
    async with learner(Scripted(), shelf, size=9, max_wait=30.0, clock=clock) as learning:
        await learning.feed([trace(1, "a", prompt="a")])
        clock.now += 20
        await learning.feed([trace(2, "b", prompt="b"), trace(3, "c", prompt="a")])
        clock.now += 9.9
        await learning.tick()
        assert shelf.versions == []
        clock.now += 0.2
        await learning.tick()
        assert [(p.update.prompt, p.entry.batch_size, p.entry.stats["closed_by"]) for p in shelf.versions] == [
            ("a", 2, "time")
        ]
        clock.now += 20
        await learning.tick()
        assert [p.update.prompt for p in shelf.versions] == ["a", "b"]
        await learning.tick()
        assert len(shelf.versions) == 2


# Stragglers


DEADLINE = 5.0


def stuck(gates: Gates, *late: str) -> Any:
    """A reflector that answers at once but for the traces named: those wait for their gates."""

    async def wait(one: Trace, seen: Sequence[Bullet]) -> Reflection:
        await gates.wait(one.id)
        return await value_of(teaches(one, seen))

    return lambda one, seen: wait(one, seen) if one.id in late else teaches(one, seen)


async def late(learning: Learner, clock: Clock, by: float = DEADLINE) -> None:
    """Let time pass, and the learner look at the clock."""
    await settle()
    clock.now += by
    await learning.tick()


@asynccontextmanager
async def ticking(learning: Learner, clock: Clock) -> AsyncIterator[None]:
    """Let time pass for as long as the block runs."""

    async def tick() -> None:
        while True:
            await late(learning, clock)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(tick)
        yield
        tasks.cancel_scope.cancel()


async def test_a_straggler_moves_to_the_next_window_once() -> None:
    gates, shelf, clock = Gates(), Shelf(), Clock()
    method = Scripted(reflector=stuck(gates, "t1"))
    async with learner(method, shelf, size=2, straggler_deadline=DEADLINE, clock=clock) as learning:
        await learning.feed([trace(1, "late"), trace(2, "in time")])
        await late(learning, clock, DEADLINE - 0.1)
        await settle()
        assert shelf.of() == []
        await late(learning, clock, 0.1)
        await shelf.reaches(1)
        assert [id for id, _ in shelf.of()[0].entry.traces] == ["t2"]
        gates.open("t1")
        await learning.feed([trace(3, "next")])
        await learning.drain()
    assert [[id for id, _ in p.entry.traces] for p in shelf.of()] == [["t2"], ["t1", "t3"]]
    assert contents(shelf.of()[1].update.bullets) == ["in time", "late", "next"]


async def test_a_straggler_that_is_late_twice_is_reflected_without_a_model() -> None:
    gates, shelf, clock = Gates(), Shelf(), Clock()
    method = Scripted(reflector=stuck(gates, "t1"))
    async with learner(method, shelf, size=2, straggler_deadline=DEADLINE, clock=clock) as learning:
        await learning.feed([recovery(1), trace(2)])
        await late(learning, clock)
        await shelf.reaches(1)
        await learning.feed([trace(3)])
        await late(learning, clock)
        await shelf.reaches(2)
        await settle()
        assert gates.waiting == []  # nobody pays for its answer any longer
        await learning.drain()
    assert [[id for id, _ in p.entry.traces] for p in shelf.of()] == [["t2"], ["t1", "t3"]]
    assert len(shelf.of()[1].update.bullets) == 1
    assert shelf.of()[1].entry.rejected == ()
    assert [one for one, _ in method.reflected] == ["t1", "t2", "t3"]
    assert gates.waiting == []


async def test_a_window_of_stragglers_alone_moves_them_all_and_makes_its_version() -> None:
    gates, shelf, clock = Gates(), Shelf(), Clock()
    method = Scripted(reflector=stuck(gates, "t1", "t2"))
    async with learner(method, shelf, size=2, straggler_deadline=DEADLINE, clock=clock) as learning:
        await learning.feed([trace(1, "late"), trace(2, "later")])
        await late(learning, clock)
        await shelf.reaches(1)
        gates.open_all("t")
        await learning.drain()
    assert [[id for id, _ in p.entry.traces] for p in shelf.of()] == [[], ["t1", "t2"]]
    assert [p.update.changed for p in shelf.of()] == [False, True]
    assert contents(shelf.of()[1].update.bullets) == ["late", "later"]


async def test_a_window_without_traces_leaves_alone_what_is_carried() -> None:
    gates, shelf, clock = Gates(), Shelf(), Clock()

    async def never(given: Sequence[Given], base: Sequence[Bullet]) -> Curation:
        return Curation()

    method = Scripted(never, reflector=stuck(gates, "t2"))
    async with learner(method, shelf, size=1, straggler_deadline=DEADLINE, clock=clock) as learning:
        await learning.feed([trace(1, "carried")])
        await shelf.reaches(1)
        await learning.feed([trace(2, "late")])
        await late(learning, clock)
        await shelf.reaches(2)
    assert shelf.of()[1].entry.traces == ()
    assert [(each.given.trace, each.due) for each in shelf.of()[1].state.carried] == [("t1", 3)]


async def test_the_straggler_deadline_runs_from_when_the_window_closed() -> None:
    gates, shelf, clock = Gates(), Shelf(), Clock()
    method = Scripted(reflector=stuck(gates, "t1"))
    async with learner(method, shelf, size=2, straggler_deadline=DEADLINE, clock=clock) as learning:
        await learning.feed([trace(1, "slow")])
        clock.now += 10 * DEADLINE
        await learning.feed([trace(2, "next")])
        await late(learning, clock, DEADLINE - 0.1)
        await settle()
        assert shelf.of() == [], "the window was open for long, but not closed for long"
        await late(learning, clock, 0.1)
        await shelf.reaches(1)
        gates.open_all("t")
    assert [id for id, _ in shelf.of()[0].entry.traces] == ["t2"]


async def test_a_straggler_that_no_method_can_reflect_is_rejected() -> None:
    gates, shelf, clock = Gates(), Shelf(), Clock()
    method = Scripted(reflector=stuck(gates, "t1"))
    fallback = Scripted(reflector=fails)
    async with learner(method, shelf, size=2, straggler_deadline=DEADLINE, fallback=fallback, clock=clock) as learning:
        await learning.feed([trace(1), trace(2)])
        await late(learning, clock)
        await shelf.reaches(1)
        await learning.feed([trace(3)])
        await late(learning, clock)
        await shelf.reaches(2)
    assert [p.entry.rejected for p in shelf.of()] == [(), (("t1", "Broken: no answer"),)]


async def test_drain_publishes_stragglers_too() -> None:
    gates, shelf, clock = Gates(), Shelf(), Clock()
    method = Scripted(reflector=stuck(gates, "t1", "t3"))
    async with learner(method, shelf, size=3, straggler_deadline=DEADLINE, clock=clock) as learning:
        await learning.feed([recovery(1), trace(2), trace(3)])
        async with ticking(learning, clock):
            await learning.drain()
        published = [id for p in shelf.of() for id, _ in p.entry.traces]
    assert sorted(published) == ["t1", "t2", "t3"]
    assert gates.waiting == []


async def test_many_stragglers_are_all_published_once() -> None:
    gates, shelf, clock = Gates(), Shelf(), Clock()
    names = [f"t{at}" for at in range(0, 20, 2)]
    method = Scripted(reflector=stuck(gates, *names))
    async with (
        learner(method, shelf, size=3, straggler_deadline=DEADLINE, in_flight=2, clock=clock) as learning,
        ticking(learning, clock),
    ):
        for at in range(20):
            await learning.feed([trace(at, f"lesson {at}")])
        await learning.drain()
    published = [id for p in shelf.of() for id, _ in p.entry.traces]
    assert sorted(published) == sorted(f"t{at}" for at in range(20))
    assert [p.entry.window for p in shelf.of()] == list(range(1, len(shelf.of()) + 1))


async def test_feed_does_not_wait_for_ever_for_stragglers_that_went_over_the_bound() -> None:
    names = [f"t{at}" for at in range(1, 5)]
    gates, shelf, clock = Gates(), Shelf(), Clock()
    method = Scripted(reflector=stuck(gates, *names))
    async with learner(method, shelf, size=10, open_traces=3, straggler_deadline=DEADLINE, clock=clock) as learning:
        feeding = asyncio.ensure_future(learning.feed([trace(at) for at in range(1, 5)]))
        await late(learning, clock)
        # The fourth trace closed the first window; as stragglers the four are in an open window and over the bound yet
        # again. No more can come while feed waits for them, so that window has to close here, or none ever would.
        assert not feeding.done()
        await late(learning, clock)
        await settle()
        assert feeding.done()
        assert gates.waiting == []
    assert [[id for id, _ in p.entry.traces] for p in shelf.of()] == [[], names]
    assert [p.entry.stats["closed_by"] for p in shelf.of()] == ["bound", "bound"]


async def test_nothing_that_is_carried_follows_a_window_that_was_not_published() -> None:
    async def later(given: Sequence[Given], base: Sequence[Bullet]) -> Curation:
        return Curation()

    shelf = Shelf(fails_at=2)

    async def learn() -> None:
        async with learner(Scripted(later), shelf, size=4) as learning:
            await learning.feed([trace(at, f"lesson {at}") for at in range(7)])
            await learning.drain()

    with pytest.raises(BaseExceptionGroup):
        await learn()
    assert [p.entry.window for p in shelf.of()] == [1]


async def test_who_goes_on_after_a_lost_window_is_told_and_does_not_wait_for_ever() -> None:
    shelf = Shelf(fails_at=2)
    async with learner(Scripted(), shelf, size=2) as learning:
        await learning.feed([trace(1), trace(2)])
        with pytest.raises(Broken):
            await learning.feed([trace(3), trace(4)])
        with pytest.raises(WindowLost, match="'p'"):
            await learning.amend("p", lambda state: publish_delta(state, Delta(), Settings(), kind="edit"))
        await learning.feed([trace(5, prompt="q"), trace(6, prompt="q")])
        assert [(p.update.prompt, p.entry.window) for p in shelf.versions] == [("p", 1), ("q", 1)]


async def test_a_slow_sink_holds_up_its_own_prompt_and_no_other() -> None:
    opened, published = anyio.Event(), []

    async def sink(made: Published) -> None:
        if made.update.prompt == "slow":
            await opened.wait()
        published.append((made.update.prompt, made.update.version))

    async with Learner(Scripted(), sink, sizes=FixedSize(2), clock=Clock()) as learning:
        with anyio.fail_after(10):
            await learning.feed([trace(at, prompt=prompt) for at, prompt in enumerate(["slow", "quick"] * 4)])
            await settle()
            assert published == [("quick", 1), ("quick", 2)]
            opened.set()
            await learning.drain()
    assert sorted(published) == [("quick", 1), ("quick", 2), ("slow", 1), ("slow", 2)]


@pytest.mark.parametrize("chunks", [[1], [3, 2], [50]])
def test_versions_are_the_same_whether_made_directly_or_in_tasks(chunks: list[int]) -> None:
    traces = [trace(at, f"lesson {at % 7}", prompt="abc"[at % 3]) for at in range(50)]
    direct, tasks = (
        asyncio.run(learn_all(Scripted(saturated(1)), traces, chunks, size=4, direct=each)) for each in (True, False)
    )
    for prompt in "abc":
        assert direct.lines(prompt) == tasks.lines(prompt)


# After a crash


@examples(
    st.lists(st.sampled_from("abc"), min_size=1, max_size=30),
    st.integers(1, 4),
    st.integers(2, 8),
    st.integers(0, 3),
    st.integers(0, 40),
)
def test_a_killed_run_that_is_resumed_ends_with_the_same_bytes(
    log: list[str], size: int, bound: int, staleness: int, kill: int
) -> None:
    traces = [trace(at, f"lesson {at % 5}", prompt=prompt) for at, prompt in enumerate(log)]
    fields: dict[str, Any] = {
        "size": size,
        "open_traces": bound,
        "max_staleness": staleness,
        "fold_every": staleness + 2,
    }
    whole = asyncio.run(learn_all(Scripted(saturated(1)), traces, [3], **fields))

    async def killed() -> Shelf:
        shelf = Shelf(fails_at=kill + 1)
        with suppress(BaseExceptionGroup):  # the sink's error, where there were so many versions
            await learn_all(Scripted(saturated(1)), traces, [3], shelf=shelf, **fields)
            return shelf

        def held_by(prompt: str) -> Callable[[int], int | None]:
            return lambda window: counts.get((prompt, window))

        again = Shelf()
        again.versions, again.states = shelf.versions, shelf.states
        done = {(p.update.prompt, id) for p in shelf.versions for id, _ in p.entry.traces}
        counts = {(p.update.prompt, p.entry.window): len(p.entry.traces) for p in shelf.versions}
        async with learner(Scripted(saturated(1)), again, **fields) as learning:
            for prompt in {p.update.prompt for p in shelf.versions}:
                learning.resume(prompt, 0)
            for one in traces:
                if (one.prompt, one.id) in done:
                    await learning.pass_over(one.prompt, held_by(one.prompt))
                else:
                    await learning.feed([one])
            await learning.drain()
        return again

    resumed = asyncio.run(killed())
    for prompt in "abc":
        assert resumed.lines(prompt) == whole.lines(prompt)


async def test_a_log_that_is_another_one_begins_a_window_of_its_own() -> None:
    shelf = Shelf()
    async with learner(Scripted(), shelf, size=3) as learning:
        await learning.feed([trace(at) for at in range(5)])
    assert len(shelf.of()) == 1
    async with learner(Scripted(), shelf, size=3) as learning:
        learning.resume("p", 0)
        await learning.pass_over("p", {1: 3}.get)
        learning.begin_anew("p")
        await learning.feed([trace(at) for at in range(10, 13)])
        assert [p.entry.window for p in shelf.of()] == [1, 2]


async def test_published_is_what_the_sink_was_given() -> None:
    shelf = Shelf()
    async with learner(Scripted(), shelf, size=2, lineage="9f2c") as learning:
        await learning.feed(numbered(1, 2))
        assert isinstance(shelf.of()[0], Published)
        assert shelf.of()[0].update.lineage == "9f2c"
        assert learning.lane("p").state == shelf.of()[0].state
