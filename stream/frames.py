"""Where one value ends and the next begins, without parsing; here for JSON lines.

Files are streamed: one of any size is held a block and a value at a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from hashlib import blake2b
from typing import NamedTuple

from stream.blocks import BrokenStream
from stream.decode import BadJson, decode

MAX_VALUE = 64 << 20
"""Most bytes of a line or of one value of a document."""

MAX_RAW = 1 << 20
"""Most bytes that are kept of what cannot be read."""


class Lines(NamedTuple):
    """Consecutive lines without their newlines; ``first`` is the number, from 1, of the first."""

    first: int
    raws: list[bytes]


class Value(NamedTuple):
    """One value of a document; an element where the document is an array, which stays open until an ``End``."""

    line: int
    raw: bytes
    element: bool = False


class End(NamedTuple):
    """The end of an array of elements."""

    line: int


class Cut(NamedTuple):
    """What cannot be a value, for the reason given; ``head`` is all of it up to ``MAX_RAW``."""

    line: int
    head: bytes
    reason: str


class Gather:
    """The bytes of one value over blocks: whole up to the limit, beyond it the head and a hash of all."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._clear()

    def _clear(self) -> None:
        self.size = 0
        self._pieces: list[bytes] = []
        self._hash = blake2b(digest_size=16)

    def add(self, piece: bytes) -> None:
        fitted = self.size <= self._limit
        self.size += len(piece)
        if self.size <= self._limit:
            self._pieces.append(piece)
            return
        if fitted:
            head = b"".join(self._pieces)
            self._hash.update(head)
            self._pieces = [(head + piece[:MAX_RAW])[:MAX_RAW]]
        self._hash.update(piece)

    def take(self, line: int) -> bytes | Cut:
        data, size, digest = b"".join(self._pieces), self.size, self._hash
        self._clear()
        if size <= self._limit:
            return data
        return Cut(line, data, f"{size} bytes long, more than {self._limit}; blake2b-128 {digest.hexdigest()}")


def is_json(raw: bytes) -> bool:
    """Whether the bytes are one JSON value, if need be a damaged one."""
    try:
        decode(raw)
    except BadJson:
        return False
    return True


def lines(blocks: Iterable[bytes], limit: int = MAX_VALUE) -> Iterator[Lines | Cut]:
    """Split at newlines alone: the other characters that Python takes for line breaks may stand in JSON text."""
    number, rest, broken = 1, Gather(limit), ""
    try:
        for block in blocks:
            parts = block.split(b"\n")
            rest.add(parts[0])
            if len(parts) == 1:
                continue
            line = rest.take(number)
            if isinstance(line, Cut):
                yield line
                number, parts = number + 1, parts[1:]
            else:
                parts[0] = line
            rest.add(parts.pop())
            if parts:
                yield Lines(number, parts)
                number += len(parts)
    except BrokenStream as error:
        broken = str(error)
    if rest.size:
        line = rest.take(number)
        if isinstance(line, Cut):
            yield line
        elif not broken or is_json(line):
            yield Lines(number, [line])
        else:
            yield Cut(number, line[:MAX_RAW], broken)
            return
        number += 1
    if broken:
        yield Cut(number, b"", broken)
