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
    times = {(trace.ended, trace.started) for trace in traces if trace.ended or trace.started}
    for text in {text for pair in times for text in pair if text}:
        time = parsed(text)
        if time is not None and (latest is None or time > latest):
            latest = time
    if latest is None:
        return before
    return latest.isoformat(timespec="milliseconds" if latest.microsecond else "seconds").replace("+00:00", "Z")


def parsed(text: str | None) -> datetime | None:
    """A time of a trace; None for what is none. Without a zone it is taken for UTC."""
    if not text:
        return None
    try:
        time = datetime.fromisoformat(text)
        return (time if time.tzinfo else time.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        return None
