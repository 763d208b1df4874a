"""Reflect: one reflection a trace, started as the trace arrives, in order whatever order they complete in.

A reflection that is a plain value costs no task. One that fails is done by the fallback method instead, and a trace
that not even that can reflect is handed on as rejected: none is dropped.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

import anyio
from anyio.abc import TaskGroup

from operators.calls import Calls, Failed, attempt
from operators.method import Method
from operators.state import PromptState
from operators.values import Bullet, Reflection, Trace
from operators.window import Window


class Rejected:
    """A trace that not even the fallback could reflect, and why."""

    __slots__ = ("reason", "trace")

    def __init__(self, trace: Trace, reason: str) -> None:
        self.trace = trace
        self.reason = reason


class Slot:
    """The place, in a window, of a reflection that is under way."""

    __slots__ = ("given_up", "moved", "result", "scope", "shown", "trace", "window")

    def __init__(self, window: Window, trace: Trace, shown: Sequence[Bullet]) -> None:
        self.window = window
        self.trace = trace
        self.shown = shown
        self.result: Reflection | Rejected | None = None
        self.scope = anyio.CancelScope()
        self.moved = False
        self.given_up = False


class Reflector:
    """Fills the reflections of windows.

    :param fallback: reflects what ``method`` fails to.
    :param calls: the limiter that calls of all prompts share.
    :param seen: the bullets that a trace's agent had read; None where nobody knows.
    :param done: called with a window when its last reflection is there.
    """

    def __init__(
        self,
        method: Method,
        fallback: Method,
        calls: Calls,
        seen: Callable[[Trace, PromptState], Sequence[Bullet]] | None,
        done: Callable[[Window], None],
    ) -> None:
        self._method = method
        self._fallback = fallback
        self._calls = calls
        self._seen = seen
        self._done = done

    def start(self, window: Window, traces: Sequence[Trace], state: PromptState, tasks: TaskGroup) -> None:
        """Reflect the traces that ``window`` has just taken."""
        reflect, seen, add = self._method.reflect, self._seen, window.reflections.append
        shown: Sequence[Bullet] = ()
        for trace in traces:
            if seen is not None:
                shown = seen(trace, state)
            try:
                reflection = reflect(trace, shown)
            except Exception as error:
                add(self._fall_back(trace, shown, error))
                window.plain = False
                continue
            if reflection.__class__ is Reflection:
                add(reflection)
                continue
            window.plain = False
            if isinstance(reflection, Reflection):
                add(reflection)
                continue
            slot = Slot(window, trace, shown)
            add(slot)
            window.waiting += 1
            tasks.start_soon(self._wait, slot, reflection)

    async def _wait(self, slot: Slot, reflection: Awaitable[Reflection]) -> None:
        result: Reflection | Failed | None = None
        with slot.scope:
            result = await self._calls.wait(reflection)
        if slot.given_up:
            return
        if isinstance(result, Reflection):
            slot.result = result
        else:
            error = result.error if isinstance(result, Failed) else TypeError(f"{result!r} is no reflection")
            slot.result = self._fall_back(slot.trace, slot.shown, error)
        slot.window.waiting -= 1
        if not slot.window.waiting:
            self._done(slot.window)

    def give_up(self, slot: Slot, why: str) -> None:
        """Stop waiting for a reflection; the fallback answers."""
        slot.given_up = True
        slot.scope.cancel()
        slot.result = self._fall_back(slot.trace, slot.shown, TimeoutError(why))

    def _fall_back(self, trace: Trace, shown: Sequence[Bullet], error: Exception) -> Reflection | Rejected:
        reflection = attempt(self._fallback.reflect, trace, shown)
        if isinstance(reflection, Reflection):
            return Reflection(
                reflection.trace,
                reflection.session,
                reflection.insights,
                reflection.helpful,
                reflection.harmful,
                fallback=True,
            )
        reason = reflection.error if isinstance(reflection, Failed) else error
        return Rejected(trace, f"{type(reason).__name__}: {reason}")


def settled(window: Window) -> tuple[list[Reflection], list[tuple[str, str]]]:
    """A window's reflections in the order of its traces, and (id, reason) of the traces that are rejected."""
    if window.plain:
        return window.reflections, []
    results = [each.result if isinstance(each, Slot) else each for each in window.reflections]
    rejected = [(each.trace.id, each.reason) for each in results if isinstance(each, Rejected)]
    return [each for each in results if isinstance(each, Reflection)], rejected
