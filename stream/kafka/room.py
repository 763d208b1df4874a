"""Whether what a version writes fits the topics, and when a prompt has no room for another window. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from stream.kafka.outgoing import Message

OVERHEAD = 512
"""Bytes that a record costs beside its key and value, at most."""

RESERVE = 16
"""A window starts only when its prompt's state leaves this part of the limit free."""


class Room:
    """The largest record that the topics take.

    :param limit: in bytes, uncompressed.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit

    def over(self, messages: Sequence[Message]) -> str:
        """What is too large, for people; nothing when all of it fits."""
        for message in messages:
            size = sized(message)
            if size > self.limit:
                return f"a record of {size:,} bytes for {message.topic}, which takes {self.limit:,}"
        return ""

    def share(self, message: Message) -> float:
        """How much of a record there is room for; 1 or more when it fits."""
        return self.limit / sized(message)

    def full(self, state: int) -> str:
        """Why no window may start on a state that was written in so many bytes; nothing when one may."""
        reserve = self.limit // RESERVE
        if state + reserve <= self.limit:
            return ""
        return f"its state has {state:,} bytes and a window needs {reserve:,} more, which is over {self.limit:,}"


def sized(message: Message) -> int:
    """The bytes of a record, uncompressed."""
    return len(message.key or b"") + len(message.value or b"") + OVERHEAD
