"""A sink that takes its time holds up its own prompt and no other: whoever feeds, ticks or drains."""

from __future__ import annotations

from collections.abc import Awaitable, Sequence

import anyio
import pytest

from operators.lane import WindowLost
from operators.learner import Learner
from operators.method import Method
from operators.settings import Settings
from operators.sizes import FixedSize
from operators.values import Bullet, Reflection, Trace
from operators.version import Published
from tests.operators.scripted import Broken, Clock, Scripted, Shelf, learner, leaves_all, settle, teaches, trace

MAX_WAIT, DEADLINE = 60.0, 5.0


class SlowSink:
    """Takes every version at once but those of the prompt ``slow``, which wait until it is let go."""

    def __init__(self) -> None:
        self.taken: list[tuple[str, int]] = []
        self._gate = anyio.Event()

    async def __call__(self, made: Published) -> None:
        if made.update.prompt == "slow":
            await self._gate.wait()
        self.taken.append((made.update.prompt, made.entry.window))

    def hold(self) -> None:
        """Hold versions up from now on."""
        self._gate = anyio.Event()

    def let_go(self) -> None:
        """Take what waits, and all that comes."""
        self._gate.set()


def learning_into(sink: SlowSink, clock: Clock, method: Method | None = None) -> Learner:
    settings = Settings(max_wait=MAX_WAIT, straggler_deadline=DEADLINE)
    return Learner(method or Scripted(), sink, sizes=FixedSize(2), clock=clock, settings=settings)


def pairs(*prompts: str, count: int = 1) -> Sequence[Trace]:
    """``count`` traces of each prompt; the slow one comes first, so that it is first in every turn."""
    return [trace(at, f"lesson {at}", prompt=prompt) for at, prompt in enumerate(prompts * count)]


async def test_a_tick_that_closes_windows_waits_for_no_sink() -> None:
    sink, clock = SlowSink(), Clock()
    with anyio.fail_after(10):
        async with learning_into(sink, clock) as learning:
            await learning.feed(pairs("slow", "quick"))
            clock.now += MAX_WAIT
            await learning.tick()
            await settle()
            assert sink.taken == [("quick", 1)]
            # The clock goes on, and so does the other prompt.
            await learning.feed(pairs("quick"))
            clock.now += MAX_WAIT
            await learning.tick()
            await settle()
            assert sink.taken == [("quick", 1), ("quick", 2)]
            sink.let_go()
            await learning.drain()
    assert sink.taken == [("quick", 1), ("quick", 2), ("slow", 1)]


async def test_a_tick_lets_in_what_idle_prompts_carry_without_waiting_for_a_sink() -> None:
    sink, clock = SlowSink(), Clock()
    sink.let_go()
    with anyio.fail_after(10):
        async with learning_into(sink, clock, Scripted(leaves_all)) as learning:
            await learning.feed(pairs("slow", "quick", count=2))
            await settle()
            assert sorted(sink.taken) == [("quick", 1), ("slow", 1)]
            sink.hold()
            clock.now += MAX_WAIT
            await learning.tick()
            await settle()
            assert sink.taken[2:] == [("quick", 2)]
            # A tick that comes while a version is still under way makes it no second time.
            await learning.tick()
            await settle()
            sink.let_go()
            await learning.drain()
    assert sink.taken[2:] == [("quick", 2), ("slow", 2)]


async def test_a_drain_holds_no_prompt_up_for_the_sink_of_another() -> None:
    sink, clock = SlowSink(), Clock()
    with anyio.fail_after(10):
        async with learning_into(sink, clock) as learning, anyio.create_task_group() as tasks:
            await learning.feed(pairs("slow", "quick"))
            tasks.start_soon(learning.drain)
            await settle()
            assert sink.taken == [("quick", 1)]
            sink.let_go()
    assert sink.taken == [("quick", 1), ("slow", 1)]


async def test_a_drain_lets_in_what_each_prompt_carries_whatever_the_sink_of_another_does() -> None:
    sink, clock = SlowSink(), Clock()
    sink.let_go()
    with anyio.fail_after(10):
        async with learning_into(sink, clock, Scripted(leaves_all)) as learning, anyio.create_task_group() as tasks:
            await learning.feed(pairs("slow", "quick", count=2))
            await settle()
            sink.hold()
            tasks.start_soon(learning.drain)
            await settle()
            assert sink.taken[2:] == [("quick", 2)]
            sink.let_go()
    assert sink.taken[2:] == [("quick", 2), ("slow", 2)]


async def test_a_tick_that_lets_stragglers_go_waits_for_no_sink() -> None:
    async def never() -> Reflection:
        await anyio.sleep_forever()
        raise AssertionError("for ever is over")

    def reflector(one: Trace, seen: Sequence[Bullet]) -> Reflection | Awaitable[Reflection]:
        return never() if one.session == "late" else teaches(one, seen)

    sink, clock = SlowSink(), Clock()
    with anyio.fail_after(10):
        async with learning_into(sink, clock, Scripted(reflector=reflector)) as learning:
            for at, prompt in enumerate(("slow", "quick")):
                await learning.feed([trace(at, prompt=prompt, session="late"), trace(at + 10, prompt=prompt)])
                await learning.feed([trace(at + 20, prompt=prompt)])
            await settle()
            assert sink.taken == []
            clock.now += DEADLINE
            await learning.tick()  # the late ones move on, which fills the second windows
            await settle()
            assert sink.taken == [("quick", 1)]
            clock.now += DEADLINE
            await learning.tick()
            await settle()
            assert sink.taken == [("quick", 1), ("quick", 2)]
            sink.let_go()
            await learning.drain()
    assert sink.taken[2:] == [("slow", 1), ("slow", 2)]


async def test_nothing_follows_what_was_carried_into_a_sink_that_failed() -> None:
    shelf, clock = Shelf(fails_at=2), Clock()

    async def work() -> None:
        async with learner(Scripted(leaves_all), shelf, size=2, max_wait=MAX_WAIT, clock=clock) as learning:
            await learning.feed(pairs("p", "p"))
            clock.now += MAX_WAIT
            with pytest.raises(Broken):
                await learning.tick()
            with pytest.raises(WindowLost):
                await learning.tick()
            await learning.feed(pairs("p", "p"))
            await learning.drain()

    with anyio.fail_after(10), pytest.raises(BaseExceptionGroup) as caught:
        await work()
    assert caught.value.subgroup(WindowLost)
    assert [(each.update.version, each.entry.window) for each in shelf.of()] == [(1, 1)]
