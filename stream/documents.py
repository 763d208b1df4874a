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
_QUOTE, _OPEN, _CLOSE = ord('"'), frozenset(b"{["), frozenset(b"}]")
# A whole string is one token, so that brackets in it count for nothing. Group 1 is missing where the block ends first.
_TOKEN = re.compile(rb'"(?:[^"\\]++|\\.)*+(")?|[{}\[\]]', re.DOTALL)
_REST = re.compile(rb'(?:[^"\\]++|\\.)*+(")?', re.DOTALL)


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
    for token in _TOKEN.finditer(line):
        char = line[token.start()]
        if char == _QUOTE:
            if token[1] is None:
                return False
        elif char in _OPEN:
            opened.append(char)
        elif opened:
            opened.pop()
    if not opened:
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
        self.in_string = self.escaped = False
        self.value, self.value_line = Gather(limit), 1
        self.gap, self.gap_line = Gather(limit), 1

    def feed(self, block: bytes) -> Iterator[Value | End | Cut]:
        at = 0
        for token in self._tokens(block):
            char, start, end = block[token.start()], token.start(), token.end()
            if char == _QUOTE:
                continue
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

    def _tokens(self, block: bytes) -> Iterator[re.Match[bytes]]:
        at = 0
        if self.in_string:
            rest = _REST.match(block, 1 if self.escaped else 0)
            assert rest is not None
            at = rest.end()
            self._closes(rest, block)
        for token in _TOKEN.finditer(block, at):
            yield token
            if block[token.start()] == _QUOTE:
                self._closes(token, block)

    def _closes(self, token: re.Match[bytes], block: bytes) -> None:
        self.in_string = token[1] is None
        # All that a string that goes on can leave over is the backslash of an escape that the next block ends.
        self.escaped = self.in_string and token.end() < len(block)

    def _inside(self, piece: bytes) -> None:
        self.value.add(piece)
        self.line += piece.count(b"\n")

    def _between(self, piece: bytes) -> None:
        if piece.strip(_SPACE + b","):
            if not self.gap.size:
                self.gap_line = self.line
            self.gap.add(piece)
        self.line += piece.count(b"\n")

    def _flush(self) -> Iterator[Cut]:
        if self.gap.size:
            raw = self.gap.take(self.gap_line)
            yield raw if isinstance(raw, Cut) else Cut(self.gap_line, raw[:MAX_RAW], "neither an object nor an array")
