"""Generic ways to write a value differently, and programming by example: which of them make ``after`` of ``before``.

This is an agent's general knowledge, the stand-in for a language model's: that dates, cases and units exist, not which
of them anything wants.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any

Transform = Callable[[Any], Any]
"""Writes a value differently; raises ValueError when it does not apply."""

_DATES = ("%d %B %Y", "%d %b %Y", "%B %d, %Y", "%Y-%m-%d")
_DATE_STYLES = ("%Y-%m-%d", "%Y%m%d", "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%d-%m-%y", "%b %d, %Y")
_CLOCKS = ("%I:%M %p", "%I %p", "%H:%M")
_CLOCK_STYLES = ("%H:%M", "%H%M", "%H.%M", "%H:%M:%S", "%I:%M%p", "%Hh%M")
_LARGEST = 10**15
_FACTORS = (10, 60, 100, 1000, 3600)


def guesses(value: Any) -> list[Any]:
    """Other ways to write a value, without any example; those that a reader of the value would think of."""
    found: dict[Any, None] = {}
    for transform in _for(value):
        try:
            made = transform(value)
        except ValueError:
            continue
        if made != value or type(made) is not type(value):
            found.setdefault((type(made), made))
    return [made for _, made in found]


def by_example(before: Any, after: Any) -> Transform | None:
    """The first transform that turns ``before`` into ``after``; None when there is none.

    A smaller whole number that no transform explains is a limit, see :func:`limit`.
    """
    for transform in (*_for(before), *_shaped(before, after)):
        try:
            made = transform(before)
        except ValueError:
            continue
        if made == after and type(made) is type(after):
            return transform
    return None


def limit(before: Any, after: Any) -> int | None:
    """The most that a number may be, when the example shows a whole one that was lowered."""
    whole = type(before) is int and type(after) is int
    return after if whole and 0 < after < before and by_example(before, after) is None else None


def _for(value: Any) -> Iterator[Transform]:
    if isinstance(value, bool):
        return
    if isinstance(value, int | float):
        yield from (_times(factor) for factor in _FACTORS)
        yield from (_number(round), _number(int), str)
    elif isinstance(value, str):
        if _parsed(value, _DATES):
            yield from (_dated(_DATES, style) for style in _DATE_STYLES)
        elif _parsed(value, _CLOCKS):
            yield from (_dated(_CLOCKS, style) for style in _CLOCK_STYLES)
        elif value.isdigit():
            yield from (_padded(width) for width in range(len(value) + 1, 13))
            yield _number(int)
        elif sum(map(str.isdigit, value)) > len(value) / 2:
            yield from (_only(r"\D+", ""), _only(r"[^\d+]+", ""), _only(r"\D+", "-"), _only(r"[()\s-]+", ""))
        else:
            yield from _worded(value)


def _worded(value: str) -> Iterator[Transform]:
    yield from (str.upper, str.lower, str.title)
    if len(value.split()) == 2 and value.istitle():
        yield from (_turned(", ", str), _turned(" ", str), _turned(", ", str.upper), _turned(" ", str.upper))
        yield lambda text: f"{text[0]}. {text.split()[1]}"
    if len(value.split()) > 1:
        for separator in ("_", "-", ""):
            for case in (str.upper, str.lower, str.title):
                yield _joined(separator, case)


def _shaped(before: Any, after: Any) -> Iterator[Transform]:
    """Transforms that only an example can show: something fixed before or behind the value."""
    if isinstance(before, str) and isinstance(after, str) and before and before in after:
        head, _, tail = after.partition(before)
        yield lambda text: f"{head}{text}{tail}"


def _times(factor: int) -> Transform:
    def transform(value: Any) -> Any:
        scaled = round(value * factor, 6)
        if abs(scaled) > _LARGEST:
            raise ValueError("too large")
        return int(scaled) if scaled == int(scaled) else scaled

    return transform


def _number(read: Callable[[Any], int]) -> Transform:
    return lambda value: read(value)


def _padded(width: int) -> Transform:
    def transform(value: Any) -> Any:
        if not str(value).isdigit():
            raise ValueError("not digits")
        return str(value).zfill(width)

    return transform


def _only(dropped: str, put: str) -> Transform:
    return lambda value: re.sub(dropped, put, str(value)).strip("-")


def _joined(separator: str, case: Callable[[str], str]) -> Transform:
    return lambda value: separator.join(map(case, str(value).split()))


def _turned(separator: str, case: Callable[[str], str]) -> Transform:
    def transform(value: Any) -> Any:
        head, _, last = str(value).rpartition(" ")
        if not head:
            raise ValueError("one word")
        return f"{case(last)}{separator}{head}"

    return transform


def _parsed(value: str, styles: tuple[str, ...]) -> datetime | None:
    for style in styles:
        try:
            return datetime.strptime(value, style)  # noqa: DTZ007 - only its writing is wanted
        except ValueError:
            continue
    return None


def _dated(styles: tuple[str, ...], style: str) -> Transform:
    def transform(value: Any) -> Any:
        parsed = _parsed(str(value), styles)
        if parsed is None:
            raise ValueError("not read")
        return parsed.strftime(style)

    return transform
