"""Which imports a version holds: those that were merged into it or before it, and not taken back by a rollback."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from operators.values import VersionKind


class Merged(msgspec.Struct):
    """What a log entry says of an import, or of a rollback."""

    version: int
    kind: VersionKind
    audit: dict[str, Any] = {}


_merged = msgspec.json.Decoder(Merged)


def merged(entries: Iterable[bytes], version: int) -> tuple[Merged, ...]:
    """The imports that a version holds, oldest first; an import's audit names its ``source`` and ``format``.

    :param entries: of the prompt's versions, as JSON, oldest first.
    """
    return held((change for entry in entries if (change := change_in(entry)) is not None), version)


def change_in(entry: bytes) -> Merged | None:
    """The import or the rollback that a log entry tells of; None when it is another kind of version."""
    if b'"import"' not in entry and b'"rollback"' not in entry:  # hardly one of them is, and they are long
        return None
    made = _merged.decode(entry)
    return made if made.kind in ("import", "rollback") else None


def held(changes: Iterable[Merged], version: int) -> tuple[Merged, ...]:
    """The imports among these changes that a version holds, oldest first."""
    holds: list[tuple[int, tuple[Merged, ...]]] = [(0, ())]
    for made in changes:
        if made.version > version:
            break
        if made.kind == "import":
            holds.append((made.version, (*holds[-1][1], made)))
        else:
            holds.append((made.version, next(then for at, then in reversed(holds) if at <= made.audit["to"])))
    return holds[-1][1]


def extra_of(imports: Iterable[Merged], format: str) -> dict[str, Any]:
    """What the newest of these imports that has this format held besides bullets, so that an export gives it back."""
    for each in reversed(tuple(imports)):
        if each.audit.get("format") == format:
            return each.audit.get("extra") or {}
    return {}
