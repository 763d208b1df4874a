"""The text of a playbook: what agents get, ACE's text with counters (arXiv 2510.04618), and reading both back.

A bullet is always one line and a header always one line, so what is in them can never pass for structure. Ordinary
single-line text is written as it is. What a line cannot hold is escaped with two rare symbols, which ACE's parsers
pass through as text:

======== =====================================================================================
written  read
======== =====================================================================================
``⏎``    a line feed
``␛HEX;`` the character with that code point: other line breaks, NUL, and ``⏎`` and ``␛`` themselves
``␛;``   nothing: keeps white space at an edge, a colon after a header, and text that would read as counters
======== =====================================================================================
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from msgspec import Struct
from msgspec.structs import replace

from operators.identity import SECTIONS, section_key
from operators.values import Bullet

NOTHING = "␛;"
"""The escape that reads as no character at all."""

MOST = 10**12
"""Counts from here on are taken for damage, not for votes."""

_FALLBACK_SECTION = "OTHERS"
_SPECIAL = re.compile("[\0\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029⏎␛]")
_ESCAPED = re.compile("⏎|␛([0-9A-F]{0,6});")
_PLAIN_ID = re.compile(r"[^\W\d][^\]\s]*-[0-9]+")
_COUNTERS = re.compile(r"helpful=([0-9]+)\s*harmful=([0-9]+)\s*::\s*")
_RULE = re.compile(r"[-*_]{3,}")
_RANKS = {section_key(section): rank for rank, section in enumerate(SECTIONS)}


class Parsed(Struct, frozen=True):
    """What a text holds: its bullets, its headers in order (those of empty sections too) and what was before them.

    ``problems`` says, with line numbers, what was understood only after a guess.
    """

    bullets: tuple[Bullet, ...] = ()
    sections: tuple[str, ...] = ()
    preamble: str = ""
    problems: tuple[str, ...] = ()


def escape(text: str, *, multiline: bool = False) -> str:
    """Make ``text`` one line that :func:`unescape` reads back; with ``multiline`` its line feeds stay as they are."""

    def one(match: re.Match[str]) -> str:
        char = match[0]
        if char == "\n":
            return char if multiline else "⏎"
        return f"␛{ord(char):X};"

    return _SPECIAL.sub(one, text) if _SPECIAL.search(text) else text


def unescape(text: str) -> str:
    """Undo :func:`escape`. What only resembles an escape stays as it is."""

    def one(match: re.Match[str]) -> str:
        digits = match[1]
        if digits is None:
            return "\n"
        if not digits:
            return ""
        code = int(digits, 16)
        return match[0] if code > 0x10FFFF or 0xD800 <= code <= 0xDFFF else chr(code)

    return _ESCAPED.sub(one, text) if "⏎" in text or "␛" in text else text


@lru_cache(1 << 12)  # the same few ids are put in order for version after version
def display_number(bullet_id: str) -> tuple[int, int, str]:
    """Sort key of the number that a display id ends in; ids without one come last. Numbers may have any length."""
    digits = bullet_id[len(bullet_id.rstrip("0123456789")) :]
    significant = digits.lstrip("0")
    return (0 if digits else 1, len(significant), significant)


def grouped(bullets: Iterable[Bullet], also: Iterable[str] = ()) -> list[tuple[str, list[Bullet]]]:
    """Bullets by section in the order of showing: ACE's sections first, then by key; inside by number, then by id.

    One section has one title: of several spellings of one key the smallest, which puts capitals first.

    :param also: titles of sections to list even when no bullet is in them.
    """
    titles: dict[str, str] = {}
    members: dict[str, list[Bullet]] = {}
    for title in also:
        key = section_key(title)
        titles[key] = min(title, titles.get(key, title))
        members.setdefault(key, [])
    for bullet in bullets:
        key = section_key(bullet.section)
        titles[key] = min(bullet.section, titles.get(key, bullet.section))
        members.setdefault(key, []).append(bullet)
    for group in members.values():
        group.sort(key=lambda b: (display_number(b.id), b.id, b.content, b.section, b.helpful, b.harmful))
    keys = sorted(members, key=lambda key: (_RANKS.get(key, len(_RANKS)), key))
    return [(titles[key], members[key]) for key in keys]


def order(bullets: Iterable[Bullet]) -> list[Bullet]:
    """The order in which bullets are shown; it depends on the bullets only, not on how they come in."""
    return [bullet for _, group in grouped(bullets) for bullet in group]


def render(bullets: Iterable[Bullet], *, counters: bool = False, sections: Iterable[str] = ()) -> str:
    """Write a playbook as agents get it, or as ACE's text with ``counters``.

    Depends on the shown parts of the bullets alone, in any order, so that an unchanged playbook is unchanged bytes.

    :param sections: headers to write even when no bullet is under them.
    :return: lines without a final line feed; empty for no bullets and no sections.
    """
    parts = []
    for title, group in grouped(bullets, sections):
        lines = [f"## {_header(title)}"]
        lines.extend(_line(bullet, counters) for bullet in group)
        parts.append("\n".join(lines))
    return "\n\n".join(parts)


def edged(text: str, first: bool = False, last: bool = False) -> str:
    """Put :data:`NOTHING` before or after ``text`` where asked, or where white space at its edge would be lost."""
    if not text:
        return text
    return f"{NOTHING if first or text[0].isspace() else ''}{text}{NOTHING if last or text[-1].isspace() else ''}"


def _header(title: str) -> str:
    return edged(escape(title), last=title.endswith(":")) or NOTHING


def _line(bullet: Bullet, counters: bool) -> str:
    name = escape(bullet.id).replace("]", "␛5D;")
    content = escape(bullet.content)
    if counters:
        text = f"[{name or NOTHING}] helpful={bullet.helpful} harmful={bullet.harmful} :: {edged(content)}"
    else:
        plain = _PLAIN_ID.fullmatch(name) is not None
        text = f"[{name if plain else NOTHING + name}] {edged(content, _COUNTERS.match(content) is not None)}"
    return text if content else text.rstrip(" ")


def parse_ace(text: str) -> Parsed:
    """Read ACE's text, with counters or (ACE-AppWorld's, and what agents get) without; never fails.

    Follows ACE: a line that starts with ``##`` is a header, one that starts with an id in brackets is a bullet; a list
    mark before it, a colon after a header and carriage returns do not matter. Bullets before any header go to OTHERS.
    Other lines in a section are the rest of the bullet above them, for that is what ACE leaves of text of several
    lines; where no bullet is above they become one, without an id. Each such guess is told in ``problems``.
    """
    reading = _Reading()
    text = text.removeprefix("\ufeff")
    for number, raw in enumerate((text if "\n" in text else text.replace("\r", "\n")).split("\n"), 1):
        line = raw.strip()
        if line.startswith("##"):
            reading.header(unescape(line.lstrip("#").strip().rstrip(":").rstrip()))
        elif (found := _bullet(line)) is not None:
            reading.bullet(number, *found)
        else:
            reading.other(number, raw, line)
    return reading.done()


def _bullet(line: str) -> tuple[Bullet, bool] | None:
    """The bullet of one stripped line, and whether its counts were too large to believe."""
    if line[:2] in ("- ", "* "):
        line = line[2:].lstrip()
    close = line.find("]")
    if not line.startswith("[") or close < 0:
        return None
    name, rest = line[1:close], line[close + 1 :]
    counts = _COUNTERS.match(rest.lstrip())
    if counts is not None and name:
        helpful, harmful = _count(counts[1]), _count(counts[2])
        bullet = Bullet(unescape(name), "", unescape(rest.lstrip()[counts.end() :]), helpful or 0, harmful or 0)
        return bullet, helpful is None or harmful is None
    if (not rest or rest[0].isspace()) and (name.startswith("␛") or _PLAIN_ID.fullmatch(name)):
        return Bullet(unescape(name), "", unescape(rest.lstrip())), False
    return None


def _count(digits: str) -> int | None:
    significant = digits.lstrip("0") or "0"
    return int(significant) if len(significant) < len(str(MOST)) else None


class _Reading:
    """A text as far as it is read: the open bullet with the lines that follow it."""

    def __init__(self) -> None:
        self._bullets: list[Bullet] = []
        self._sections: list[str] = []
        self._preamble: list[str] = []
        self._problems: list[str] = []
        self._open: Bullet | None = None
        self._more: list[tuple[int, str]] = []

    def header(self, title: str) -> None:
        self._close()
        self._sections.append(title)

    def bullet(self, number: int, bullet: Bullet, damaged: bool) -> None:
        self._close()
        if damaged:
            self._problems.append(f"line {number}: counts too large to be votes were read as 0")
        if not self._sections:
            self._problems.append(f"line {number}: a bullet before the first section was put under {_FALLBACK_SECTION}")
        self._open = replace(bullet, section=self._sections[-1] if self._sections else _FALLBACK_SECTION)

    def other(self, number: int, raw: str, line: str) -> None:
        marked = line[:2] in ("- ", "* ")
        if self._open is None and not self._sections:
            self._preamble.append(raw.rstrip())
        elif not line or (self._open is None and _RULE.fullmatch(line)):
            if self._open is not None:
                self._more.append((number, ""))
        elif self._open is None or (marked and not self._open.id):
            self._close()
            self._problems.append(f"line {number}: text without an id was read as a bullet of its own")
            section = self._sections[-1] if self._sections else _FALLBACK_SECTION
            self._open = Bullet("", section, unescape(line[2:].lstrip() if marked else line))
        else:
            self._more.append((number, raw.rstrip()))

    def done(self) -> Parsed:
        self._close()
        preamble = "\n".join(self._preamble).strip("\n")
        return Parsed(tuple(self._bullets), tuple(dict.fromkeys(self._sections)), preamble, tuple(self._problems))

    def _close(self) -> None:
        if self._open is None:
            return
        # A rule or blank lines between this bullet and the next header divide; they are no part of the lesson.
        while self._more and (not self._more[-1][1] or _RULE.fullmatch(self._more[-1][1].strip())):
            self._more.pop()
        if self._more:
            self._problems.append(f"line {self._more[0][0]}: text after a bullet was read as the rest of it")
            lines = [self._open.content, *(unescape(raw) for _, raw in self._more)]
            self._open = replace(self._open, content="\n".join(lines))
        self._bullets.append(self._open)
        self._open, self._more = None, []
