"""Bytes to JSON: strictly first, then tolerantly and marked, then refused with a reason.

What comes out can always be written again: no lone surrogate, no NaN, nothing nested deeper than ``MAX_DEPTH``.
"""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Iterable
from typing import Any, NamedTuple

import msgspec

MAX_DEPTH = 200
"""Deepest nesting that is read. Python bounds recursion too, but where depends on its version and the call stack."""

BOM = b"\xef\xbb\xbf"

_NESTING = frozenset({dict, list})
_STRICT = msgspec.json.Decoder()
_SURROGATE = re.compile("[\ud800-\udfff]")
_MAX_DIGITS = sys.int_info.default_max_str_digits


class BadJson(ValueError):
    """The bytes are no JSON that can be read; the message says why."""


class Decoded(NamedTuple):
    """A JSON value, and what had to be tolerated to read it (nothing for valid JSON)."""

    value: Any
    repaired: tuple[str, ...] = ()


def decode(raw: bytes) -> Decoded:
    """Decode one JSON value.

    Tolerated are a byte order mark, invalid UTF-8 and lone surrogates (they become U+FFFD), raw control characters in
    strings, NaN and infinities (they become None), and integers that Python cannot read (they become text).

    :raises BadJson: when it is no JSON all the same, or nested deeper than ``MAX_DEPTH``.
    """
    try:
        value = _STRICT.decode(raw)
    except (msgspec.DecodeError, RecursionError):
        return _tolerate(raw)
    if raw.count(b"{") + raw.count(b"[") > MAX_DEPTH and too_deep(value):
        raise BadJson(f"nested deeper than {MAX_DEPTH} levels")
    return Decoded(value)


def too_deep(value: object, limit: int = MAX_DEPTH) -> bool:
    """Whether lists and objects nest deeper than ``limit``."""
    children: Iterable[object]
    if isinstance(value, dict):
        children = value.values()
    elif isinstance(value, list):
        children = value
    else:
        return False
    if limit == 0:
        return True
    for child in children:
        if type(child) not in _NESTING:
            continue
        if too_deep(child, limit - 1):
            return True
    return False


class _Tolerant:
    """One tolerant decoding, noting what it lets pass."""

    def __init__(self) -> None:
        self.repaired: list[str] = []

    def mark(self, what: str) -> None:
        if what not in self.repaired:
            self.repaired.append(what)

    def constant(self, name: str) -> None:
        self.mark("infinity" if "Inf" in name else "NaN")

    def number(self, text: str) -> float | None:
        value = float(text)
        if math.isfinite(value):
            return value
        self.mark("infinity")
        return None

    def integer(self, text: str) -> int | str:
        if len(text.lstrip("-")) <= _MAX_DIGITS:
            return int(text)
        self.mark("huge integer")
        return text

    def text(self, raw: bytes) -> str:
        if raw.startswith(BOM):
            self.mark("byte order mark")
            raw = raw[len(BOM) :]
        try:
            return raw.decode()
        except UnicodeDecodeError:
            self.mark("invalid UTF-8")
            return raw.decode(errors="replace")

    def parse(self, text: str, *, strict: bool) -> Any:
        return json.JSONDecoder(
            parse_constant=self.constant, parse_float=self.number, parse_int=self.integer, strict=strict
        ).decode(text)

    def clean(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.whole(value)
        if isinstance(value, list):
            return [self.clean(item) for item in value]
        if isinstance(value, dict):
            return {self.whole(key): self.clean(item) for key, item in value.items()}
        return value

    def whole(self, text: str) -> str:
        if text.isascii() or not _SURROGATE.search(text):
            return text
        self.mark("lone surrogate")
        return _SURROGATE.sub("\ufffd", text)


def _tolerate(raw: bytes) -> Decoded:
    tolerant = _Tolerant()
    text = tolerant.text(raw)
    try:
        try:
            value = tolerant.parse(text, strict=True)
        except json.JSONDecodeError as error:
            if not error.msg.startswith("Invalid control character"):
                raise
            tolerant.mark("control character")
            value = tolerant.parse(text, strict=False)
    except json.JSONDecodeError as error:
        raise BadJson(f"invalid JSON at character {error.pos + 1}: {error.msg.lower()}") from None
    except RecursionError:
        raise BadJson(f"nested deeper than {MAX_DEPTH} levels") from None
    if too_deep(value):
        raise BadJson(f"nested deeper than {MAX_DEPTH} levels")
    return Decoded(tolerant.clean(value), tuple(tolerant.repaired))
