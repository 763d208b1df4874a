"""Masking of values in error texts, so that one mistake made with different values is one error."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from operators.identity import is_printable, one_line, printable

MASK = "#"
_READ = 600
_KEPT = 200
_VALUES = 32
_SHORTEST, _LONGEST = 3, 200

_QUOTED = re.compile(r"(?<!\w)(?:'([^']*)'(?!\w)|\"([^\"]*)\"|`([^`]*)`|\u2018([^\u2019]*)\u2019|“([^”]*)”)")
_ADDRESS = re.compile(r"\b[a-z]{1,9}:[\\/]\S+")
# A token is masked whole when it holds a digit, a slash or an at sign: numbers, dates, ids, paths, addresses.
_TOKEN = re.compile(r"(?<![^\s\"'`(){}\[\]<>=,;:])[^\s\"'`(){}\[\]<>=,;:]*[\d/\\@][^\s\"'`(){}\[\]<>=,;]*")
_LIST = re.compile(r"#(?:\s*(?:[,:;|/]|\bor\b|\band\b)?\s*#)+")
_BRACKETS = re.compile(r"[\[({<]\s*#?\s*[\])}>]")


def plain(text: str, length: int) -> str:
    """One printable line of at most ``length`` characters, cut with an ellipsis; safe to encode as UTF-8."""
    text = one_line(text[: length * 4 + 64])
    if not is_printable(text):
        text = one_line(printable(text))
    return text if len(text) <= length else text[: length - 1].rstrip() + "…"


def leaves(value: Any) -> Iterator[Any]:
    """The scalars in nested arguments, breadth first; a raw text is its own only leaf."""
    queue = [value]
    for item in queue:
        if isinstance(item, dict):
            queue.extend(item.values())
        elif isinstance(item, list | tuple):
            queue.extend(item)
        else:
            yield item
        if len(queue) > 1_000:
            return


def mask(error: str, arguments: Any = None) -> str:
    """Replace the values in an error text by ``#`` and fold its case.

    Values are what is quoted, holds a digit, or looks like a path or an address, and what the failed call's arguments
    held. The names of its arguments stay, quoted or not: they tell one mistake from another.

    :param error: the text of any length; its first 600 characters count.
    :param arguments: those of the call that failed: an object, or the raw text.
    :return: at most 200 characters, on one line.
    """
    text = plain(error, _READ).casefold()
    names = {str(name).casefold() for name in arguments} if isinstance(arguments, dict) else set()
    for value in _own(arguments, names):
        if value in text:
            text = re.sub(rf"(?<!\w){re.escape(value)}(?!\w)", MASK, text)
    text = _QUOTED.sub(lambda found: _unless_name(found, names), text)
    text = _TOKEN.sub(_token, _ADDRESS.sub(MASK, text))
    text = _LIST.sub(MASK, _BRACKETS.sub(MASK, _LIST.sub(MASK, text)))
    return text[:_KEPT].rstrip(" .!;:,")


def _own(arguments: Any, names: set[str]) -> Iterable[str]:
    """The argument values that may stand in the text, longest first so that none is masked in part."""
    found: set[str] = set()
    for leaf in leaves(arguments):
        if isinstance(leaf, str) and _SHORTEST <= len(leaf) <= _LONGEST:
            value = plain(leaf, _LONGEST).casefold()
            if len(value) >= _SHORTEST and value not in names:
                found.add(value)
        if len(found) == _VALUES:
            break
    return sorted(found, key=lambda value: (-len(value), value))


def _unless_name(found: re.Match[str], names: set[str]) -> str:
    inner = next((group for group in found.groups() if group is not None), "")
    return inner if inner in names else MASK


def _token(found: re.Match[str]) -> str:
    token = found[0]
    core = token.rstrip(".!?:")
    return MASK + token[len(core) :] if any(c.isalnum() for c in core) else token
