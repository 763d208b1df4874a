"""Calls that may suspend: at most so many at once, results in order, failures handed on as values."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from inspect import isawaitable
from typing import Any, TypeVar

import anyio
from msgspec import Struct

R = TypeVar("R")


class Failed(Struct, frozen=True):
    """A call that raised; the error is a value, so that no trace is lost with it."""

    error: Exception


class Calls:
    """The one limiter that the calls of all prompts share.

    :param limit: the most calls under way at once.
    """

    def __init__(self, limit: int) -> None:
        self._limiter = anyio.CapacityLimiter(limit)

    async def wait(self, awaitable: Awaitable[R]) -> R | Failed:
        """Await one call under the limiter."""
        async with self._limiter:
            try:
                return await awaitable
            except Exception as error:  # whatever a method raises, its trace must still get a fate
                return Failed(error)

    async def gather(
        self, function: Callable[..., R | Awaitable[R]], arguments: Iterable[tuple[Any, ...]]
    ) -> list[R | Failed]:
        """Call ``function`` with each of ``arguments``, all at once; results in their order.

        A call that returns a plain value costs no task.
        """
        results = [attempt(function, *each) for each in arguments]
        waiting = [index for index, result in enumerate(results) if isawaitable(result)]
        if len(waiting) == 1:
            results[waiting[0]] = await self.wait(results[waiting[0]])  # type: ignore[arg-type]
        elif waiting:

            async def finish(index: int) -> None:
                results[index] = await self.wait(results[index])  # type: ignore[arg-type]

            async with anyio.create_task_group() as group:
                for index in waiting:
                    group.start_soon(finish, index)
        return results  # type: ignore[return-value]


def attempt(function: Callable[..., R | Awaitable[R]], *arguments: Any) -> R | Awaitable[R] | Failed:
    """Call a method's function; what it raises at once is a :class:`Failed` as well."""
    try:
        return function(*arguments)
    except Exception as error:
        return Failed(error)
