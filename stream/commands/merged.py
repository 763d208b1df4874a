"""Which imports a version holds: those that were merged into it or before it, and not taken back by a rollback."""

from __future__ import annotations

from typing import Any

import msgspec

from operators.values import VersionKind
from stream.promptstore import PromptStore


class Merged(msgspec.Struct):
    """What a log entry says of an import, or of a rollback."""

    version: int
    kind: VersionKind
    audit: dict[str, Any] = {}


_merged = msgspec.json.Decoder(Merged)


def merged(prompt: PromptStore, version: int) -> tuple[Merged, ...]:
    """The imports that a version holds, oldest first; an import's audit names its ``source`` and ``format``."""
    held: list[tuple[int, tuple[Merged, ...]]] = [(0, ())]
    for entry in prompt.entries():
        if b'"import"' not in entry and b'"rollback"' not in entry:  # hardly one of them is, and they are long
            continue
        made = _merged.decode(entry)
        if made.version > version:
            break
        if made.kind == "import":
            held.append((made.version, (*held[-1][1], made)))
        elif made.kind == "rollback":
            held.append((made.version, next(then for at, then in reversed(held) if at <= made.audit["to"])))
    return held[-1][1]
