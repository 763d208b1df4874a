"""Documents: JSON values that span lines, and how a file's first bytes tell them from JSON lines."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Literal

from stream.blocks import BrokenStream
from stream.decode import BOM
from stream.frames import MAX_RAW, MAX_VALUE, Cut, End, Gather, Value, is_json

HEAD = 1 << 20
"""Most bytes that are looked at to tell lines from documents."""

_SPACE = b" \t\r\n"
_BETWEEN = _SPACE + b","
_OPEN = frozenset(b"{[")
# Up to the next bracket outside strings (group 1), or to the quote of a string that does not end in this block.
_BRACKET = re.compile(rb'(?:[^"{}\[\]]++|"(?:[^"\\]++|\\.)*+")*+(?:([{}\[\]])|")', re.DOTALL)
_REST = re.compile(rb'(?:[^"\\]++|\\.)*+(")?', re.DOTALL)


class _Brackets:
    """Finds the brackets that are not in strings, from block to block."""

    def __init__(self) -> None:
        self.in_string = False
        self._escaped = False

    def find(self, block: bytes) -> Iterator[int]:
        at = self._finish(block, 1 if self._escaped else 0) if self.in_string else 0
        while found := _BRACKET.match(block, at):
            at = found.end()
            if found[1] is None:
                at = self._finish(block, at)
            else:
                yield at - 1

    def _finish(self, block: bytes, at: int) -> int:
        """Go on in a string, to its end or the block's."""
        rest = _REST.match(block, at)
        assert rest is not None
        self.in_string = rest[1] is None
        # All that a string that goes on can leave over is the backslash of an escape that the next block ends.
        self._escaped = self.in_string and rest.end() < len(block)
        return len(block) if self.in_string else rest.end()


def layout(head: bytes, whole: bool) -> Literal["lines", "documents"] | None:
    """Tell from how a file begins what it holds; None when more of it is needed.

    Documents are what has a first line that opens something, closes no string too few, and goes on in the next line as
    JSON would; everything else is lines, so that a damaged first line costs only itself.

    :param whole: the head is all there is, or all that will be looked at.
    """
    if not whole and BOM.startswith(head):
        return None
    start = head.removeprefix(BOM).lstrip(_SPACE)
    if start[:1] not in (b"{", b"["):
        return "lines" if start or whole else None
    line, newline, rest = start.partition(b"\n")
    if not newline and not whole:
        return None
    if not newline and len(head) >= HEAD:
        # An array of rows on one line may be of any size; a single object may not.
        return "documents" if start[:1] == b"[" else "lines"
    if is_json(line) or not newline:
        return "lines"
    following = rest.lstrip(_SPACE)[:1]
    if not following and not whole:
        return None
    return "documents" if _goes_on(line.rstrip(_SPACE), following) else "lines"


def begin(blocks: Iterator[bytes]) -> tuple[str, bytes, Iterator[bytes]]:
    """Read on until the layout shows; return it, the bytes read for it, and all blocks, those bytes among them.

    Blocks that break off still do so, at their place among those returned.
    """
    head, broken = b"", None
    while True:
        try:
            block = next(blocks, b"")
        except BrokenStream as error:
            block, broken = b"", error
        head += block
        kind = layout(head, not block or len(head) >= HEAD)
        if kind is not None:
            break

    def rest() -> Iterator[bytes]:
        if head:
            yield head.removeprefix(BOM) if kind == "documents" else head
        if broken is not None:
            raise broken
        yield from blocks

    return kind, head, rest()


def _goes_on(line: bytes, following: bytes) -> bool:
    opened = bytearray()
    brackets = _Brackets()
    for at in brackets.find(line):
        if line[at] in _OPEN:
            opened.append(line[at])
        elif opened:
            opened.pop()
    if brackets.in_string or not opened:
        return False
    last = line[-1:]
    if last == b":":
        return True
    if last not in b"{[,":
        return following in b",]}"
    return following in b'"}' if opened[-1:] == b"{" else True


def documents(blocks: Iterable[bytes], limit: int = MAX_VALUE) -> Iterator[Value | End | Cut]:
    """Split documents, one after another, into values; an array into its elements, so that it may be of any size."""
    splitter = _Splitter(limit)
    try:
        for block in blocks:
            yield from splitter.feed(block)
    except BrokenStream as error:
        yield from splitter.end(str(error), broken=True)
    else:
        yield from splitter.end("the file ends inside a value", broken=False)


class _Splitter:
    """Follows brackets and strings from block to block.

    ``base`` is 1 in an array of elements, else 0; a value is open while ``depth`` is above it.
    """

    def __init__(self, limit: int) -> None:
        self.line = 1
        self.base = self.depth = 0
        self.brackets = _Brackets()
        self.value, self.value_line = Gather(limit), 1
        self.gap, self.gap_line = Gather(limit), 1

    def feed(self, block: bytes) -> Iterator[Value | End | Cut]:
        at = 0
        for start in self.brackets.find(block):
            char, end = block[start], start + 1
            if char in _OPEN:
                if self.depth == self.base:
                    self._between(block[at:start])
                    at = start
                    yield from self._flush()
                    if self.base == 0 and char == ord("["):
                        self.base, at = 1, end
                    else:
                        self.value_line = self.line
                self.depth += 1
            elif self.depth > self.base:
                self.depth -= 1
                if self.depth == self.base:
                    self._inside(block[at:end])
                    at = end
                    raw = self.value.take(self.value_line)
                    yield raw if isinstance(raw, Cut) else Value(self.value_line, raw, self.base == 1)
            elif self.base == 1 and char == ord("]"):
                self._between(block[at:start])
                at = end
                yield from self._flush()
                self.base = self.depth = 0
                yield End(self.line)
        (self._inside if self.depth > self.base else self._between)(block[at:])

    def end(self, reason: str, *, broken: bool) -> Iterator[Cut]:
        if self.depth > self.base:
            raw = self.value.take(self.value_line)
            yield raw if isinstance(raw, Cut) else Cut(self.value_line, raw[:MAX_RAW], reason)
            return
        yield from self._flush()
        if broken or self.base:
            yield Cut(self.line, b"", reason)

    def _inside(self, piece: bytes) -> None:
        self.value.add(piece)
        self.line += piece.count(b"\n")

    def _between(self, piece: bytes) -> None:
        kept = piece if self.gap.size else piece.lstrip(_BETWEEN)
        if kept:
            if not self.gap.size:
                self.gap_line = self.line + piece[: len(piece) - len(kept)].count(b"\n")
            self.gap.add(kept)
        self.line += piece.count(b"\n")

    def _flush(self) -> Iterator[Cut]:
        if self.gap.size:
            raw = self.gap.take(self.gap_line)
            if isinstance(raw, bytes):
                raw = Cut(self.gap_line, raw.rstrip(_BETWEEN)[:MAX_RAW], "neither an object nor an array")
            yield raw
