"""Publishing: all that is ready of a partition, in one transaction at a time.

A transaction is opened when there is something to publish and never around a model call. It writes versions, deltas,
states, rejects and fates, then the offsets of what they make done; every record is known to be written before the
offsets are, for a commit goes through although a record failed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import anyio
import structlog
from aiokafka import AIOKafkaProducer
from aiokafka.structs import OffsetAndMetadata

from operators.explanation import SizesState
from operators.wire import encode
from stream.kafka import metadata
from stream.kafka.checks import Ours
from stream.kafka.errors import CannotPublish, TenureLost
from stream.kafka.layout import MAX_MESSAGE_BYTES
from stream.kafka.ledger import Ledger, Position
from stream.kafka.messages import PARTITION_KEY, Answer, Committed, Fates, PartitionRecord, encode_delta
from stream.kafka.outgoing import Message, size_of
from stream.kafka.producing import NEVER

log = structlog.get_logger()

IDLE_SECONDS = 1.0
"""How long what needs no version (duplicates, skipped records) waits for a transaction to ride in."""

TRANSACTION_BYTES = 16 << 20
"""Above so many bytes what is ready is published in more than one transaction, for each must end within seconds."""

FATES = 1_000
"""The most fates of a kind that one record tells."""

_FATE_BYTES = 8_192  # the most that one takes: JSON writes a character of a name in six bytes at worst

_TRANSACTION_SECONDS = 30.0
_ABORT_SECONDS = 3.0


class _Batch:
    """What one transaction publishes."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.offsets: list[int] = []
        self.control: int | None = None
        self.bytes = 0
        self.committed = anyio.Event()


class Publisher:
    """The transactions of one partition in one epoch.

    :param producer: started; nobody else uses it.
    :param controls: the committed offset of the partition's controls.
    :param sizes: what the batch size controller knows.
    :param progress: called after each commit.
    :param largest: bytes of the largest record that the topics take.
    """

    def __init__(
        self,
        producer: AIOKafkaProducer,
        ours: Ours,
        ledger: Ledger,
        controls: int,
        sizes: Callable[[], SizesState],
        progress: Callable[[], None],
        *,
        largest: int = MAX_MESSAGE_BYTES,
    ) -> None:
        self._producer = producer
        self._ours = ours
        self._ledger = ledger
        self._sizes = sizes
        self._progress = progress
        self.controls = controls
        self._ready: list[_Batch] = []
        self._duplicates: list[tuple[int, str, str]] = []
        self._skipped: list[int] = []
        self._refused: list[tuple[int, str, str, str]] = []
        self._fates_a_record = max(1, min(FATES, largest // _FATE_BYTES))
        self._lost: tuple[tuple[int, int], ...] = ()
        self._wake = anyio.Event()
        self._idle = anyio.Event()
        self._idle.set()

    async def publish(self, messages: Sequence[Message], offsets: Sequence[int], control: int | None = None) -> None:
        """Publish records, and with them what they make done; returns when that is committed.

        :param offsets: of the traces that are done with it.
        :param control: the control that is answered with it.
        """
        await self._add(messages, offsets, control).wait()

    def reject(self, message: Message, offset: int) -> None:
        """Publish a rejected record with the next transaction, which is now."""
        self._add([message], [offset], None)

    def duplicate(self, offset: int, prompt: str, id: str) -> None:
        """Count a trace as a duplicate."""
        self._duplicates.append((offset, prompt, id))

    def skip(self, offset: int) -> None:
        """Count a record as one with no trace in it."""
        self._skipped.append(offset)

    def refuse(self, offset: int, prompt: str, id: str, reason: str) -> None:
        """Count a trace as one that its prompt can learn nothing from."""
        self._refused.append((offset, prompt, id, reason))

    def lose(self, lost: tuple[tuple[int, int], ...]) -> None:
        """Say with the next transaction, which is now, that records are gone."""
        self._lost = lost
        self._add([], [], None)

    def answer(self, answer: Answer) -> Message:
        """The record that answers a control."""
        return Message(self._ours.topics.deltas, answer.prompt.encode() or None, encode_delta(answer))

    async def flush(self) -> None:
        """Publish all that is ready, what could wait included; returns when it is committed."""
        if self._has_fates() or self._ledger.position() != self._ledger.committed:
            self._add([], [], None)
        await self._idle.wait()

    def begin(self) -> None:
        """Commit the position with the next transaction, though nothing is done: so it is known where we began."""
        self._add([], [], None)

    async def run(self) -> None:
        """Publish until cancelled.

        :raises TenureLost: when nobody knows what was published.
        """
        while True:
            if not self._ready:
                self._idle.set()
                with anyio.move_on_after(IDLE_SECONDS):
                    await self._wake.wait()
                if not self._ready:
                    if not (self._has_fates() or self._ledger.position() != self._ledger.committed):
                        continue
                    self._add([], [], None)
            self._wake = anyio.Event()
            batch = self._ready.pop(0)
            fates = self._fates()
            await self._transact(batch, fates)
            batch.committed.set()
            self._progress()

    def _add(self, messages: Sequence[Message], offsets: Sequence[int], control: int | None) -> anyio.Event:
        bytes = size_of(messages)
        batch = self._ready[-1] if self._ready else None
        if batch is None or batch.bytes + bytes > TRANSACTION_BYTES:
            batch = _Batch()
            self._ready.append(batch)
        batch.messages.extend(messages)
        batch.offsets.extend(offsets)
        batch.bytes += bytes
        if control is not None:
            batch.control = control
        if self._idle.is_set():
            self._idle = anyio.Event()
        self._wake.set()
        return batch.committed

    def _has_fates(self) -> bool:
        return bool(self._duplicates or self._skipped or self._refused)

    def _fates(self) -> list[Fates]:
        """What became of records that are in no window, in as many records as fit the topic."""
        duplicates, skipped, refused, lost = self._duplicates, self._skipped, self._refused, self._lost
        self._duplicates, self._skipped, self._refused, self._lost = [], [], [], ()
        source, step = self._ours.source, self._fates_a_record
        most = max(len(duplicates), len(skipped), len(refused), len(lost))
        return [
            Fates(
                source=source,
                duplicates=tuple(duplicates[at : at + step]),
                skipped=tuple(skipped[at : at + step]),
                refused=tuple(refused[at : at + step]),
                lost=lost[at : at + step],
            )
            for at in range(0, most, step)
        ]

    async def _transact(self, batch: _Batch, fates: list[Fates]) -> None:
        messages, done = list(batch.messages), list(batch.offsets)
        controls = self.controls if batch.control is None else max(self.controls, batch.control + 1)
        for each in fates:
            messages.append(Message(self._ours.topics.deltas, None, encode_delta(each)))
            done += [offset for offset, _, _ in each.duplicates]
            done += each.skipped
            done += [offset for offset, _, _, _ in each.refused]
        position = self._ledger.preview(done)
        offsets = self._offsets(position, controls)
        messages.append(self._partition_record(offsets))
        try:
            with anyio.fail_after(_TRANSACTION_SECONDS):
                await self._send(messages, offsets)
        except BaseException as error:
            await self._abort()
            if isinstance(error, NEVER):
                raise CannotPublish(
                    f"{self._ours.source}: the broker will never take what is ready: {error}"
                ) from error
            if isinstance(error, Exception):
                raise TenureLost(f"{type(error).__name__}: {error}") from error
            raise
        self._ledger.done(done)
        self._ledger.commit(position)
        self.controls = controls

    async def _send(self, messages: Sequence[Message], offsets: dict[Any, OffsetAndMetadata]) -> None:
        producer, partition = self._producer, self._ours.partition
        await producer.begin_transaction()
        futures: list[asyncio.Future[Any]] = []
        try:
            for message in messages:
                headers = list(message.headers)
                future = await producer.send(message.topic, message.value, message.key, partition, headers=headers)
                futures.append(future)
        finally:
            if futures:
                await asyncio.wait(futures)
            errors = [future.exception() for future in futures if not future.cancelled()]
        failed = next((error for error in errors if error is not None), None)
        if failed is not None:
            raise failed
        await producer.send_offsets_to_transaction(offsets, self._ours.group)
        await producer.commit_transaction()

    async def _abort(self) -> None:
        """End the transaction for others' sake: an open one holds up all who read the partition."""
        with anyio.move_on_after(_ABORT_SECONDS, shield=True):
            try:
                await self._producer.abort_transaction()
            except (Exception, asyncio.CancelledError) as error:
                log.debug("could not abort; the next owner will", error=str(error))

    def _offsets(self, position: Position, controls: int) -> dict[Any, OffsetAndMetadata]:
        ours = self._ours
        return {
            tp: OffsetAndMetadata(each.offset, metadata.encode(each, ours.count, ours.place(tp)))
            for tp, each in ((ours.traces, position), (ours.controls, Position(controls)))
        }

    def _partition_record(self, offsets: dict[Any, OffsetAndMetadata]) -> Message:
        ours = self._ours
        traces, controls = offsets[ours.traces], offsets[ours.controls]
        record = PartitionRecord(
            traces=Committed(traces.offset, traces.metadata),
            controls=Committed(controls.offset, controls.metadata),
            partitions=ours.count,
            lineage=ours.lineage,
            sizes=self._sizes(),
        )
        value = b'{"schema":%d,' % record.schema + encode(record).removeprefix(b"{")
        return Message(ours.topics.state, PARTITION_KEY, value)
