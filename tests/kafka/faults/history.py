"""What is left of a run in the topics, for judging: everything but the updates' texts, of which digests do."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from operators.values import Update
from operators.wire import encode
from stream.kafka.messages import Answer, Fates, Made, decode_delta
from tests.kafka.faults.stored import Stored, digest

_update = msgspec.json.Decoder(Update).decode


class Told(Struct, frozen=True):
    """An update.

    :param raw: digest of its bytes; ``content`` that of all it says but its ``stats``, which time goes into.
    """

    partition: int
    offset: int
    prompt: str
    version: int
    raw: bytes
    content: bytes


class Delta(Struct, frozen=True):
    """A record of ``prompt-deltas``; ``record`` is None where it is none of ours."""

    partition: int
    offset: int
    raw: bytes
    record: Made | Fates | Answer | None


class History(Struct):
    """What a run leaves.

    :param count: partitions of each topic.
    :param topic: of traces.
    :param traces: all that was written to it, by whomever.
    :param deltas: committed, in the order of each partition; ``updates`` and ``rejects`` likewise.
    :param states: the newest of each (partition, key).
    """

    count: int
    topic: str
    traces: list[Stored] = field(default_factory=list)
    deltas: list[Delta] = field(default_factory=list)
    updates: list[Told] = field(default_factory=list)
    rejects: list[Stored] = field(default_factory=list)
    states: dict[tuple[int, bytes], bytes] = field(default_factory=dict)

    def made(self) -> dict[str, list[tuple[Delta, Made]]]:
        """The versions of each prompt, in the order of partitions and offsets."""
        found: dict[str, list[tuple[Delta, Made]]] = defaultdict(list)
        for each in sorted(self.deltas, key=lambda each: (each.partition, each.offset)):
            if isinstance(each.record, Made):
                found[each.record.prompt].append((each, each.record))
        return found


def delta(stored: Stored) -> Delta:
    """A committed record of ``prompt-deltas``."""
    try:
        record = None if stored.value is None else decode_delta(stored.value)
    except msgspec.MsgspecError:
        record = None
    return Delta(stored.partition, stored.offset, digest(stored.value), record)


def told(stored: Stored) -> Told:
    """A committed record of ``prompt-updates``.

    :raises msgspec.MsgspecError: when it is no update.
    """
    update = _update(stored.value or b"")
    return Told(
        stored.partition, stored.offset, update.prompt, update.version, digest(stored.value), content_of(update)
    )


def content_of(update: Update) -> bytes:
    """A digest of all that an update says but its ``stats``."""
    return digest(encode(replace(update, stats={})))


def newest(records: Iterable[Stored]) -> dict[tuple[int, bytes], bytes]:
    """The newest value of each key of a partition, as compaction leaves it."""
    found: dict[tuple[int, bytes], bytes] = {}
    for record in records:
        place = record.partition, record.key or b""
        if record.value is None:
            found.pop(place, None)
        else:
            found[place] = record.value
    return found
