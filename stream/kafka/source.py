"""The source: one task that polls the consumer for as long as it lives, and is stopped by a flag, never cancelled.

A cancelled poll never gives back its fetch context, so a poller that hangs would not be seen any more. Each partition
is polled on its own: when a record of one cannot be read, what the others had ready in the same poll would be lost.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence

import structlog
from aiokafka import AIOKafkaConsumer
from aiokafka.errors import (
    CorruptRecordException,
    IllegalStateError,
    NoOffsetForPartitionError,
    OffsetOutOfRangeError,
)
from aiokafka.structs import ConsumerRecord, TopicPartition

from stream.kafka.tenure import CHUNK, Tenure
from stream.kafka.tolerant import Reread

log = structlog.get_logger()

_WAIT_MS = 200
_MOST = 2 * CHUNK


class Source:
    """Polls, and hands what was read to the tenures of its partitions.

    :param tenures: by partition; those that are not accepting get nothing.
    :param traces: bound of traces taken and not done, of all partitions; ``bytes`` of them.
    :param reread: reads a partition from an offset where aiokafka's reader cannot.
    :param gone: told of a partition whose position is out of range.
    """

    def __init__(
        self,
        consumer: AIOKafkaConsumer,
        tenures: Mapping[TopicPartition, Tenure],
        *,
        traces: int,
        bytes: int,
        clock: Callable[[], float],
        reread: Callable[[TopicPartition, int], Awaitable[Reread]],
        gone: Callable[[TopicPartition], None],
    ) -> None:
        self._consumer = consumer
        self._tenures = tenures
        self._traces = traces
        self._bytes = bytes
        self._clock = clock
        self._reread = reread
        self._gone = gone
        self._paused: set[TopicPartition] = set()
        self._is_over = False
        self.stopping = False
        self.polled = clock()
        """When the last poll began."""

    @property
    def paused(self) -> frozenset[TopicPartition]:
        """The partitions that are not read for now, for what was read of them is not done."""
        return frozenset(self._paused)

    def open(self, tp: TopicPartition, offset: int) -> None:
        """Read a partition that was taken over, from an offset on."""
        self._consumer.seek(tp, offset)
        self._consumer.resume(tp)
        self._paused.discard(tp)

    async def run(self) -> None:
        """Poll until ``stopping``."""
        while not self.stopping:
            self.polled = self._clock()
            await self._balance()
            reading = [tp for tp, each in self._tenures.items() if each.accepting and tp not in self._paused]
            moved = False
            for tp in reading:
                moved |= await self._poll(tp)
            if moved:
                await asyncio.sleep(0)
                continue
            await self._wait(reading or list(self._tenures))
            for tp in reading:
                await self._note_position(tp)

    async def _poll(self, tp: TopicPartition) -> bool:
        """Hand over what is ready of one partition."""
        try:
            records = (await self._consumer.getmany(tp, timeout_ms=0, max_records=_MOST)).get(tp)
        except UnicodeDecodeError:
            return await self._read_tolerantly(tp)
        except (OffsetOutOfRangeError, NoOffsetForPartitionError):
            self._gone(tp)
            return False
        except CorruptRecordException as error:
            log.error(
                "a batch is damaged, fetching it again", partition=f"{tp.topic}/{tp.partition}", reason=str(error)
            )
            return False
        if not records:
            return False
        self._hand(tp, records)
        return True

    async def _wait(self, partitions: Sequence[TopicPartition]) -> None:
        """Wait a moment for something to read: at most one record, so that an error loses no other partition's."""
        try:
            found = await self._consumer.getmany(*partitions, timeout_ms=_WAIT_MS, max_records=1)
        except (UnicodeDecodeError, OffsetOutOfRangeError, NoOffsetForPartitionError, CorruptRecordException):
            return  # it does not say whose it is: polled on its own, the partition raises it again
        for tp, records in found.items():
            self._hand(tp, records)

    async def _read_tolerantly(self, tp: TopicPartition) -> bool:
        position = await self._consumer.position(tp)
        log.warning("a record has a header key that is not UTF-8", partition=f"{tp.topic}/{tp.partition}", at=position)
        found = await self._reread(tp, position)
        tenure = self._tenures.get(tp)
        if tenure is None or not tenure.accepting or await self._consumer.position(tp) != position:
            return False
        if found.records:
            self._hand(tp, found.records)
        self._consumer.seek(tp, found.next)
        return bool(found.next > position)

    def _hand(self, tp: TopicPartition, records: Sequence[ConsumerRecord]) -> None:
        tenure = self._tenures.get(tp)
        if tenure is not None and tenure.accepting:
            tenure.take(records)

    async def _note_position(self, tp: TopicPartition) -> None:
        tenure = self._tenures.get(tp)
        if tenure is None or not tenure.accepting:
            return
        try:
            position = await self._consumer.position(tp)
        except IllegalStateError:  # it has just been taken away
            return
        if self._tenures.get(tp) is tenure:
            tenure.passed_to(position)

    async def _balance(self) -> None:
        """Pause what has no room, and resume what has."""
        tenures = list(self._tenures.items())
        traces, bytes = sum(each.traces for _, each in tenures), sum(each.bytes for _, each in tenures)
        if traces >= self._traces or bytes >= self._bytes:
            self._is_over = True
        elif traces <= self._traces // 2 and bytes <= self._bytes // 2:
            self._is_over = False
        for tp, tenure in tenures:
            if not tenure.accepting:
                continue
            paused = tp in self._paused
            full = self._is_over or tenure.is_full(paused)
            if full != paused:
                self._set(tp, full)
        if self._is_over:
            for _, tenure in tenures:
                await tenure.relieve()

    def _set(self, tp: TopicPartition, paused: bool) -> None:
        try:
            if paused:
                self._consumer.pause(tp)
                self._paused.add(tp)
            else:
                self._consumer.resume(tp)
                self._paused.discard(tp)
        except IllegalStateError:  # it has just been taken away
            self._paused.discard(tp)
