"""Fields that formats share, read leniently: a value of the wrong type counts as absent, never as an error."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from operators.values import Outcome

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_UNITS = ((1e17, 1e9), (1e14, 1e6), (1e11, 1e3), (1e8, 1.0))
_GOOD = frozenset({"true", "success", "succeeded", "pass", "passed", "correct", "resolved", "solved"})
_BAD = frozenset({"false", "failure", "failed", "fail", "incorrect", "wrong", "unresolved", "unsolved"})


def string(value: object) -> str:
    """A name or id: text, or a whole number as text; empty for anything else."""
    if isinstance(value, str):
        return value
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else ""


def optional(value: object) -> str | None:
    """As ``string``, but None for anything else."""
    return value if isinstance(value, str) else string(value) or None


def integer(value: object) -> int | None:
    """A whole number, also when written as a float or as text."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    if isinstance(value, float):
        return int(value) if value.is_integer() else None
    if isinstance(value, str) and value.isascii() and value.isdecimal() and len(value) <= 18:
        return int(value)
    return None


def number(value: object) -> float | None:
    """A finite number."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        result = float(value)
    except OverflowError:
        return None
    return result if math.isfinite(result) else None


def boolean(value: object) -> bool | None:
    """A truth value: a boolean, 0 or 1, or a word that can only mean success or failure."""
    if isinstance(value, bool):
        return value
    if isinstance(value, int | float):
        return bool(value) if value in (0, 1) else None
    if isinstance(value, str):
        word = value.strip().casefold()
        return True if word in _GOOD else False if word in _BAD else None
    return None


def strings(value: object) -> tuple[str, ...] | None:
    """A list of names or ids, without what is none."""
    if not isinstance(value, list):
        return None
    return tuple(name for item in value if (name := optional(item)) is not None)


def mapping(value: object) -> dict[str, Any]:
    """An object; empty for anything else."""
    return value if isinstance(value, dict) else {}


def dump(value: object) -> str:
    """A JSON value as compact JSON text."""
    return msgspec.json.encode(value).decode()


def rfc3339(value: object) -> str | None:
    """A time in RFC 3339, in UTC.

    Text that is one already stays as it is. A time without zone counts as UTC; a number as seconds, milli-, micro- or
    nanoseconds since 1970, by its size. None for what is no time.
    """
    try:
        if isinstance(value, str):
            time = datetime.fromisoformat(value)
            if len(value) >= 20 and value[10] == "T" and value[-1] == "Z":
                return value
            time = time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)
        elif (seconds := _seconds(value)) is not None:
            time = _EPOCH + timedelta(seconds=seconds)
        else:
            return None
    except (ValueError, OverflowError):
        return None
    return time.isoformat().replace("+00:00", "Z")


def _seconds(value: object) -> float | None:
    amount = number(value)
    return None if amount is None else next((amount / unit for least, unit in _UNITS if amount >= least), None)


def text(content: object) -> str:
    """The text of a message's content: text, null, an object or a list of parts.

    A part that is no text leaves its type in brackets: an image's bytes teach nothing.
    """
    if isinstance(content, str):
        return content
    if content is None:
        return ""
    if isinstance(content, list) and all(isinstance(part, str | dict) for part in content):
        return "\n".join(filter(None, map(_part, content)))
    return dump(content)


def _part(part: str | dict[str, Any]) -> str:
    if isinstance(part, str):
        return part
    for key in ("text", "refusal", "thinking", "summary"):
        if isinstance(part.get(key), str):
            return str(part[key])
    kind = part.get("type")
    return f"[{kind.removeprefix('input_').removesuffix('_url')}]" if isinstance(kind, str) else dump(part)


def outcome(value: object) -> Outcome:
    """An outcome in our own words: an object, or a bare truth value."""
    if not isinstance(value, dict):
        return Outcome(success=boolean(value))
    return Outcome(
        success=boolean(value.get("success")),
        reward=number(value.get("reward")),
        feedback=text(value.get("feedback")),
        termination=string(value.get("termination")),
    )


def first(row: Mapping[str, Any], *names: str) -> Any:
    """The first value that is not null under any of these names."""
    for name in names:
        value = row.get(name)
        if value is not None:
            return value
    return None


def merged(*rows: Mapping[str, Any]) -> dict[str, Any]:
    """All fields of several objects that are not null; where two have one, the later object's."""
    return {name: value for row in rows for name, value in row.items() if value is not None}
