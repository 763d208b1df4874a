"""When each trace of a log is due. Pure; the clock is the caller's."""

from __future__ import annotations

from datetime import datetime

from operators.values import Trace
from operators.when import parsed


class Pace:
    """Due times at a rate, or at the pace that the traces' own times tell; everything is due at once without either.

    :param rate: traces a second.
    :param speed: how many times as fast as recorded.
    """

    def __init__(self, rate: float | None = None, speed: float | None = None) -> None:
        self._rate = rate
        self._speed = speed
        self._count = 0
        self._first: datetime | None = None
        self._due = 0.0

    def due(self, trace: Trace) -> float:
        """When the next trace is to be sent, in seconds after the first; never before the one before it."""
        if self._rate is not None:
            self._due = self._count / self._rate
        elif self._speed is not None:
            self._due = max(self._due, self._recorded(trace) / self._speed)
        self._count += 1
        return self._due

    def _recorded(self, trace: Trace) -> float:
        """Seconds from the log's first time to the trace's: its end, which is when an agent writes it."""
        time = parsed(trace.ended) or parsed(trace.started)
        if time is None:
            return 0.0
        if self._first is None:
            self._first = time
        return (time - self._first).total_seconds()
