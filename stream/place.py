"""Places where prompts live: what a command needs of one, whether a store or a cluster is behind it."""

from __future__ import annotations

from collections.abc import Iterator
from types import TracebackType
from typing import Any, Protocol, Self

from msgspec import Struct

from operators.entry import Entry
from operators.values import Update
from stream.formats.imported import Imported


class Asked(Struct, frozen=True):
    """Who wants a version made by hand, and when (RFC 3339)."""

    who: str
    at: str


class Amended(Struct, frozen=True):
    """What came of asking for a version.

    :param version: the one that was made; without ``made`` the newest, which needed no other.
    :param changed: whether agents can tell it from the one before.
    :param bullets: how many it has.
    :param hidden: of an import that the version has already, how many bullets agents do not get any more.
    :param evicted: how many went because they were beyond the budget, which is ``budget`` tokens where that is known.
    """

    version: int
    made: bool = True
    changed: bool = True
    bullets: int = 0
    evicted: int = 0
    hidden: int = 0
    budget: int | None = None


class Prompt(Protocol):
    """One prompt as it was when it was asked for; what is published later does not show."""

    @property
    def version(self) -> int:
        """The newest version."""
        ...

    def update(self, version: int) -> Update:
        """The update of a version; version 0 shows nothing. Cheap for the one whose entry was the last to be yielded.

        :raises UnknownVersion: when there is no such version.
        """
        ...

    def encoded(self, version: int) -> bytes:
        """The update of a version as JSON, as it was published."""
        ...

    def entries(self) -> Iterator[Entry]:
        """What made each version, oldest first."""
        ...

    def extra(self, format: str, version: int) -> dict[str, Any]:
        """What the newest import of a format that a version holds brought besides bullets."""
        ...


class Place(Protocol):
    """Where prompts live; a context manager."""

    def prompt(self, name: str) -> Prompt:
        """A prompt to read.

        :raises UnknownPrompt: when it has no version.
        """
        ...

    def rollback(self, name: str, to: int, asked: Asked) -> Amended:
        """Make the lessons of an older version the newest version; version 0 is empty.

        :raises UnknownPrompt: when the prompt has no version.
        :raises UnknownVersion: when there is no version ``to``.
        """
        ...

    def merge(self, name: str, imported: Imported, asked: Asked) -> Amended:
        """Merge bullets into a prompt, which need not exist, unless its newest version holds this import already."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


def nothing(prompt: str) -> Update:
    """Version 0 of a prompt."""
    return Update(prompt, 0, 0, "window", False, "", ())
