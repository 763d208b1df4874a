"""Which lines of a person's Markdown file are ours, which are protected, and which are front matter."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from markdown_it import MarkdownIt
from markdown_it.token import Token

from stream.formats.imported import FormatError

BEGIN = "<!-- tracecomb:begin -->"
END = "<!-- tracecomb:end -->"
PROTECT = "<!-- tracecomb:protect -->"
UNPROTECT = "<!-- tracecomb:unprotect -->"

LINES = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")
"""A line as Markdown counts them, with its end."""

_MAX_NESTING = 100
_PARSER = MarkdownIt("commonmark", {"maxNesting": _MAX_NESTING}).disable(["inline", "reference"])


class Span(NamedTuple):
    """Lines from ``start`` up to, not including, ``stop``, counted from 0; a region's markers are in it."""

    start: int
    stop: int


class Layout(NamedTuple):
    """A file's lines without their ends, and what is where in them; ``front`` is how many are front matter."""

    lines: list[str]
    front: int
    region: Span | None
    protected: list[Span]

    def foreign(self) -> list[Span]:
        """What is not to be read: front matter, protected text and, where there is a region, all around it."""
        spans = [Span(0, self.front), *self.protected]
        if self.region is not None:
            spans += [Span(0, self.region.start + 1), Span(self.region.stop - 1, len(self.lines))]
        return spans

    def has_text_around(self) -> bool:
        """Whether there is a region and anything but blank lines outside of it."""
        if self.region is None:
            return False
        return any(line.strip() for line in (*self.lines[: self.region.start], *self.lines[self.region.stop :]))


def layout(text: str) -> Layout:
    """Find the regions of a file.

    :raises FormatError: a marker has no counterpart, or there are two regions of ours.
    """
    lines = [line.rstrip("\r\n") for line in LINES.findall(text)]
    front = _front(lines)
    marks = list(_marks([""] * front + lines[front:]))
    protected = _pairs([mark for mark in marks if mark[1] in (PROTECT, UNPROTECT)], PROTECT)
    shielded = {number for span in protected for number in range(*span)}
    regions = _pairs([mark for mark in marks if mark[1] in (BEGIN, END) and mark[0] not in shielded], BEGIN)
    if len(regions) > 1:
        raise FormatError(f"line {regions[1].start + 1}: a second {BEGIN}; a file has one such region: remove one")
    return Layout(lines, front, regions[0] if regions else None, protected)


def parse(lines: list[str]) -> list[Token]:
    """Markdown's blocks, with the lines they cover; what is inside a line is left unparsed."""
    return _PARSER.parse("\n".join(lines))


def _front(lines: list[str]) -> int:
    """How many lines are front matter. A region of ours is none, whatever a person wrote below it."""
    if lines and lines[0].rstrip() == "---":
        for number, line in enumerate(lines[1:], 2):
            if line.rstrip() in ("---", "..."):
                return number
            if line.strip() == BEGIN:
                break
    return 0


def _marks(lines: list[str]) -> Iterator[tuple[int, str]]:
    """Lines that are an HTML comment of their own in Markdown's eyes, so not those that show one in a code block."""
    if any("<!-- tracecomb:" in line for line in lines):
        for token in parse(lines):
            if token.type == "html_block" and token.map:
                for number in range(*token.map):
                    yield number, lines[number].strip()


def _pairs(marks: list[tuple[int, str]], opening: str) -> list[Span]:
    spans: list[Span] = []
    opened: int | None = None
    for number, mark in marks:
        if (mark == opening) == (opened is not None):
            raise FormatError(f"line {number + 1}: {mark} without its counterpart; put the markers right by hand first")
        if opened is None:
            opened = number
        else:
            spans.append(Span(opened, number + 1))
            opened = None
    if opened is not None:
        raise FormatError(f"line {opened + 1}: {opening} is never closed; put the markers right by hand first")
    return spans
