"""Calls that may suspend: at most so many at once, results in order, failures handed on as values."""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from inspect import isawaitable
from typing import Any, TypeVar

import anyio
from msgspec import Struct

from operators.values import Curation

R = TypeVar("R")


class Failed(Struct, frozen=True):
    """A call that raised; the error is a value, so that no trace is lost with it."""

    error: Exception


class Calls:
    """The one limiter that the calls of all prompts share.

    Curators go before reflections: a window that is closed in must not queue behind the traces of all later ones.

    :param limit: the most calls under way at once.
    """

    def __init__(self, limit: int) -> None:
        self._free = limit
        self._first: deque[anyio.Event] = deque()
        self._then: deque[anyio.Event] = deque()

    async def wait(self, awaitable: Awaitable[R], *, first: bool = False) -> R | Failed:
        """Await one call under the limiter; with ``first`` before all that are not."""
        try:
            await self._acquire(self._first if first else self._then)
        except BaseException:
            if hasattr(awaitable, "close"):  # as coroutines have, and what stands for one
                awaitable.close()  # else Python warns that nobody awaited it
            raise
        try:
            return await awaitable
        except Exception as error:  # whatever a method raises, its trace must still get a fate
            return Failed(error)
        except anyio.get_cancelled_exc_class() as error:
            if _is_cancelled():
                raise
            return Failed(RuntimeError(f"something that the call awaited was cancelled: {error!r}"))
        finally:
            self._release()

    async def _acquire(self, queue: deque[anyio.Event]) -> None:
        if self._free:
            self._free -= 1
            return
        turn = anyio.Event()
        queue.append(turn)
        try:
            await turn.wait()
        except BaseException:
            if turn.is_set():
                self._release()
            else:
                queue.remove(turn)
            raise

    def _release(self) -> None:
        queue = self._first or self._then
        if queue:
            queue.popleft().set()
        else:
            self._free += 1

    async def gather(
        self, function: Callable[..., R | Awaitable[R]], arguments: Iterable[tuple[Any, ...]]
    ) -> list[R | Failed]:
        """Call a curator with each of ``arguments``, all at once; results in their order.

        A call that returns a plain value costs no task.
        """
        return await self.finish([attempt(function, *each) for each in arguments])

    async def finish(self, results: list[R | Awaitable[R] | Failed]) -> list[R | Failed]:
        """Await those results of curators that are not there yet, all at once."""
        waiting = [index for index, result in enumerate(results) if is_late(result)]
        if len(waiting) == 1:
            results[waiting[0]] = await self.wait(results[waiting[0]], first=True)  # type: ignore[arg-type]
        elif waiting:

            async def finish(index: int) -> None:
                results[index] = await self.wait(results[index], first=True)  # type: ignore[arg-type]

            async with anyio.create_task_group() as group:
                for index in waiting:
                    group.start_soon(finish, index)
        return results  # type: ignore[return-value]


def _is_cancelled() -> bool:
    """Whether it is this task that is being cancelled, not just something that it awaited."""
    task = asyncio.current_task()
    return anyio.current_effective_deadline() == -math.inf or (task is not None and task.cancelling() > 0)


def is_late(result: object) -> bool:
    """Whether what a method's function gave must be awaited; a quick answer for what it usually gives."""
    return not isinstance(result, Curation) and isawaitable(result)


def attempt(function: Callable[..., R | Awaitable[R]], *arguments: Any) -> R | Awaitable[R] | Failed:
    """Call a method's function; what it raises at once is a :class:`Failed` as well."""
    try:
        return function(*arguments)
    except Exception as error:
        return Failed(error)
