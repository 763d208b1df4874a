"""Windows: the traces of one prompt that are learned from together. Pure; time and sizes come in as arguments."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from heapq import heappop, heappush
from typing import Any, Literal

from operators.values import Trace

Cause = Literal["size", "time", "bound", "span", "drain"]


class Window:
    """One window. ``size`` is fixed when it opens, and ``first`` orders windows by the arrival of their first trace."""

    __slots__ = (
        "cause",
        "closed",
        "first",
        "least",
        "number",
        "opened",
        "plain",
        "prompt",
        "reflections",
        "seen",
        "size",
        "traces",
        "waiting",
    )

    def __init__(self, prompt: str, number: int, size: int, first: int, opened: float) -> None:
        self.prompt = prompt
        self.number = number
        self.size = size
        self.first = first
        self.opened = opened
        self.traces: list[Trace] = []
        self.reflections: list[Any] = []  # one a trace, in their order; filled in as they complete
        self.plain = True  # all of them are reflections, none is under way or rejected
        self.waiting = 0  # how many of them are not there yet
        self.closed = 0.0
        self.seen = 0
        self.least = 0  # how many traces it must hold before the bound may close it
        self.cause: Cause | None = None


class Windows:
    """The open windows of all prompts.

    A window closes at its size, when it has been open for ``max_wait``, at drain, when something arrives ``span`` past
    its first trace, or, the one with the oldest first trace, when over ``bound`` traces are in open windows. The last
    two depend on the order of traces alone, never on how they were chunked, so a replay closes the same windows at any
    speed.

    :param assign: gives (number, size) to the window that opens next for a prompt.
    :param bound: in traces; None for no bound.
    :param span: in arrivals, which are offsets where :meth:`add` is given such; None for no limit.
    :param max_wait: in seconds; None where there is no clock.
    """

    def __init__(
        self,
        assign: Callable[[str], tuple[int, int]],
        *,
        bound: int | None = None,
        span: int | None = None,
        max_wait: float | None = None,
    ) -> None:
        self._assign = assign
        self._bound = bound
        self._span = span
        self._max_wait = max_wait
        self._open: dict[str, Window] = {}
        self._oldest: list[tuple[int, int, Window]] = []  # first, then the order of opening, for no two may tie
        self._count = 0
        self._held = 0
        self._arrived = 0

    @property
    def held(self) -> int:
        """How many traces are in open windows."""
        return self._held

    @property
    def arrived(self) -> int:
        """How many traces have arrived."""
        return self._arrived

    def get(self, prompt: str) -> Window | None:
        """The open window of a prompt."""
        return self._open.get(prompt)

    def add(
        self, prompt: str, traces: Sequence[Trace], now: float, arrivals: Sequence[int] | None = None
    ) -> Iterator[tuple[Window, Sequence[Trace]]]:
        """Add traces of one prompt, in order; yields each window with the part of them that it took.

        Look at ``cause`` after each: a window that has one is closed, and takes no more.

        :param arrivals: the place of each trace among all that arrived, where other prompts' came in between.
        """
        at, total = 0, len(traces)
        while at < total:
            window = self._open.get(prompt)
            if window is None:
                window = self._opened(prompt, now, self._arrived if arrivals is None else arrivals[at])
            part = traces[at : at + window.size - window.seen]
            at += len(part)
            window.traces.extend(part)
            self._took(window, len(part))
            yield window, part

    def pass_over(self, prompt: str, now: float, traces: Callable[[int], int | None]) -> Window:
        """Count a trace whose window made its version before a crash, as if it were added.

        :param traces: how many traces the window of a number closed with then. Sizes may be others now, and so may what
            is open, but the bound does not close a window before it holds as many.
        """
        window = self._open.get(prompt)
        if window is None:
            window = self._opened(prompt, now, self._arrived)
            window.least = traces(window.number) or 0
        self._took(window, 1)
        return window

    def oldest(self) -> Window | None:
        """The open window with the oldest first trace; only known where there is a bound or a span."""
        while self._oldest:
            window = self._oldest[0][2]
            if window.cause is None:
                return window
            heappop(self._oldest)
        return None

    def close_up_to(self, place: int, cause: Cause = "bound") -> Iterator[Window]:
        """Close the windows whose first trace arrived at ``place`` or before, oldest first, each as it is handed out.

        Like :meth:`oldest` it knows them only where there is a bound or a span.
        """
        while (window := self.oldest()) is not None and window.first <= place:
            yield self._closed(window, cause)

    def before_span(self, arrivals: Sequence[int]) -> int:
        """How many of these may be added, rising as they are, before one closes a window that is ``span`` behind it."""
        window = self.oldest()
        if self._span is None or not arrivals:
            return len(arrivals)
        return bisect_left(arrivals, (arrivals[0] if window is None else window.first) + self._span)

    def over_span(self, arrival: int) -> Iterator[Window]:
        """Close the windows that ``arrival``, a trace about to be added or a record without one, is ``span`` past.

        Oldest first, each as it is handed out.
        """
        if self._span is not None:
            yield from self.close_up_to(arrival - self._span, "span")

    def over_bound(self) -> Window | None:
        """Close and return the window with the oldest first trace if too many traces are open."""
        if self._bound is None or self._held <= self._bound:
            return None
        passed_by = []
        found = None
        while self._oldest and found is None:
            entry = heappop(self._oldest)
            window = entry[2]
            if window.cause is None and window.seen >= window.least:
                found = self._closed(window, "bound")
            elif window.cause is None:
                passed_by.append(entry)
        for entry in passed_by:
            heappush(self._oldest, entry)
        return found

    def room(self) -> int | None:
        """How many traces may be added before the bound can close a window; None for any number."""
        return None if self._bound is None else self._bound - self._held

    def overdue(self, now: float) -> Iterator[Window]:
        """Close the windows that have been open for ``max_wait``, oldest first, each as it is handed out.

        Who stops half way, as one who is cancelled, leaves the others open.
        """
        if self._max_wait is None:
            return
        late = [window for window in self._open.values() if now - window.opened >= self._max_wait]
        for window in sorted(late, key=lambda window: window.first):
            if window.cause is None:
                yield self._closed(window, "time")

    def close_all(self) -> Iterator[Window]:
        """Close all open windows, oldest first, each as it is handed out."""
        for window in sorted(self._open.values(), key=lambda window: window.first):
            if window.cause is None:
                yield self._closed(window, "drain")

    def discard(self, prompt: str) -> None:
        """Close the prompt's open window, if there is one, as never opened."""
        window = self._open.get(prompt)
        if window is not None:
            self._closed(window, "drain")

    def _opened(self, prompt: str, now: float, first: int) -> Window:
        number, size = self._assign(prompt)
        window = Window(prompt, number, max(size, 1), first, now)
        self._open[prompt] = window
        if self._bound is not None or self._span is not None:
            if len(self._oldest) > 2 * len(self._open) + 64:  # else windows closed in time would pile up here
                self._oldest = sorted(each for each in self._oldest if each[2].cause is None)
            self._count += 1
            heappush(self._oldest, (window.first, self._count, window))
        return window

    def _took(self, window: Window, count: int) -> None:
        window.seen += count
        self._held += count
        self._arrived += count
        if window.seen >= window.size:
            self._closed(window, "size")

    def _closed(self, window: Window, cause: Cause) -> Window:
        window.cause = cause
        self._held -= window.seen
        del self._open[window.prompt]
        return window


def by_prompt(
    traces: Sequence[Trace], arrivals: Sequence[int] | None, arrived: int
) -> dict[str, tuple[list[Trace], list[int]]]:
    """Each prompt's traces with their places among all that arrived, prompts in the order of their first.

    :param arrivals: their places; counted from ``arrived`` where there are none.
    """
    parts: dict[str, tuple[list[Trace], list[int]]] = {}
    for arrival, trace in enumerate(traces, arrived) if arrivals is None else zip(arrivals, traces, strict=True):
        part = parts.get(trace.prompt)
        if part is None:
            part = parts[trace.prompt] = ([], [])
        part[0].append(trace)
        part[1].append(arrival)
    return parts
