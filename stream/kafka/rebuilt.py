"""Versions of a prompt rebuilt of what ``prompt-deltas`` says made them. Pure.

An update is rebuilt to the byte: its text and bullets are those of the state, and all else stands in the entry.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
from msgspec import UNSET, Raw, Struct

from operators.state import PromptState
from operators.text import render
from operators.values import Update
from operators.version import advance
from stream.kafka.messages import Made, decode_made, learned_of


class Head(Struct, frozen=True):
    """As much of a record as tells whether it is a version, and whether later ones need those before it."""

    version: int = 0
    kind: str = ""
    snapshot: Raw = Raw()

    @property
    def is_version(self) -> bool:
        """Whether it made a version, and does not tell of fates or answer a control."""
        return self.version > 0 and self.kind not in ("fates", "answer")

    @property
    def begins(self) -> bool:
        """Whether the state after it needs no entry before it."""
        return self.version == 1 or bytes(self.snapshot) not in (b"", b"null")


decode_head = msgspec.json.Decoder(Head).decode


class VersionsMissing(ValueError):
    """The versions of a prompt do not follow one another; the message says where."""


class Chain:
    """The entries of one prompt, added oldest first; it holds no more of them than the newest state needs.

    :param lineage: what the updates say that they are of.
    """

    def __init__(self, prompt: str, lineage: str = "") -> None:
        self._prompt = prompt
        self._lineage = lineage
        self._newest: Made | None = None
        self._waiting: list[Made] = []
        self._state = PromptState(prompt)

    @property
    def version(self) -> int:
        """The version of the newest entry; 0 before the first."""
        return self._newest.version if self._newest else 0

    def add(self, value: bytes) -> Made:
        """Add the next entry.

        :raises VersionsMissing: when it does not follow the one before.
        :raises msgspec.MsgspecError: when it cannot be read.
        """
        entry = decode_made(value)
        if entry.version != self.version + 1 and (self._newest or entry.snapshot is None):
            raise VersionsMissing(f"version {entry.version} of {self._prompt!r} comes after version {self.version}")
        if entry.snapshot is not None:
            self._waiting.clear()
        self._waiting.append(entry)
        self._newest = entry
        return entry

    def state(self) -> PromptState:
        """The state at the newest version that was added; the empty one before the first."""
        for entry in self._waiting:
            self._state = advance(self._state, entry)
        self._waiting.clear()
        return self._state

    def update(self) -> Update:
        """The update of the newest version that was added."""
        assert self._newest is not None
        return rebuilt(self._newest, self.state(), self._lineage)


def rebuilt(made: Made, state: PromptState, lineage: str) -> Update:
    """The update of a version, of its entry and the state after it."""
    bullets = state.now.bullets
    return Update(
        prompt=made.prompt,
        version=made.version,
        base=made.base,
        kind=made.kind,
        changed=made.changed,
        text=render(bullets, counters=made.counters),
        bullets=bullets,
        lineage=lineage,
        at=UNSET if made.at is None else made.at,
        learned=learned_of(made),
        stats=made.stats,
    )


def needed(kept: list[bytes], found: Iterable[tuple[Head, bytes]]) -> list[bytes]:
    """Add entries, oldest first, to those that are kept, and let go of what the newest state does not need."""
    for head, value in found:
        if head.begins:
            kept = []
        kept.append(value)
    return kept
