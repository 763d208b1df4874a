"""What a reader of one trace format is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from msgspec import Struct

from operators.values import Trace

Placed = tuple[int, Trace]
"""A trace, and the line (from 1) of its file that it starts on."""


class NotATrace(ValueError):
    """A value is no trace of the format it looks like; the message says why."""


class Reading(Protocol):
    """One file being read: whatever a format has to remember between two values lives here."""

    def take(self, value: object, line: int) -> Sequence[Placed]:
        """Take the next decoded JSON value of the file, and return the traces that it completes.

        :raises NotATrace: when the value is refused; the reading goes on with the next one.
        """
        ...

    def close(self) -> Sequence[Placed]:
        """Return the traces that the end of the file completes."""
        ...


class Reader(Protocol):
    """One trace format, recognised by content and never by a file's name."""

    @property
    def name(self) -> str:
        """The format's name, as people see it."""
        ...

    def detect(self, value: object) -> bool:
        """Whether a decoded JSON value is a trace of this format, or a piece of one.

        A list is first shown with its first element alone: claiming that claims the whole list as one value. A list
        that nobody claims is taken as a list of values. At most one reader may claim a value.
        """
        ...

    def start(self) -> Reading:
        """Begin a file."""
        ...


class Rows(Struct, frozen=True):
    """A format in which every value is a whole trace: its reader and, as there is nothing to remember, its reading."""

    name: str
    detect: Callable[[object], bool]
    read: Callable[[object], Trace]

    def start(self) -> Rows:
        return self

    def take(self, value: object, line: int) -> Sequence[Placed]:
        return ((line, self.read(value)),)

    def close(self) -> Sequence[Placed]:
        return ()
