"""Finished reflections, kept for records that are delivered again: a model call is paid for once."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Generator, Sequence
from functools import partial
from typing import Any

from operators.method import Method
from operators.values import Bullet, Curation, Given, Reflection, Trace

KEPT = 50_000
"""How many finished reflections are kept, of all partitions of a worker."""

Place = tuple[str, int, int]
"""Topic, partition, offset."""


class Reflections:
    """Reflections by the place of their trace, the oldest forgotten first."""

    def __init__(self, kept: int = KEPT) -> None:
        self._kept = kept
        self.found: OrderedDict[Place, Reflection] = OrderedDict()
        """Those that are kept."""

    def put(self, place: Place, reflection: Reflection) -> None:
        """Keep a finished reflection."""
        self.found[place] = reflection
        if len(self.found) > self._kept:
            self.found.popitem(last=False)

    def drop(self, place: Place) -> None:
        """Forget one: its trace is done."""
        self.found.pop(place, None)


class Remembering:
    """A method whose awaited reflections are kept by the place of their trace.

    What completes without suspending costs no call to a model, and is not kept.

    :param place: of a trace under way.
    """

    def __init__(self, method: Method, reflections: Reflections, place: Callable[[Trace], Place]) -> None:
        self._method = method
        self._reflections = reflections
        self._known = reflections.found
        self._place = place
        self.curate: Callable[[Sequence[Given], Sequence[Bullet]], Curation | Awaitable[Curation]] = method.curate
        self.reduce: Callable[[Sequence[Bullet], Sequence[Bullet]], Curation | Awaitable[Curation]] = method.reduce

    @property
    def name(self) -> str:
        """The method's own name."""
        return self._method.name

    @property
    def reduces(self) -> bool:
        """Whether the method has a level 2."""
        return self._method.reduces

    def reflect(self, trace: Trace, seen: Sequence[Bullet]) -> Reflection | Awaitable[Reflection]:
        """The method's reflection, or the one that it made of the same record before."""
        if self._known:
            known = self._known.get(self._place(trace))
            if known is not None:
                return known
        made = self._method.reflect(trace, seen)
        if isinstance(made, Reflection):
            return made
        place = self._place(trace)  # now, for later it may have its version already
        return _Kept(made, partial(self._reflections.put, place))


class _Kept:
    """A reflection to come that is kept once it is there."""

    __slots__ = ("_keep", "_made")

    def __init__(self, made: Awaitable[Reflection], keep: Callable[[Reflection], None]) -> None:
        self._made = made
        self._keep = keep

    def __await__(self) -> Generator[Any, Any, Reflection]:
        reflection = yield from self._made.__await__()
        self._keep(reflection)
        return reflection

    def close(self) -> None:
        """Drop it before it was awaited: a service that lets go has thousands that wait for their turn."""
        if hasattr(self._made, "close"):
            self._made.close()
