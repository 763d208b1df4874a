"""Calls under one limiter: plain values cost no task, failures are values, results keep their order."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import pytest

from operators.calls import Calls, Failed, attempt
from tests.operators.scripted import Broken, Gates, fails, fails_later, settle

Late = Callable[..., str | Awaitable[str]]


def late_by(gates: Gates) -> Late:
    """A call that waits for the gate of its argument, and answers with it."""

    async def late(name: str) -> str:
        await gates.wait(name)
        return name

    return late


async def _wait(calls: Calls, call: str | Awaitable[str]) -> str | Failed:
    assert not isinstance(call, str)
    return await calls.wait(call)


def is_failed(result: object) -> bool:
    return isinstance(result, Failed) and isinstance(result.error, Broken)


async def test_plain_values_come_back_without_a_task() -> None:
    before = asyncio.all_tasks()

    def double(value: int) -> int:
        assert asyncio.all_tasks() == before
        return 2 * value

    assert await Calls(1).gather(double, [(1,), (2,), (3,)]) == [2, 4, 6]
    assert await Calls(1).gather(double, []) == []


async def test_results_keep_their_order_whatever_completes_first() -> None:
    gates = Gates()
    late = late_by(gates)

    def some(name: str) -> Any:
        return name if name == "b" else late(name)

    gathering = asyncio.ensure_future(Calls(9).gather(some, [("a",), ("b",), ("c",)]))
    for name in ("c", "a"):
        await settle()
        gates.open(name)
    assert await gathering == ["a", "b", "c"]
    assert gates.passed == ["c", "a"]


@pytest.mark.parametrize("failing", [fails, fails_later])
async def test_a_failure_is_a_value_and_takes_no_other_with_it(failing: Any) -> None:
    async def fine(*_: object) -> str:
        return "fine"

    functions = [failing, fine, failing, lambda: "plain"]
    results = await Calls(2).gather(lambda function: function(), [(each,) for each in functions])
    assert [is_failed(result) for result in results] == [True, False, True, False]
    assert results[1::2] == ["fine", "plain"]
    assert is_failed((await Calls(2).gather(failing, [()]))[0])


def test_what_is_raised_at_once_is_a_failure() -> None:
    assert is_failed(attempt(fails))
    assert attempt(max, 1, 2) == 2
    with pytest.raises(KeyboardInterrupt):
        attempt(_interrupted)


def _interrupted() -> None:
    raise KeyboardInterrupt


async def test_no_more_than_the_limit_are_under_way() -> None:
    gates, calls = Gates(), Calls(3)
    late = late_by(gates)
    gathering = asyncio.ensure_future(calls.gather(late, [(f"g{at}",) for at in range(10)]))
    await settle()
    while gates.waiting:
        assert len(gates.waiting) <= 3
        gates.open(gates.waiting[-1])
        await settle()
    assert len(await gathering) == 10
    assert gates.most == 3


async def test_curators_go_before_reflections() -> None:
    gates, calls = Gates(), Calls(1)
    late = late_by(gates)

    async def curate() -> None:
        await calls.gather(late, [("curator",)])

    async with anyio.create_task_group() as tasks:
        for name in ("reflection 1", "reflection 2", "reflection 3"):
            tasks.start_soon(_wait, calls, late(name))
            await settle()
        tasks.start_soon(curate)
        await settle()
        order = []
        while gates.waiting:
            order += gates.waiting
            gates.open_all("")
            await settle()
    assert order == ["reflection 1", "curator", "reflection 2", "reflection 3"]


@pytest.mark.parametrize("waits", ["under way", "in the queue", "at its turn"])
async def test_a_cancelled_call_gives_its_place_back(waits: str) -> None:
    gates, calls = Gates(), Calls(1)
    late = late_by(gates)
    first = asyncio.ensure_future(_wait(calls, late("first")))
    await settle()
    second = asyncio.ensure_future(_wait(calls, late("second")))
    await settle()
    if waits == "under way":
        first.cancel()
    elif waits == "in the queue":
        second.cancel()
        await settle()
        gates.open("first")
    else:
        gates.open("first")
        await first
        second.cancel()
    await settle()
    third = asyncio.ensure_future(_wait(calls, late("third")))
    await settle()
    gates.open_all("second")
    await settle()
    gates.open("third")
    assert await third == "third"
    await asyncio.gather(first, second, return_exceptions=True)


async def test_a_cancelled_call_is_cancelled_and_no_failure() -> None:
    gates, calls = Gates(), Calls(2)
    late = late_by(gates)
    waiting = asyncio.ensure_future(_wait(calls, late("a")))
    await settle()
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    with anyio.move_on_after(0.001) as scope:
        await calls.gather(late, [("b",), ("c",)])
    assert scope.cancelled_caught


@pytest.mark.parametrize("count", [1, 3])
async def test_what_a_call_awaited_may_be_cancelled_without_it(count: int) -> None:
    async def broken_connection() -> str:
        connection = asyncio.ensure_future(asyncio.sleep(60))
        connection.cancel()
        await connection
        return "never"

    call: Late = broken_connection
    results = await Calls(2).gather(call, [()] * count)
    assert [isinstance(result, Failed) for result in results] == [True] * count
