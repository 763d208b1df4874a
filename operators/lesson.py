"""The wording of model-free lessons: one line that people, models and programs can follow.

Grammar (``NAME`` has no backtick, ``ERROR`` no double quote, ``VALUE`` is JSON, or is cut and then ends in ``…``)::

    lesson  = "`NAME` fails with "ERROR": " fix
    fix     = "change `NAME`, e.g. VALUE -> VALUE"
            | "change the whole input, e.g. VALUE -> VALUE"
            | "add `NAME`, e.g. VALUE"
            | "leave out `NAME`, e.g. VALUE"
            | "call " first " first and pass " what " as `NAME`, e.g. " [VALUE " -> "] VALUE
            | "call " first " first"
            | "the same call may succeed when made again"
            | "the same call again fails again, change it or stop"
    first   = "`NAME`" [" with VALUE"] | "all of `NAME`, `NAME`" …
    what    = "its `FIELD`" | "a value of its answer"

A NAME in a fix is an argument; a nested one is written ``order.lines[].price``. A FIELD is written the same way.
"""

from __future__ import annotations

import json
import re
from typing import Any, Literal

from msgspec import Struct

from operators.identity import is_printable
from operators.mask import plain

Fix = Literal["change", "add", "leave out", "pass", "call first", "again", "stop"]

NAME, ERROR, VALUE = 80, 160, 60
"""The most characters of a name, an error and a value in a lesson."""

_AGAIN = "the same call may succeed when made again"
_STOP = "the same call again fails again, change it or stop"
_WHOLE = "the whole input"
_HEAD = re.compile(r'`([^`]*)` fails with "([^"]*)": ')
_ARGUMENT = re.compile(r"(change|add|leave out) (?:`([^`]*)`|the whole input), e\.g\. ")
_FIRST = re.compile(r"call (?:all of )?((?:`[^`]*`(?:, )?)+)( with )?")
_PASS = re.compile(r" first and pass (?:its `([^`]*)`|a value of its answer) as `([^`]*)`, e\.g\. ")
_NAMES = re.compile(r"`([^`]*)`")
_DECODER = json.JSONDecoder()


class Lesson(Struct, frozen=True):
    """What one error and the way out of it teach.

    :param argument: the argument to change; empty for the whole input, or where the fix is not an argument's.
    :param before: its value in the call that failed, as a VALUE; empty when it was missing.
    :param after: its value in the call that succeeded, as a VALUE; empty when it was left out.
    :param first: the tools to call first; ``given`` is what the only one was called with, as a VALUE.
    :param field: where the first tool's answer held the value; empty when that is not known.
    """

    tool: str
    error: str
    fix: Fix
    argument: str = ""
    before: str = ""
    after: str = ""
    first: tuple[str, ...] = ()
    given: str = ""
    field: str = ""

    def __str__(self) -> str:
        return f'`{self.tool}` fails with "{self.error}": {self._fix()}'

    def _fix(self) -> str:
        example = " -> ".join(filter(None, (self.before, self.after)))
        match self.fix:
            case "change" | "add" | "leave out":
                return f"{self.fix} {f'`{self.argument}`' if self.argument else _WHOLE}, e.g. {example}"
            case "pass":
                what = f"its `{self.field}`" if self.field else "a value of its answer"
                return f"call {self._first()} first and pass {what} as `{self.argument}`, e.g. {example}"
            case "call first":
                return f"call {self._first()} first"
            case "again":
                return _AGAIN
            case "stop":
                return _STOP

    def _first(self) -> str:
        names = ", ".join(f"`{name}`" for name in self.first)
        if len(self.first) > 1:
            return f"all of {names}"  # sorts behind one name, so of lessons with one key the simpler is shown
        return f"{names} with {self.given}" if self.given else names


def name(text: str) -> str:
    """Word a tool's, an argument's or a field's name."""
    if len(text) <= NAME and text.isidentifier():
        return text
    return plain(text, NAME).replace("`", "'")


def error(text: str) -> str:
    """Word an error."""
    return plain(text, ERROR).replace('"', "'")


def value(item: Any, length: int = VALUE) -> str:
    """Word a value: compact JSON of at most ``length`` characters, or cut so that it ends in ``…``."""
    if isinstance(item, str):
        item = plain(item, length - 2)
        text = _json(item)
        return text if len(text) <= length else _json(item[: length // 2] + "…")
    if isinstance(item, dict | list | tuple) and len(item) > length:
        return "…"
    text = _json(item)
    return text if len(text) <= length and is_printable(text) else "…"


def readable(text: str) -> Any:
    """The value that a VALUE stands for.

    :raises ValueError: when it was cut.
    """
    if text.endswith(("…", '…"')):
        raise ValueError("the value is cut")
    return json.loads(text)


def parse(line: str) -> Lesson | None:
    """Read a lesson from a line that holds nothing else; None when it is not one."""
    head = _HEAD.match(line)
    if head is None:
        return None
    tool, message = head.groups()
    rest = line[head.end() :]
    if rest == _AGAIN:
        return Lesson(tool, message, "again")
    if rest == _STOP:
        return Lesson(tool, message, "stop")
    if found := _ARGUMENT.match(rest):
        return _with_example(Lesson(tool, message, found[1], found[2] or ""), rest[found.end() :])  # type: ignore[arg-type]
    if found := _FIRST.match(rest):
        first = tuple(_NAMES.findall(found[1]))
        given, rest = _value(rest[found.end() :]) if found[2] else ("", rest[found.end() :])
        if rest == " first":
            return Lesson(tool, message, "call first", first=first, given=given)
        if passed := _PASS.match(rest):
            lesson = Lesson(tool, message, "pass", passed[2], "", "", first, given, passed[1] or "")
            return _with_example(lesson, rest[passed.end() :])
    return None


def _with_example(lesson: Lesson, text: str) -> Lesson | None:
    left, rest = _value(text)
    right, rest = _value(rest[4:]) if rest.startswith(" -> ") else ("", rest)
    if not left or rest or (lesson.fix != "pass" and (lesson.fix == "change") != bool(right)):
        return None
    before, after = (left, right) if right or lesson.fix == "leave out" else ("", left)
    return Lesson(
        lesson.tool, lesson.error, lesson.fix, lesson.argument, before, after, lesson.first, lesson.given, lesson.field
    )


def _value(text: str) -> tuple[str, str]:
    """Split a VALUE from what follows it; an empty one when there is none."""
    if text.startswith("…"):
        return "…", text[1:]
    try:
        _, end = _DECODER.raw_decode(text)
    except (ValueError, RecursionError):
        return "", text
    return text[:end], text[end:]


def _json(item: Any) -> str:
    try:
        return json.dumps(item, ensure_ascii=False, separators=(", ", ": "), default=str)
    except (TypeError, ValueError, RecursionError):
        return "…"
