"""What a record of ``agent-traces`` is: a trace, nothing, or something to reject with a reason. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b

import msgspec
from msgspec.structs import replace

from operators.values import Trace
from stream.decode import BadJson, decode
from stream.readers import NotATrace, own, pick
from stream.shape import binary, shape

LONGEST = 500
"""Characters of an id, a prompt's name or a session: thousands of them stand in one record of ours."""

_NO_OUTCOME = Trace().outcome
_ENCODER = msgspec.json.Encoder(order="deterministic")


class NoTrace(Exception):
    """A record is to be rejected; the message says why."""


def trace_of(value: bytes | None) -> Trace | None:
    """The trace in a record's value, with an id always; None when the value holds none, as an empty list.

    :raises NoTrace: when it is no trace, or holds several.
    """
    if value is None:
        raise NoTrace("its value is null")
    trace = own.fast(value)
    if trace is None:
        trace = _slowly(value)
        if trace is None:
            return None
    if len(trace.id) > LONGEST or len(trace.prompt) > LONGEST or len(trace.session) > LONGEST:
        raise NoTrace(f"its id, prompt or session is longer than {LONGEST} characters")
    return trace if trace.id else _identified(trace)


def _slowly(value: bytes) -> Trace | None:
    if not value or value.isspace():
        raise NoTrace("its value is empty")
    if what := binary(value):
        raise NoTrace(f"its value is {what}")
    try:
        found = decode(value).value
    except BadJson as error:
        raise NoTrace(str(error)) from None
    if isinstance(found, list):
        if not found:
            return None
        if pick(found[:1]) is None:
            if len(found) > 1:
                raise NoTrace(f"it holds {len(found)} values; one record is one trace")
            found = found[0]
    reader = pick(found[:1] if isinstance(found, list) else found)
    if reader is None:
        raise NoTrace(f"{shape(found)}: no reader knows it")
    try:
        reading = reader.start()
        placed: Sequence[tuple[int, Trace]] = (*reading.take(found, 1), *reading.close())
    except (NotATrace, RecursionError) as error:
        raise NoTrace(f"{reader.name}: {error}") from None
    if len(placed) > 1:
        raise NoTrace(f"it holds {len(placed)} traces; one record is one trace")
    return placed[0][1] if placed else None


def _identified(trace: Trace) -> Trace:
    """The trace under a hash of itself, the same that a replay of files gives it."""
    if trace.outcome is not _NO_OUTCOME and trace.outcome == _NO_OUTCOME:
        trace = replace(trace, outcome=_NO_OUTCOME)
    try:
        content = _ENCODER.encode(trace)
    except (OverflowError, RecursionError, ValueError) as error:
        raise NoTrace(f"cannot be written as JSON: {error}") from None
    return replace(trace, id=blake2b(content, digest_size=16).hexdigest())
