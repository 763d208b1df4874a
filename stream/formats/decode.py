"""Bytes to text and text to JSON: strictly first, then tolerating what JavaScript and Windows write, then refusing."""

from __future__ import annotations

import codecs
import json
import re
from typing import Any

from stream.formats.imported import FormatError

_SURROGATE = re.compile("[\ud800-\udfff]")
_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def decode(data: bytes) -> tuple[str, list[str]]:
    """Decode a file, without its byte order mark.

    :return: the text, and warnings about what had to be replaced.
    :raises FormatError: the file is empty, or not text.
    """
    warnings: list[str] = []
    try:
        text = data.decode("utf-16") if data.startswith(_UTF16) else data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        if b"\0" in data:
            raise FormatError(
                f"not a text file: byte {error.start} (line {line}) is not UTF-8; unpack or convert it first"
            ) from None
        text = data.decode("utf-8", "replace").removeprefix("\ufeff")
        warnings.append(f"line {line}: bytes that are not UTF-8 were replaced, here and wherever U+FFFD stands")
    if not text.strip():
        raise FormatError("the file is empty: there is no playbook to import")
    return text, warnings


def parse_json(text: str) -> tuple[Any, list[str]]:
    """Parse one JSON document, accepting NaN (as null), lone surrogates (replaced) and a key given twice (the last).

    :return: the value, and warnings about what was tolerated.
    :raises FormatError: not one JSON document.
    """
    warnings: list[str] = []

    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key, value in items:
            # An id used twice is two lessons; the first would vanish without a word.
            if key in found:
                warnings.append(f"the key {key!r} is given twice in one object: only its last value was read")
            found[key] = value
        return found

    def constant(name: str) -> None:
        warnings.append(f"{name}, which is no JSON, was read as null")

    try:
        value = json.loads(text, object_pairs_hook=pairs, parse_int=_integer, parse_constant=constant)
        if "\\u" in text:
            value, replaced = _clean(value)
            if replaced:
                warnings.append("lone surrogates, which no text can hold, were replaced by U+FFFD")
    except json.JSONDecodeError as error:
        hint = "mend it there, or name the format it really has with --format"
        if error.msg == "Extra data":
            hint = "a playbook is one JSON document; JSON lines are trace logs, which `tracecomb replay` reads"
        raise FormatError(f"not JSON: {error.msg} at line {error.lineno}, column {error.colno}; {hint}") from None
    except (RecursionError, ValueError):
        raise FormatError("not a playbook: the JSON is nested too deeply or holds a number beyond 64 bits") from None
    return value, list(dict.fromkeys(warnings))


def encode(text: str) -> bytes:
    """Encode a whole file, ending in one line feed; what UTF-8 cannot hold becomes U+FFFD."""
    ended = text if text.endswith("\n") or not text else text + "\n"
    return _SURROGATE.sub("\ufffd", ended).encode()


def dump_json(value: Any) -> bytes:
    """Write a JSON document for people and machines: indented, not ASCII only, keys in their given order."""
    return encode(json.dumps(value, ensure_ascii=False, indent=2))


def _integer(digits: str) -> int:
    value = int(digits)
    if not -(2**63) <= value < 2**63:
        raise ValueError(digits)
    return value


def _clean(value: Any) -> tuple[Any, bool]:
    """Replace lone surrogates in all strings of a JSON value, and say whether there were any."""
    if isinstance(value, str):
        return (_SURROGATE.sub("\ufffd", value), True) if _SURROGATE.search(value) else (value, False)
    if isinstance(value, list):
        cleaned = [_clean(each) for each in value]
        return [each for each, _ in cleaned], any(changed for _, changed in cleaned)
    if isinstance(value, dict):
        pairs = [(_clean(key), _clean(each)) for key, each in value.items()]
        return {key: each for (key, _), (each, _) in pairs}, any(k or v for (_, k), (_, v) in pairs)
    return value, False
