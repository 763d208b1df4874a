"""A method whose reflections of some prompts do not end, and a worker process that learns by it.

``python -m tests.kafka.stalling CONFIG PROMPT...``
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Awaitable, Sequence

import anyio
import anyio.lowlevel

from operators.modelfree import ModelFree
from operators.values import Bullet, Reflection, Trace
from stream.config import load
from stream.kafka.service import Service


class Stalling:
    """The model-free method, but for the reflections of some prompts, which do not end before :meth:`release`.

    :param awaited: whether the others' suspend too, as those of a model do.
    """

    name = "stalling"
    reduces = False

    def __init__(self, stalled: set[str], *, awaited: bool = False) -> None:
        self._stalled = stalled
        self._awaited = awaited
        self._released = anyio.Event()
        self._method = ModelFree()
        self.curate = self._method.curate
        self.reduce = self._method.reduce
        self.calls: Counter[str] = Counter()
        """How often each trace's reflection was asked for, by id."""
        self.ended: Counter[str] = Counter()
        """How often it was given."""

    def release(self) -> None:
        """Let all go on."""
        self._released.set()

    def reflect(self, trace: Trace, seen: Sequence[Bullet]) -> Reflection | Awaitable[Reflection]:
        self.calls[trace.id] += 1
        if self._awaited or trace.prompt in self._stalled:
            return self._later(trace, seen)
        return self._method.reflect(trace, seen)

    async def _later(self, trace: Trace, seen: Sequence[Bullet]) -> Reflection:
        if trace.prompt in self._stalled:
            await self._released.wait()
        await anyio.lowlevel.checkpoint()
        self.ended[trace.id] += 1
        return self._method.reflect(trace, seen)


if __name__ == "__main__":
    anyio.run(Service(load(sys.argv[1]), method=Stalling(set(sys.argv[2:]))).run)
