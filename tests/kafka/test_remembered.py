"""Reflections that are paid for once, and those that nobody waits for any more."""

from __future__ import annotations

import gc
from collections.abc import Awaitable, Sequence

import anyio

from operators.calls import Calls
from operators.modelfree import ModelFree
from operators.values import Bullet, Reflection, Trace
from stream.kafka.remembered import Place, Reflections, Remembering


class Slow:
    """Reflections that wait for somebody to let them end."""

    name = "slow"
    reduces = False

    def __init__(self) -> None:
        self.calls = 0
        self.end = anyio.Event()
        self.curate = ModelFree().curate
        self.reduce = ModelFree().reduce

    def reflect(self, trace: Trace, seen: Sequence[Bullet]) -> Reflection | Awaitable[Reflection]:
        self.calls += 1
        return self._later(trace.id)

    async def _later(self, id: str) -> Reflection:
        await self.end.wait()
        return Reflection(id)


def place(trace: Trace) -> Place:
    return "traces", 0, int(trace.id)


async def reflect(calls: Calls, method: Remembering, number: int) -> None:
    made = method.reflect(Trace(id=str(number)), ())
    assert not isinstance(made, Reflection)
    await calls.wait(made)


async def test_what_is_finished_is_not_asked_for_again() -> None:
    slow, kept = Slow(), Reflections(kept=2)
    method = Remembering(slow, kept, place)
    slow.end.set()
    for number in range(3):
        await reflect(Calls(1), method, number)
    assert slow.calls == 3
    assert isinstance(method.reflect(Trace(id="2"), ()), Reflection)
    assert list(kept.found) == [("traces", 0, 1), ("traces", 0, 2)]
    kept.drop(("traces", 0, 2))
    await reflect(Calls(1), method, 2)
    assert slow.calls == 4


async def test_reflections_that_wait_for_their_turn_end_without_a_warning() -> None:
    """Report 4: a revoke drops what is not finished; what never began must leave nothing behind, not even a warning."""
    slow, kept, calls = Slow(), Reflections(), Calls(1)
    method = Remembering(slow, kept, place)
    async with anyio.create_task_group() as tasks:
        for number in range(5):
            tasks.start_soon(reflect, calls, method, number)
        await anyio.wait_all_tasks_blocked()
        tasks.cancel_scope.cancel()
    gc.collect()  # the warning is an error then
    assert slow.calls == 5
    assert not kept.found
