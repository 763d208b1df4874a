"""What reading a playbook file gives, and the one error of reading and writing one."""

from __future__ import annotations

from typing import Any

from msgspec import Struct, field

from operators.values import Bullet

_EXCERPT = 200


class FormatError(Exception):
    """A file cannot be read, or written into, as a playbook; the text says what, where, and what to do."""


class Refused(Struct, frozen=True):
    """One entry that is no bullet: where it is (``line 3``, ``operations[2]``), why, and the start of it."""

    where: str
    reason: str
    raw: str = ""


class Imported(Struct, frozen=True):
    """A playbook file, read whole.

    :param bullets: live bullets in the file's order; ids and counts as far as the format has them. ``bullet`` is empty.
    :param extra: what only this format can hold, for :func:`stream.formats.write`; opaque to everyone else.
    :param warnings: what was understood only after a guess, or left alone.
    """

    format: str
    bullets: tuple[Bullet, ...] = ()
    extra: dict[str, Any] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    refused: tuple[Refused, ...] = ()


def excerpt(value: Any) -> str:
    """The start of an entry, for a person to find it by."""
    text = value if isinstance(value, str) else repr(value)
    return text if len(text) <= _EXCERPT else text[: _EXCERPT - 1] + "…"
