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
    KafkaError,
    NoOffsetForPartitionError,
    OffsetOutOfRangeError,
)
from aiokafka.structs import ConsumerRecord, TopicPartition

from stream.kafka.bounds import Load, decide
from stream.kafka.ledger import SPAN
from stream.kafka.tenure import CHUNK, Tenure
from stream.kafka.tolerant import Reread

log = structlog.get_logger()

DAMAGED = 5
"""How often a batch may come damaged before it is so where it is kept, and not only as it came."""

_WAIT_MS = 200
_SOON_MS = 20
_MOST = 2 * CHUNK
_UNREADABLE = (UnicodeDecodeError, OffsetOutOfRangeError, NoOffsetForPartitionError, CorruptRecordException)


class Source:
    """Polls, and hands what was read to the tenures of its partitions.

    :param tenures: by partition; those that are not accepting get nothing.
    :param traces: bound of traces taken and not done, of all partitions, but for one poll each; ``bytes`` of
        them.
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
        self._bounds = Load(traces, bytes, SPAN)
        self._most = max(1, min(_MOST, traces // 8))
        self._clock = clock
        self._reread = reread
        self._gone = gone
        self._paused: set[TopicPartition] = set()
        self._failures: dict[TopicPartition, tuple[int, int]] = {}
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
            accepting = [(tp, each) for tp, each in self._tenures.items() if each.accepting]
            reading = [tp for tp, each in accepting if tp not in self._paused and not each.is_behind]
            moved = False
            for tp in reading:
                moved |= await self._poll(tp)
            if moved:
                await asyncio.sleep(0)
                continue
            await self._wait(reading, _SOON_MS if len(reading) < len(accepting) else _WAIT_MS)
            for tp in reading:
                await self._note_position(tp)

    async def _poll(self, tp: TopicPartition, timeout_ms: int = 0) -> bool:
        """Hand over what is ready of one partition."""
        try:
            records = (await self._consumer.getmany(tp, timeout_ms=timeout_ms, max_records=self._most)).get(tp)
        except UnicodeDecodeError:
            return await self._read_tolerantly(tp)
        except CorruptRecordException as error:  # aiokafka's reader in pure Python means a header key by it, too
            return await self._read_tolerantly(tp, error)
        except (OffsetOutOfRangeError, NoOffsetForPartitionError):
            self._gone(tp)
            return False
        if not records:
            return False
        self._hand(tp, records)
        return True

    async def _wait(self, reading: Sequence[TopicPartition], timeout_ms: int) -> None:
        """Wait a moment for something to read: at most one record, so that an error loses no other partition's."""
        those = reading or [tp for tp, each in self._tenures.items() if not each.is_behind]  # the group wants a poll
        if self._tenures and not those:
            await asyncio.sleep(timeout_ms / 1000)
            return
        try:
            found = await self._consumer.getmany(*those, timeout_ms=timeout_ms, max_records=1)
        except _UNREADABLE:
            if not reading:
                await asyncio.sleep(timeout_ms / 1000)
            # It does not say whose it is, and what was fetched is gone with it. Each is waited for on its own now, at
            # once, or the same error would come out here again and again where no other partition has records.
            outcomes = await asyncio.gather(*(self._poll(tp, _WAIT_MS) for tp in reading), return_exceptions=True)
            for outcome in outcomes:
                if isinstance(outcome, BaseException):
                    raise outcome from None
            return
        for tp, records in found.items():
            self._hand(tp, records)

    async def _read_tolerantly(self, tp: TopicPartition, error: Exception | None = None) -> bool:
        """Read a partition again where aiokafka's reader cannot.

        :param error: of that reader, where it may mean a batch that nobody can read.
        """
        position, name = await self._consumer.position(tp), f"{tp.topic}/{tp.partition}"
        try:
            found = await self._reread(tp, position)
        except CorruptRecordException as damage:
            await self._damaged(tp, position, str(damage))
            return False
        except OffsetOutOfRangeError:
            self._gone(tp)
            return False
        except (KafkaError, TimeoutError, OSError) as trouble:
            log.warning("could not be read again, trying once more", partition=name, at=position, reason=str(trouble))
            return False
        self._failures.pop(tp, None)
        tenure = self._tenures.get(tp)
        if tenure is None or not tenure.accepting or await self._consumer.position(tp) != position:
            return False
        if found.next > position:
            reason = str(error) if error else "a header key is not UTF-8"
            log.warning("read with the tolerant decoder", partition=name, at=position, to=found.next, reason=reason)
        if found.records:
            self._hand(tp, found.records)
        self._consumer.seek(tp, found.next)
        return bool(found.next > position)

    async def _damaged(self, tp: TopicPartition, position: int, reason: str) -> None:
        """Have a batch fetched again that came damaged; when it always does, nobody reads past it."""
        at, failures = self._failures.get(tp, (position, 0))
        failures = failures + 1 if at == position else 1
        self._failures[tp] = position, failures
        name = f"{tp.topic}/{tp.partition}"
        log.error("a batch is damaged, fetching it again", partition=name, at=position, reason=reason)
        tenure = self._tenures.get(tp)
        if failures >= DAMAGED and tenure is not None:
            del self._failures[tp]
            tenure.halt(
                f"what lies at offset {position} of {name} is damaged, {failures} fetches found it so ({reason}): let "
                "the broker restore it from a replica, or delete the records up to it and go on with "
                'on_loss = "continue" under [service]'
            )
        await asyncio.sleep(_WAIT_MS / 1000)

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
        loads = {tp: each.load for tp, each in self._tenures.items() if each.accepting}
        decision = decide(loads, self._paused, self._bounds)
        for tp in decision.pause:
            self._set(tp, paused=True)
        for tp in decision.resume:
            self._set(tp, paused=False)
        for tp in decision.relieve:
            await self._tenures[tp].relieve()

    def _set(self, tp: TopicPartition, *, paused: bool) -> None:
        try:
            if paused:
                self._consumer.pause(tp)
                self._paused.add(tp)
            else:
                self._consumer.resume(tp)
                self._paused.discard(tp)
        except IllegalStateError:  # it has just been taken away
            self._paused.discard(tp)
