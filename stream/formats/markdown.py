"""Markdown for people and for readers of ``SKILL.md``: headings are sections, list items are bullets.

What is written stands between two markers, and only what is between them is ever replaced or, where a file has them,
read. In the region a bullet of several lines is an indented list item; what Markdown would not give back is written on
one line with the escapes of :mod:`operators.text`. Ids and counts have no place in it. Between the other two markers,
anywhere, is a person's text that is neither read nor replaced, and so is the front matter.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from markdown_it.token import Token

from operators.text import NOTHING, edged, escape, grouped, unescape
from operators.values import Bullet
from stream.formats.decode import encode
from stream.formats.entries import FALLBACK_SECTION
from stream.formats.imported import FormatError, Imported
from stream.formats.regions import BEGIN, END, LINES, layout, parse

_TEXT_BLOCKS = ("paragraph_open", "fence", "code_block", "blockquote_open", "html_block")
_BACKSLASH = "\\"
_MARK = "<!-- tracecomb:"
_ITEM = re.compile(r"[ \t]{0,3}(?:[-*+]|[0-9]{1,9}[.)])(?: {1,4}(?! )| |\t|$)")


def read(text: str) -> Imported:
    """Read the region between the markers, or, in a file without them, every list under every heading.

    A top-level list item is one bullet with all that is nested in it. In a file that is not ours, a section is named by
    its headings below the title, and lines that only wrap a sentence are joined. What is neither heading nor list is
    left alone, with a warning.

    :raises FormatError: a marker has no counterpart.
    """
    file = layout(text)
    lines = list(file.lines)
    for start, stop in file.foreign():
        lines[start:stop] = [""] * (stop - start)
    bullets, other = _extract(lines, ours=file.region is not None)
    warnings = []
    if other:
        places = f"line {other[0] + 1}" + (f" and {len(other) - 1} other places" if len(other) > 1 else "")
        warnings.append(f"{places}: text outside of lists is no bullet and was left alone")
    if file.has_text_around():
        warnings.append("only what is between the tracecomb markers was read")
    found = tuple(Bullet(section=section, content=content) for section, content in bullets)
    return Imported("markdown", found, {}, tuple(warnings))


def write(bullets: Sequence[Bullet], previous: bytes | None = None) -> bytes:
    """Write the bullets between the markers, into ``previous`` where there is such a file.

    All of ``previous`` outside the markers stays as it is, byte for byte; without markers the region goes to its end.
    Protected text inside the region stays too, at its top.

    :raises FormatError: ``previous`` is not UTF-8 text, a marker in it has no counterpart, or its end is no place to
        write to.
    """
    region = _region(bullets)
    if previous is None:
        return encode("\n".join([BEGIN, *region, END]))
    if b"\0" in previous:
        raise FormatError("the file to write into is not UTF-8 text; convert it first, or write to another file")
    # Bytes that are not UTF-8 are none of our business, as long as they come out as they went in.
    text = previous.decode("utf-8", "surrogateescape")
    file = layout(text.removeprefix("\ufeff"))
    kept = LINES.findall(text)
    newline = "\r\n" if kept and kept[0].endswith("\r\n") else "\n"
    protected: list[str] = []
    if file.region is None:
        before, after = text, ""
        if before and not before.endswith(newline):
            before += newline
        if before.strip():
            before += newline
    else:
        start, stop = file.region
        before, after = "".join(kept[:start]), "".join(kept[stop:])
        for span in file.protected:
            if start < span.start < stop:
                protected += ["", *file.lines[span.start : span.stop]]
    written = before + newline.join([BEGIN, *protected, *region, END]) + newline + after
    if layout(written.removeprefix("\ufeff")).region is None:
        raise FormatError("the file ends inside a code block that is never closed; close it first")
    return written.encode("utf-8", "surrogateescape")


def _region(bullets: Sequence[Bullet]) -> list[str]:
    lines = []
    for title, group in grouped(bullets):
        lines += ["", f"## {_heading(title)}", ""]
        for bullet in group:
            lines += _item(bullet.content)
    return [*lines, ""] if lines else []


def _heading(title: str) -> str:
    text = _marks_escaped(escape(title))
    return edged(text, last=title.endswith("#")) or NOTHING


def _item(content: str) -> list[str]:
    """One list item: as Markdown has it, or on one line where the reader would not get the same text back."""
    natural = _marks_escaped(escape(content, multiline=True))
    first, *rest = natural.split("\n")
    lines = [f"- {first}", *(f"  {line}" if line else "" for line in rest)]
    # One line that starts with a letter is a paragraph whatever follows; only others need a look.
    if not rest and natural[:1].isalpha():
        return lines
    if _extract(["## a", "", *lines, "- b"], ours=True) == ([("a", content), ("a", "b")], []):
        return lines
    return [f"- {edged(_marks_escaped(escape(content)), first=True) or NOTHING}"]


def _marks_escaped(text: str) -> str:
    return text.replace(_MARK, _BACKSLASH + _MARK)


def _own(text: str) -> str:
    """Undo the escapes of what we wrote."""
    return unescape(text.replace(_BACKSLASH + _MARK, _MARK))


def _extract(lines: list[str], *, ours: bool) -> tuple[list[tuple[str, str]], list[int]]:
    """The (section, content) of each top-level list item, and the lines at which other text starts."""
    bullets: list[tuple[str, str]] = []
    other: list[int] = []
    path: list[tuple[int, str]] = []
    tokens = parse(lines)
    for place, token in enumerate(tokens):
        start, stop = token.map or (0, 0)
        if token.type == "list_item_open" and token.level == 1:
            content = _content(lines[start:stop], joined=not ours and _is_one_paragraph(tokens, place))
            if ours:
                bullets.append((_own(path[-1][1]) if path else FALLBACK_SECTION, _own(content)))
            elif content:
                bullets.append((_section(path), content))
        elif token.level == 0 and token.type == "heading_open":
            level, title = int(token.tag[1:]), tokens[place + 1].content
            path = [*(each for each in path if each[0] < level), (level, title)]
        elif token.level == 0 and token.type in _TEXT_BLOCKS and not token.content.lstrip().startswith("<!--"):
            other.append(start)
    return bullets, other


def _section(path: list[tuple[int, str]]) -> str:
    titles = [title for level, title in path if level > 1 and title] or [title for _, title in path if title]
    return " / ".join(titles) or FALLBACK_SECTION


def _is_one_paragraph(tokens: list[Token], place: int) -> bool:
    inside = [token.type for token in tokens[place + 1 : place + 5]]
    return inside == ["paragraph_open", "inline", "paragraph_close", "list_item_close"]


def _content(lines: list[str], *, joined: bool) -> str:
    """An item's text without its mark and indentation; ``joined`` folds lines that only wrap a sentence."""
    while lines and not lines[-1].strip():
        lines.pop()
    if not lines:
        return ""
    mark = _ITEM.match(lines[0])
    first = lines[0][mark.end() :] if mark else lines[0]
    width = len(mark[0].expandtabs(4)) if mark else 0
    if mark and not first.strip():
        width = len(mark[0].rstrip()) + 1
    return _unwrapped([first, *lines[1:]]) if joined else "\n".join([first, *(_dedented(x, width) for x in lines[1:])])


def _unwrapped(lines: list[str]) -> str:
    """One paragraph's text, with a line feed only where Markdown breaks the line: after two spaces or a backslash."""
    parts = []
    for line in lines[:-1]:
        text = line.strip(" \t")
        parts.append(f"{text.removesuffix(_BACKSLASH)}\n" if line.endswith(("  ", _BACKSLASH)) else f"{text} ")
    return "".join(parts) + lines[-1].strip(" \t")


def _dedented(line: str, width: int) -> str:
    """The line without up to ``width`` columns of white space; a tab goes to the next column divisible by four."""
    column = 0
    for place, char in enumerate(line):
        if column >= width or char not in " \t":
            return " " * (column - width) + line[place:]
        column += 4 - column % 4 if char == "\t" else 1
    return ""
