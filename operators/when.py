"""When a window's traces ended, for replays, which have no clock of their own."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

from operators.values import Trace


def newest(traces: Iterable[Trace], before: str | None = None) -> str | None:
    """The newest time in ``traces`` as RFC 3339 in UTC, ``before`` when none of them has one.

    Times without a zone are taken for UTC; what is no time at all is passed over.
    """
    latest: datetime | None = None
    for text in _times(traces):
        time = parsed(text)
        if time is not None and (latest is None or time > latest):
            latest = time
    if latest is None:
        return before
    return latest.isoformat(timespec="milliseconds" if latest.microsecond else "seconds").replace("+00:00", "Z")


def _times(traces: Iterable[Trace]) -> set[str]:
    times: set[str | None] = set()
    add = times.add
    for trace in traces:
        # A trace ends with its last step, so steps are looked at only where the log does not say when that was.
        if trace.ended:
            add(trace.ended)
        else:
            for step in trace.steps:
                add(step.ended)
                add(step.started)
        add(trace.started)
    return {text for text in times if text}


def parsed(text: str | None) -> datetime | None:
    """A time of a trace; None for what is none. Without a zone it is taken for UTC."""
    if not text:
        return None
    try:
        time = datetime.fromisoformat(text)
        return (time if time.tzinfo else time.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        return None
