"""What reading trace files gives."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct

from operators.values import Trace


class Found(Struct, frozen=True):
    """A trace and where it stood.

    :param trace: with an id always: its own, else a hash of the trace.
    :param line: from 1; where it starts, in a document.
    :param digest: 8-byte BLAKE2b of the normalised trace without its id.
    :param repaired: what had to be tolerated in its bytes, as ``lone surrogate``.
    """

    trace: Trace
    file: str
    line: int
    digest: bytes
    repaired: tuple[str, ...] = ()


class Bad(Struct, frozen=True):
    """A line, or a value of a document, that is no trace; ``raw`` is at most 1 MiB of its bytes."""

    file: str
    line: int
    reason: str
    raw: bytes


class Skipped(Struct, frozen=True):
    """A file with no trace in it."""

    file: str
    reason: str


Record = Found | Bad | Skipped
Source = Iterable[Sequence[Record]]
"""Where traces come from: records in order of arrival, in chunks of whatever came together. Files are one source (each
whole, in the order of their paths), a list in memory is one too; how they are chunked changes nothing."""
