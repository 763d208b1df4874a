"""The demo's side of the learner: a method that is slow on purpose, and traces in, updates out, in process."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Sequence
from hashlib import blake2b
from typing import Any, Generic, TypeVar

import anyio
import msgspec
from anyio.streams.memory import MemoryObjectReceiveStream
from msgspec import Struct

from operators.learner import Learner
from operators.method import Method
from operators.overload import Load
from operators.seen import seen
from operators.settings import Settings
from operators.sink import Sink
from operators.sizes import Sizes
from operators.state import PromptState
from operators.values import Bullet, Curation, Given, Reflection, Trace, Update
from operators.version import Published
from operators.window import Cause
from operators.wire import encode
from stream.demo.agents import Done

R = TypeVar("R")

REFLECT, CURATE, PER_INSIGHT = 0.25, 0.35, 0.004
"""Simulated seconds of a reflection, of a curator's call, and of each insight in it."""


class Later(Generic[R]):
    """A value after some seconds; unlike a coroutine it may also be dropped."""

    def __init__(self, seconds: float, make: Callable[[], R | Awaitable[R]]) -> None:
        self._seconds = seconds
        self._make = make

    def __await__(self) -> Generator[Any, Any, R]:
        yield from anyio.sleep(self._seconds).__await__()
        made = self._make()
        if isinstance(made, Awaitable):
            return (yield from made.__await__())
        return made


class Delayed:
    """A method whose calls take as long as a model's might, so that there is a delay to measure.

    :param scale: of all delays; 0 keeps the waits and takes no time.
    """

    def __init__(self, inner: Method, scale: float = 1.0) -> None:
        self._inner = inner
        self._scale = scale
        self.name = inner.name
        self.reduces = inner.reduces

    def reflect(self, trace: Trace, seen: Sequence[Bullet]) -> Later[Reflection]:
        return Later(REFLECT * self._scale, lambda: self._inner.reflect(trace, seen))

    def curate(self, given: Sequence[Given], base: Sequence[Bullet]) -> Later[Curation]:
        seconds = (CURATE + PER_INSIGHT * len(given)) * self._scale
        return Later(seconds, lambda: self._inner.curate(given, base))

    def reduce(self, proposals: Sequence[Bullet], base: Sequence[Bullet]) -> Later[Curation]:
        return Later(CURATE * self._scale, lambda: self._inner.reduce(proposals, base))


class Closed(Struct, frozen=True):
    """One window that made its version: the size it was dealt, the traces in it, its delay if it was full."""

    size: int
    traces: int
    delay: float | None


class Noted:
    """Sizes from ``inner``, with each closed window noted."""

    def __init__(self, inner: Sizes) -> None:
        self._inner = inner
        self.windows: list[Closed] = []

    def assign(self, prompt: str, number: int) -> int:
        return self._inner.assign(prompt, number)

    def closed(self, prompt: str, number: int, size: int, traces: int, cause: Cause, delay: float, load: Load) -> None:
        self.windows.append(Closed(size, traces, delay if cause == "size" else None))
        self._inner.closed(prompt, number, size, traces, cause, delay, load)


async def learn_from(
    finished: MemoryObjectReceiveStream[Done],
    sink: Sink,
    *,
    method: Method,
    sizes: Sizes,
    settings: Settings,
    clock: Callable[[], float],
    lineage: str,
    baseline: int = 1,
) -> None:
    """Learn from traces as they come, in chunks of what has arrived together, until their stream is closed.

    :param baseline: the first chunk has at least so many, if there are.
    """
    versions: dict[int, Update] = {}

    def shown(trace: Trace, state: PromptState) -> Sequence[Bullet]:
        return seen(trace, state.now, lineage, lambda version: versions[version].bullets if version in versions else ())

    async def publish(published: Published) -> None:
        versions[published.update.version] = published.update
        await sink(published)

    learner = Learner(
        method,
        publish,
        sizes=sizes,
        clock=clock,
        settings=settings,
        seen=shown,
        digest=digest,
        lineage=lineage,
    )
    async with learner, finished:
        chunk: list[Trace] = []
        async for first in finished:
            chunk.append(first.trace)
            while True:
                try:
                    chunk.append(finished.receive_nowait().trace)
                except (anyio.WouldBlock, anyio.EndOfStream):
                    break
            if len(chunk) < baseline:
                continue
            await learner.feed(chunk)
            chunk, baseline = [], 1
        await learner.feed(chunk)
        await learner.drain()


def digest(trace: Trace) -> str:
    """The content digest of a trace, in hex, as a reader of its log would have it."""
    return blake2b(encode(msgspec.structs.replace(trace, id="")), digest_size=8).hexdigest()
