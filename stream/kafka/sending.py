"""Sending trace logs to the topic of traces: at least once, and going on after a kill."""

from __future__ import annotations

import os
import time
from asyncio import Future, gather
from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import anyio
import structlog
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.errors import KafkaError
from msgspec.structs import replace

from operators.wire import encode
from stream.config import Config
from stream.kafka.aside import aside
from stream.kafka.cluster import told
from stream.kafka.connection import connection
from stream.kafka.cursor import Cursor, Sent, is_of_topic
from stream.kafka.homes import home
from stream.kafka.layout import TopicFound
from stream.kafka.memory import Memory
from stream.kafka.pace import Pace
from stream.prompts import Prompts
from stream.records import Bad, Found, Record, Skipped

log = structlog.get_logger()

_BATCH = 512  # records whose acknowledgements are waited for together
_BATCH_SECONDS = 0.5
_UNDER_WAY = 4  # batches
_OVERHEAD = 512  # bytes that a record costs beside its key and value, at most
_STOP_WITHIN = 10.0


class Tally:
    """What was counted, for progress and for the end."""

    def __init__(self) -> None:
        self.sent = 0
        self.known: Counter[str] = Counter()
        """Traces that were sent before, by log."""
        self.rejected = 0
        self.skipped: list[Skipped] = []
        self.changed: list[str] = []


class _Batch(NamedTuple):
    """Records under way, and what is sent of their logs once they are acknowledged."""

    futures: list[Future[Any]]
    cursors: dict[str, Sent]
    since: float


class Sending:
    """One run over the logs.

    :param topic: the topic of traces, as it was found.
    :param memory: how far each log was sent before.
    :param again: send from the start what was sent before.
    :param reject: told of each record that is no trace, or that is too large for the topic.
    :param progress: called after each chunk.
    """

    def __init__(
        self,
        config: Config,
        topic: TopicFound,
        memory: Memory,
        pace: Pace,
        *,
        again: bool = False,
        reject: Callable[[Bad], None] = lambda bad: None,
        progress: Callable[[Tally], None] = lambda tally: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.tally = Tally()
        self._kafka = config.kafka
        self._topic = config.topics.traces
        self._partitions = topic.partitions
        self._largest = int(topic.settings["max.message.bytes"]) - _OVERHEAD
        self._prompts = Prompts(config.replay)
        self._memory = memory
        self._pace = pace
        self._again = again
        self._reject = reject
        self._progress = progress
        self._clock = clock
        self._begun: float | None = None
        self._cursors: dict[str, Cursor] = {}
        self._ends: dict[str, int] = {}
        self._offsets: dict[str, int] = {}
        self._batch = _Batch([], {}, 0.0)
        self._under_way: deque[_Batch] = deque()

    async def run(self, read: Callable[[], Iterable[Sequence[Record]]]) -> Tally:
        """Send what is new in the logs.

        :param read: begins to read them, from the first record of the first.
        :raises ClusterError: when the brokers do not take it; what they took before is remembered.
        """
        with told(self._kafka):
            self._ends = await self._end_offsets()
            producer = AIOKafkaProducer(
                **connection(self._kafka),
                enable_idempotence=True,
                acks="all",
                compression_type="zstd",
                linger_ms=5,
                max_request_size=self._largest + _OVERHEAD,
            )
            await producer.start()
            try:
                await self._pass(producer, read())
                if changed := {name for name, cursor in self._cursors.items() if cursor.changed}:
                    self.tally.changed += sorted(changed)
                    self._cursors = {name: Cursor() for name in changed}
                    self.tally.known -= Counter({name: self.tally.known[name] for name in changed})
                    await self._pass(producer, read(), only=changed)
            finally:
                with anyio.move_on_after(_STOP_WITHIN, shield=True):
                    await self._leave(producer)
        return self.tally

    async def _leave(self, producer: Any) -> None:
        """Wait for what is under way, so that an interrupted run need not send it again, and stop."""
        try:
            with suppress(KafkaError):  # it was raised where the sending ended
                await self._settle(0)
        finally:
            await producer.stop()
            left = [future for batch in self._under_way for future in batch.futures]
            await gather(*left, return_exceptions=True)  # else asyncio complains of each that nobody looked at

    async def _pass(self, producer: Any, chunks: Iterable[Sequence[Record]], only: set[str] | None = None) -> None:
        chunk: Sequence[Record] | None
        iterator = iter(chunks)
        # A read from a pipe may wait for hours, and the producer has to work meanwhile.
        while (chunk := await aside(lambda: next(iterator, None))) is not None:
            for record in chunk:
                if only is None or (not isinstance(record, Skipped) and record.file in only):
                    await self._take(producer, record)
            self._progress(self.tally)
        await self._settle(0)

    async def _take(self, producer: Any, record: Record) -> None:
        if isinstance(record, Skipped):
            self.tally.skipped.append(record)
            return
        cursor = self._cursors.get(record.file)
        if cursor is None:
            cursor = self._cursors[record.file] = Cursor(self._known(record.file))
        if not cursor.is_new(record):
            self.tally.known[record.file] += isinstance(record, Found)
            return
        if isinstance(record, Bad):
            self._rejected(record)
            return
        await self._send(producer, record)
        # A bad line at the end may be one that is still being written, so only a trace moves on what is remembered.
        self._batch.cursors[record.file] = cursor.sent({})

    async def _send(self, producer: Any, found: Found) -> None:
        prompt = self._prompts.of(found.trace)
        trace = found.trace if found.trace.prompt == prompt else replace(found.trace, prompt=prompt)
        key, value = prompt.encode(), encode(trace)
        if len(key) + len(value) > self._largest:
            reason = f"{len(value):,} bytes, and {self._topic} takes {self._largest:,} (max.message.bytes)"
            self._rejected(Bad(found.file, found.line, reason, value[: 1 << 20]))
            return
        await self._until_due(self._pace.due(found.trace))
        if not self._batch.futures:
            self._batch = self._batch._replace(since=self._clock())
        # The time of sending, and not the trace's own: retention goes by it, and would drop an old log at once.
        partition = home(key, self._kafka.partitioner, self._partitions)
        self._batch.futures.append(await producer.send(self._topic, value, key, partition=partition))
        if len(self._batch.futures) >= _BATCH or self._clock() - self._batch.since > _BATCH_SECONDS:
            await self._settle(_UNDER_WAY)

    async def _until_due(self, due: float) -> None:
        if self._begun is None:
            self._begun = self._clock()
        wait = self._begun + due - self._clock()
        if wait > _BATCH_SECONDS:
            await self._settle(0)
            self._progress(self.tally)
            wait = self._begun + due - self._clock()
        if wait > 0:
            await anyio.sleep(wait)

    def _rejected(self, bad: Bad) -> None:
        self.tally.rejected += 1
        self._reject(bad)

    async def _settle(self, left: int) -> None:
        """Close the batch, and wait for the oldest until no more than ``left`` are under way."""
        if self._batch.futures or self._batch.cursors:
            self._under_way.append(self._batch)
            self._batch = _Batch([], {}, 0.0)
        while len(self._under_way) > left:
            batch = self._under_way[0]
            for future in batch.futures:
                acknowledged = await future
                name = str(acknowledged.partition)
                self._offsets[name] = max(self._offsets.get(name, -1), acknowledged.offset)
            self._under_way.popleft()
            self.tally.sent += len(batch.futures)
            for name, sent in batch.cursors.items():
                if _is_remembered(name):
                    self._memory.put(name, replace(sent, offsets=dict(self._offsets)))

    def _known(self, name: str) -> Sent | None:
        if self._again or not _is_remembered(name):
            return None
        known = self._memory.get(name)
        if known is None or is_of_topic(known, self._ends):
            return known
        log.info("sent before to another topic of this name", file=name)
        return None

    async def _end_offsets(self) -> dict[str, int]:
        partitions = [TopicPartition(self._topic, number) for number in range(self._partitions)]
        consumer = AIOKafkaConsumer(**connection(self._kafka), enable_auto_commit=False)
        await consumer.start()
        try:
            ends = await consumer.end_offsets(partitions)
        finally:
            with anyio.move_on_after(_STOP_WITHIN, shield=True):
                await consumer.stop()
        return {str(each.partition): end for each, end in ends.items()}


def _is_remembered(log: str) -> bool:
    """Whether a log can be read again: no pipe, and no name that people are shown instead of the file's own."""
    return os.path.isfile(log)
