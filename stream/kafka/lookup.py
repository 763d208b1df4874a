"""Looking up one prompt in its partition, for a command: bounded in memory, and in how long it waits for nothing.

What is looked for is mostly near the end of a partition, so stretches are read from there, each longer than the last.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Protocol

import msgspec
from aiokafka import AIOKafkaConsumer
from aiokafka.structs import ConsumerRecord, TopicPartition

from stream.config import Config
from stream.kafka.cluster import ClusterError, HistoryIncomplete, NoSuchTopic, answering, told
from stream.kafka.connection import connection
from stream.kafka.homes import home
from stream.kafka.reading import reader
from stream.kafka.rebuilt import Head, decode_head, needed
from stream.kafka.topics import partitions

ANSWER_SECONDS = 10.0
"""How long a broker may take to answer what is asked once."""

STALL_SECONDS = 60.0
"""How long a reader may stand still: the transaction of a producer that was killed holds it up for half as long."""

_POLL_MS = 200
_RECORDS = 2_000
_FETCH_BYTES = 4 << 20
# A fetch at the end of one partition holds up the first fetch of the next for as long.
_FETCH_WAIT_MS = 50
_FIRST_STRETCH = 1_000
_GROWTH = 4


class Progress(Protocol):
    """Shows a person what takes long, and how far it has come."""

    def at(self, doing: str, done: int, total: int) -> None:
        """Show that ``done`` of ``total`` offsets, or seconds, of ``doing`` something are over."""
        ...

    def hide(self) -> None:
        """Show nothing any more, for results come now."""
        ...


class Newest:
    """The newest update of a prompt, or what there is in its place.

    :param value: None when there is no such prompt.
    :param others: the prompts that its partition has, when there is not.
    """

    def __init__(self, value: bytes | None, others: list[str]) -> None:
        self.value = value
        self.others = others


class Lookup:
    """Clients that look into a cluster; one thing is read at a time.

    :param counts: how many partitions each topic has.
    :param meter: a read_uncommitted consumer, asked for high watermarks.
    :param consumer: a read_committed one.
    """

    def __init__(
        self,
        config: Config,
        counts: dict[str, int],
        meter: AIOKafkaConsumer,
        consumer: AIOKafkaConsumer,
        progress: Progress,
    ) -> None:
        self.kafka = config.kafka
        self.consumer = consumer
        self.progress = progress
        self.reading: object = None
        self._counts = counts
        self._meter = meter

    def home(self, topic: str, prompt: str) -> TopicPartition:
        """The partition of a topic that a prompt is at home in.

        :raises NoSuchTopic: when there is no such topic.
        """
        count = self._counts.get(topic)
        if not count:
            raise NoSuchTopic(
                f"there is no topic {topic} at {self.kafka.bootstrap}; `tracecomb topics create` makes it, another "
                "name goes under [topics] in the configuration"
            )
        return TopicPartition(topic, home(prompt.encode(), self.kafka.partitioner, count))

    async def span(self, tp: TopicPartition) -> tuple[int, int]:
        """The first offset of a partition, and its high watermark."""
        with answering(self.kafka, ANSWER_SECONDS, f"where {name_of(tp)} begins and ends"):
            begins = await self._meter.beginning_offsets([tp])
            ends = await self._meter.end_offsets([tp])
        return begins[tp], ends[tp]

    async def newest(self, updates: TopicPartition, prompt: str) -> Newest:
        """The newest update of a prompt."""
        begin, end = await self.span(updates)
        key, length = prompt.encode(), _FIRST_STRETCH
        alive: dict[bytes, bool] = {}
        deleted = False
        while begin < end:
            start = max(begin, end - length)
            stretch = Stretch(self, updates, start, end)
            last: ConsumerRecord | None = None
            seen: dict[bytes, bool] = {}
            while records := await stretch.more():
                for record in records:
                    if record.key == key and not deleted:
                        last = record
                    if record.key is not None:
                        seen[record.key] = record.value is not None
            if last is not None:
                if last.value is not None:
                    return Newest(last.value, [])
                deleted = True
            alive = {**seen, **alive}
            end, length = start, length * _GROWTH
        return Newest(None, sorted(each.decode("utf-8", "replace") for each, lives in alive.items() if lives))

    async def chain(self, deltas: TopicPartition, prompt: str, version: int) -> list[bytes]:
        """The entries that the state at a version is rebuilt of, oldest first: those since a snapshot.

        :raises HistoryIncomplete: when they are not there.
        """
        begin, end = await self.span(deltas)
        length = _FIRST_STRETCH
        chain: list[bytes] = []
        whole = False
        while begin < end and not whole:
            start = max(begin, end - length)
            stretch = Stretch(self, deltas, start, end)
            kept: list[bytes] = []
            while records := await stretch.more():
                found = [each for each in versions_of(records, prompt) if each[0].version <= version]
                whole = whole or any(head.begins for head, _ in found)
                kept = needed(kept, found)
            chain = kept + chain
            end, length = start, length * _GROWTH
        if not whole:
            raise HistoryIncomplete(
                f"{name_of(deltas)} does not hold all of versions 1 to {version} of {prompt!r}; it must be kept for "
                "ever, which `tracecomb topics check` looks at"
            )
        return chain


class Stretch:
    """A stretch of a partition, read to its end.

    :param end: the offset after the last.
    """

    def __init__(self, lookup: Lookup, tp: TopicPartition, start: int, end: int) -> None:
        self._lookup = lookup
        self._tp = tp
        self._start = self._at = start
        self._end = end

    async def more(self) -> list[ConsumerRecord]:
        """The next records; none at the end.

        :raises ClusterError: when nothing moves any more.
        """
        lookup, consumer, tp = self._lookup, self._lookup.consumer, self._tp
        with told(lookup.kafka):
            if lookup.reading is not self:
                consumer.assign([tp])
                consumer.seek(tp, self._at)
                lookup.reading = self
            moved = time.monotonic()
            while self._at < self._end:
                found = await consumer.getmany(tp, timeout_ms=_POLL_MS, max_records=_RECORDS)
                at = await consumer.position(tp)
                if at > self._at:
                    self._at, moved = at, time.monotonic()
                lookup.progress.at(f"reading {name_of(tp)}", self._at - self._start, self._end - self._start)
                records = [record for record in found.get(tp, ()) if record.offset < self._end]
                if records:
                    return records
                if time.monotonic() > moved + STALL_SECONDS:
                    raise ClusterError(
                        f"{name_of(tp)} at {lookup.kafka.bootstrap} gives nothing after offset {self._at} for "
                        f"{STALL_SECONDS:g} s, and ends at {self._end}: its leader does not answer, or a producer "
                        "holds a transaction open there"
                    )
        return []


@asynccontextmanager
async def looking(config: Config, progress: Progress) -> AsyncIterator[Lookup]:
    """Connect to a cluster.

    :raises ClusterError: when it cannot be reached, within seconds.
    """
    kafka = config.kafka
    options = {**connection(kafka), "request_timeout_ms": int(ANSWER_SECONDS * 1_000)}
    with answering(kafka, ANSWER_SECONDS, "which topics it has"):
        counts = await partitions(kafka)
    async with (
        reader(options, isolation_level="read_uncommitted") as meter,
        reader(options, max_partition_fetch_bytes=_FETCH_BYTES, fetch_max_wait_ms=_FETCH_WAIT_MS) as consumer,
    ):
        yield Lookup(config, counts, meter, consumer, progress)


def versions_of(records: list[ConsumerRecord], prompt: str) -> list[tuple[Head, bytes]]:
    """Those of some records of ``prompt-deltas`` that made a version of a prompt."""
    key, found = prompt.encode(), []
    for record in records:
        if record.key != key or record.value is None:
            continue
        try:
            head = decode_head(record.value)
        except msgspec.MsgspecError:
            continue  # whatever it is, it is none of ours
        if head.is_version:
            found.append((head, record.value))
    return found


def name_of(tp: TopicPartition) -> str:
    """``topic/partition``."""
    return f"{tp.topic}/{tp.partition}"
