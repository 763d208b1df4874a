"""Records as they stand in a topic, and what must become of one in the topic of traces, told by its bytes alone."""

from __future__ import annotations

import json
from hashlib import blake2b
from typing import Any, Literal, NamedTuple

from aiokafka.partitioner import murmur2

Fate = Literal["learned", "duplicate", "refused", "rejected", "skipped"]


class Stored(NamedTuple):
    """A record of a topic; ``timestamp`` is in milliseconds."""

    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[bytes, bytes | None], ...] = ()
    timestamp: int = 0

    @property
    def place(self) -> tuple[int, int]:
        """Partition and offset."""
        return self.partition, self.offset


class Due(NamedTuple):
    """What must become of a record; a trace is learned, or is a duplicate of one with its prompt and id.

    :param fate: None for a trace.
    """

    fate: Literal["rejected", "skipped"] | None = None
    prompt: str = ""
    id: str = ""


REJECTED = Due("rejected")
SKIPPED = Due("skipped")


def digest(data: bytes | None) -> bytes:
    """Sixteen bytes that stand for these."""
    return b"" if data is None else blake2b(data, digest_size=16).digest()


def home_of(prompt: str, count: int) -> int:
    """The partition that aiokafka's own partitioner sends a prompt's traces to."""
    return int(murmur2(prompt.encode()) & 0x7FFFFFFF) % count


def due(record: Stored, count: int) -> Due:
    """What must become of a record of the topic of traces, by the design's rules for records of our own format.

    :param count: partitions of the topic.
    """
    if record.value is None:
        return REJECTED
    try:
        value: Any = json.loads(record.value)
    except (ValueError, RecursionError):
        return REJECTED
    if value == []:
        return SKIPPED
    if not isinstance(value, dict) or not isinstance(value.get("steps"), list):
        return REJECTED
    prompt = value.get("prompt", "")
    if not prompt:
        try:
            prompt = (record.key or b"default").decode()
        except UnicodeDecodeError:
            return REJECTED
    if home_of(prompt, count) != record.partition:
        return REJECTED
    return Due(None, prompt, value["id"])
