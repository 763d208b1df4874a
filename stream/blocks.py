"""A file or a pipe as a stream of blocks of plain bytes, unpacked by what it begins with and never by its name."""

from __future__ import annotations

import gzip
import io
import sys
import zlib
from collections.abc import Callable, Iterator
from typing import BinaryIO

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

BLOCK = 1 << 18
"""Most bytes of a block."""

_GZIP = b"\x1f\x8b"
_ZSTD = b"\x28\xb5\x2f\xfd"


class BrokenStream(Exception):
    """A stream ended where it should not have, or cannot be unpacked any further. What came before it is sound."""


class _Counted(io.RawIOBase):
    """A stream whose first bytes can be looked at, and whose reads are counted before they are unpacked."""

    def __init__(self, source: BinaryIO, count: Callable[[int], None]) -> None:
        self._read: Callable[[int], bytes] = getattr(source, "read1", source.read)
        self._count = count
        self._ahead = b""

    def begins(self, length: int) -> bytes:
        while len(self._ahead) < length and (more := self._next(length - len(self._ahead))):
            self._ahead += more
        return self._ahead

    def _next(self, size: int) -> bytes:
        data = self._read(size) or b""
        self._count(len(data))
        return data

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        data, self._ahead = self._ahead[: len(buffer)], self._ahead[len(buffer) :]
        data = data or self._next(len(buffer))
        buffer[: len(data)] = data
        return len(data)


def blocks(source: BinaryIO, count: Callable[[int], None]) -> Iterator[bytes]:
    """Yield a stream's plain bytes as they arrive, in blocks of at most ``BLOCK``.

    :param count: told of every read, in bytes before unpacking.
    :raises BrokenStream: after the last block that could be read.
    """
    counted = _Counted(source, count)
    packing = ""
    try:
        begins = counted.begins(len(_ZSTD))
        buffered = io.BufferedReader(counted, BLOCK)
        stream: io.BufferedIOBase = buffered
        if begins.startswith(_GZIP):
            packing, stream = "gzip ", gzip.GzipFile(fileobj=buffered)
        elif begins == _ZSTD:
            packing, stream = "zstd ", zstd.ZstdFile(buffered)
        # One read at a time: a larger read that fails half way would lose the half that it had.
        while block := stream.read1(BLOCK):
            yield block
    except (EOFError, OSError, zlib.error, zstd.ZstdError) as error:
        raise BrokenStream(f"the {packing}stream breaks off: {error}") from error
