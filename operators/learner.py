"""The learner: traces of any number of prompts in, versions out, one window after another.

A trace is reflected as soon as it arrives. A closed window is curated when its reflections and its base are there, on
that base and no other, so what is learned does not depend on speed; windows of a prompt publish in order, windows of
different prompts never wait for each other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import TracebackType

import anyio
from anyio.abc import TaskGroup

from operators.calls import Calls
from operators.lane import Lane
from operators.learn import Asked, ask, enter_all, learn_from
from operators.method import Method
from operators.modelfree import ModelFree
from operators.reflect import Reflector, Slot, settled
from operators.settings import Settings
from operators.sink import Sink
from operators.sizes import Sizes
from operators.state import PromptState, Standing, base_for
from operators.values import Bullet, Trace
from operators.version import Published, publish_window
from operators.when import newest
from operators.window import Window, Windows, by_prompt


class Learner:
    """Use it as an async context manager; leaving it without :meth:`drain` abandons what is not published.

    :param sink: makes a version durable; the next window of the prompt publishes after it returns.
    :param sizes: who decides how large windows are.
    :param load: the state a prompt starts from.
    :param clock: seconds, monotonic.
    :param seen: the bullets that a trace's agent had read.
    :param digest: the content digest of a trace, in hex, for the log.
    :param calls: the limiter that several learners of one service share; one of its own where there is none.
    :param arrival: the place of a trace among all that arrived, where :meth:`feed` is told such places.
    :param span: a window closes when something arrives this far past its first trace, in places; None for no limit.
    :param direct: the sink never suspends, so a version may be made where its window closes, without a task. Else each
        is made in a task of its own, or one slow sink would hold up every prompt.
    """

    def __init__(
        self,
        method: Method,
        sink: Sink,
        *,
        sizes: Sizes,
        clock: Callable[[], float],
        settings: Settings | None = None,
        load: Callable[[str], PromptState] = PromptState,
        seen: Callable[[Trace, PromptState], Sequence[Bullet]] | None = None,
        digest: Callable[[Trace], str] = lambda trace: "",
        lineage: str = "",
        fallback: Method | None = None,
        calls: Calls | None = None,
        arrival: Callable[[Trace], int] | None = None,
        span: int | None = None,
        direct: bool = False,
    ) -> None:
        self._method = method
        self._sink = sink
        self._sizes = sizes
        self._clock = clock
        self._settings = settings = settings or Settings()
        self._load = load
        self._digest = digest
        self._lineage = lineage
        self._direct = direct
        self._arrival = arrival
        self._calls = calls or Calls(self._settings.in_flight)
        self._reflector = Reflector(method, fallback or ModelFree(), self._calls, seen, self._reflected)
        self._awaited: dict[Window, Lane] = {}
        self._lanes: dict[str, Lane] = {}
        self._windows = Windows(self._assign, bound=settings.open_traces, span=span, max_wait=settings.max_wait)
        self._unpublished = 0
        self._progress: anyio.Event | None = None
        self._tasks: TaskGroup

    async def __aenter__(self) -> Learner:
        self._tasks = anyio.create_task_group()
        await self._tasks.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        self._tasks.cancel_scope.cancel()
        return await self._tasks.__aexit__(kind, error, trace)

    def lane(self, prompt: str) -> Lane:
        """The prompt's lane, its state loaded at first use."""
        lane = self._lanes.get(prompt)
        if lane is None:
            lane = self._lanes[prompt] = Lane(self._load(prompt), self._clock())
        return lane

    async def relieve(self) -> None:
        """Close the oldest open windows, an eighth of their traces, unless a closed one will make room by itself."""
        held = self._windows.held
        left = held * 7 // 8 if self._unpublished == held else held
        while self._windows.held > left and (oldest := self._windows.oldest()) is not None:
            for window in self._windows.close_up_to(oldest.first):
                await self._close(self._lanes[window.prompt], window)

    async def feed(self, traces: Sequence[Trace], places: Sequence[int] | None = None) -> None:
        """Take traces in order of arrival; waits while too many are closed in and not yet published.

        :param places: the place of each among all that arrived, as its offset; rising. Else they are counted.
        """
        if places is None:
            await self._feed(traces, None)
        while places is not None and traces:
            await self.passed(places[0])
            count = self._windows.before_span(places)
            await self._feed(traces[:count], places[:count])
            traces, places = traces[count:], places[count:]
        while self._unpublished > self._settings.open_traces:
            await self._next()

    async def passed(self, place: int) -> None:
        """Close the windows that are a span behind ``place``, where a record arrived, be there a trace in it or not."""
        for window in self._windows.over_span(place):
            await self._close(self._lanes[window.prompt], window)

    async def _feed(self, traces: Sequence[Trace], places: Sequence[int] | None) -> None:
        room = self._windows.room()
        if room is None or len(traces) <= room:
            for prompt, (mine, arrivals) in by_prompt(traces, places, self._windows.arrived).items():
                await self._take(prompt, mine, arrivals)
        else:
            for at, trace in enumerate(traces):
                await self._take(trace.prompt, (trace,), None if places is None else (places[at],))
                await self._close_over_bound()

    async def pass_over(self, prompt: str, traces: Callable[[int], int | None]) -> None:
        """Count a trace whose window made its version before a crash, so that other windows close as they did then.

        :param traces: how many traces the prompt's window of a number closed with then.
        """
        self._windows.pass_over(prompt, self._clock(), traces)
        await self._close_over_bound()

    def resume(self, prompt: str, window: int) -> None:
        """Count the prompt's windows from ``window``, the last one before a run that was killed began."""
        self.lane(prompt).opened = window

    def begin_anew(self, prompt: str) -> None:
        """Stop passing over: what comes now is not what came before the crash, so the next window is a new one."""
        lane = self.lane(prompt)
        if lane.opened <= lane.state.now.window:
            self._windows.discard(prompt)
            lane.opened = lane.state.now.window

    async def tick(self) -> None:
        """Look at the clock: close windows that are due, let stragglers go, and let in what idle prompts carry."""
        now = self._clock()
        deadline = self._settings.straggler_deadline
        if deadline is not None:
            for window, lane in list(self._awaited.items()):
                if now - window.closed >= deadline:
                    self._awaited.pop(window, None)
                    await self._let_go(lane, window)
            await self._close_over_bound()  # stragglers count too, and feed waits for what is over the bound
        for window in self._windows.overdue(now):
            await self._close(self._lanes[window.prompt], window)
        max_wait = self._settings.max_wait
        if max_wait is not None:
            for lane in list(self._lanes.values()):
                if lane.state.carried and not lane.running and now - lane.active >= max_wait:
                    if self._direct:
                        await self._enter_carried(lane)
                    else:
                        self._tasks.start_soon(self._enter_carried, lane)

    async def drain(self, *, end: bool = True) -> None:
        """Close all windows and wait for their versions.

        :param end: nothing follows, so what is carried enters now.
        """
        while True:
            for window in self._windows.close_all():
                await self._close(self._lanes[window.prompt], window)
            if not any(lane.running for lane in self._lanes.values()):
                break
            await self._next()  # and once more: stragglers may have opened windows
        if end:
            async with anyio.create_task_group() as tasks:
                for lane in [each for each in self._lanes.values() if each.state.carried]:
                    tasks.start_soon(self._enter_carried, lane)

    async def amend(self, prompt: str, make: Callable[[PromptState], Published]) -> Published:
        """Publish a version that no window made (a rollback, an import, an edit) between two windows."""
        lane = self.lane(prompt)
        while lane.publishing:
            await lane.change()
        published = await self._publish(lane, make(lane.state))
        if published.update.kind == "rollback":
            lane.rolled_back = published.update.version
            lane.move()
        return published

    def _assign(self, prompt: str) -> tuple[int, int]:
        lane, size = self.lane(prompt), 0
        while not size:  # no size: the window was an empty one, made before a crash
            lane.opened += 1
            size = self._sizes.assign(prompt, lane.opened)
        return lane.opened, size

    async def _close_over_bound(self) -> None:
        while (window := self._windows.over_bound()) is not None:
            await self._close(self._lanes[window.prompt], window)

    async def _take(self, prompt: str, traces: Sequence[Trace], arrivals: Sequence[int] | None = None) -> None:
        lane = self.lane(prompt)
        for window, part in self._windows.add(prompt, traces, self._clock(), arrivals):
            self._unpublished += len(part)
            self._reflector.start(window, part, lane.state, self._tasks)
            if window.cause is not None:
                await self._close(lane, window)

    async def _close(self, lane: Lane, window: Window) -> None:
        if not window.traces:  # its version was made before a crash
            return
        lane.active = window.closed = self._clock()
        lane.running += 1
        asked: Asked | None = None
        alone = not lane.publishing and lane.state.now.window == window.number - 1
        if alone and not window.waiting and not self._method.reduces:
            asked = self._ask(lane, window, base_for(lane.state, window.number, self._settings.max_staleness))
            if self._direct and asked.is_answered:
                await self._aggregate_in_turn(lane, window, asked)
                return
        if window.waiting:
            self._awaited[window] = lane
        self._tasks.start_soon(self._aggregate_in_turn, lane, window, asked)

    def _ask(self, lane: Lane, window: Window, base: Standing) -> Asked:
        due = [each for each in lane.state.carried if each.due == window.number]
        return ask(window.prompt, window.number, settled(window)[0], due, base, self._method, self._settings)

    def _reflected(self, window: Window) -> None:
        self._awaited.pop(window, None)
        self._lanes[window.prompt].move()

    async def _aggregate_in_turn(self, lane: Lane, window: Window, asked: Asked | None) -> None:
        try:
            await self._aggregate(lane, window, asked)
        except BaseException as error:
            lane.error = error
            self._unpublished -= len(window.traces)
            lane.move()
            raise
        finally:
            lane.running -= 1
            if self._progress is not None:
                self._progress.set()
                self._progress = None

    async def _next(self) -> None:
        """Wait until a window is done."""
        self._progress = self._progress or anyio.Event()
        await self._progress.wait()

    async def _aggregate(self, lane: Lane, window: Window, asked: Asked | None) -> None:
        number, settings = window.number, self._settings
        while window.waiting:
            await lane.change()
        while lane.state.now.window < number - 1 - settings.max_staleness:
            await lane.change()
        started = max(window.closed, lane.stood.get(number - 1 - settings.max_staleness, window.closed))
        while True:
            asked = asked or self._ask(lane, window, base_for(lane.state, number, settings.max_staleness))
            learning, base = await learn_from(asked, self._method, self._calls, settings), asked.base
            while lane.publishing or lane.state.now.window < number - 1:
                await lane.change()
            if base.version >= lane.rolled_back:  # a base older than a rollback is curated again
                break
            asked = None
        published = publish_window(
            lane.state,
            number,
            learning,
            base,
            settings,
            traces=[(trace.id, self._digest(trace)) for trace in window.traces],
            rejected=settled(window)[1],
            at=newest(window.traces),
            lineage=self._lineage,
            stats={"size": window.size, "closed_by": window.cause},
        )
        await self._publish(lane, published)
        self._unpublished -= len(window.traces)
        now = lane.stood[number] = self._clock()
        lane.stood.pop(number - 2 - settings.max_staleness, None)
        assert window.cause is not None
        self._sizes.closed(
            window.prompt, number, window.size, len(window.traces), window.cause, now - started, learning.load
        )

    async def _publish(self, lane: Lane, published: Published) -> Published:
        lane.check()
        lane.publishing = True
        try:
            stands = await self._sink(published) or published
            lane.state = stands.state
            return stands
        except BaseException as error:  # whether it stands nobody knows, so nothing may follow it
            lane.error = error
            raise
        finally:
            lane.publishing = False
            lane.move()

    async def _enter_carried(self, lane: Lane) -> None:
        while lane.publishing:
            await lane.change()
        state, settings = lane.state, self._settings
        if lane.running or not state.carried:
            return
        lane.opened = number = max(lane.opened, state.now.window) + 1
        if (window := self._windows.get(state.prompt)) is not None:  # nothing learned from it yet: it is the one after
            window.number, number = number, number - 1
        learning = enter_all(number, state.carried, state.now)
        await self._publish(lane, publish_window(state, number, learning, state.now, settings, lineage=self._lineage))

    async def _let_go(self, lane: Lane, window: Window) -> None:
        """Move a closed window's stragglers to the next one, once; the second time the fallback answers for them."""
        for slot in [each for each in window.reflections if isinstance(each, Slot) and each.result is None]:
            window.waiting -= 1
            if slot.moved:
                self._reflector.give_up(slot, "past the straggler deadline twice")
                continue
            slot.moved = True
            at = window.reflections.index(slot)
            del window.reflections[at], window.traces[at]
            places = None if self._arrival is None else (self._arrival(slot.trace),)
            for following, _ in self._windows.add(window.prompt, (slot.trace,), self._clock(), places):
                slot.window = following
                following.reflections.append(slot)
                following.plain = False
                following.waiting += 1
                if following.cause is not None:
                    await self._close(lane, following)
        lane.move()
