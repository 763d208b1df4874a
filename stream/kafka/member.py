"""Membership in the consumer group: which partitions are ours, in which epoch, and a tenure for each.

aiokafka rebalances eagerly: each rebalance revokes everything, and all that is assigned is taken over anew.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from functools import partial

import anyio
import structlog
from aiokafka import AIOKafkaConsumer
from aiokafka.abc import ConsumerRebalanceListener
from aiokafka.client import AIOKafkaClient
from aiokafka.errors import (
    ConsumerStoppedError,
    GroupAuthorizationFailedError,
    KafkaError,
    TopicAuthorizationFailedError,
)
from aiokafka.structs import TopicPartition
from anyio.abc import TaskGroup

from operators.lane import WindowLost
from stream.kafka.errors import CannotRead, PartitionHalted, StopHung, TenureLost, cause_of
from stream.kafka.shared import Shared
from stream.kafka.source import Source
from stream.kafka.stopping import stop
from stream.kafka.tenure import Tenure
from stream.kafka.tolerant import Reread, reread

log = structlog.get_logger()

REVOKE_SECONDS = 5.0
"""What a revoke may take: the whole group waits for its slowest member."""

_FETCH_BYTES = 50 << 20
_STOP_SECONDS = 10.0
_REREAD_SECONDS = 5.0  # for the other partitions are not read meanwhile
_MOST_WAIT = 30.0


class Member(ConsumerRebalanceListener):  # type: ignore[misc]
    """One consumer of the group, from its start to its stop."""

    def __init__(self, shared: Shared) -> None:
        self._shared = shared
        kafka = shared.config.kafka
        self._heartbeat = kafka.session_timeout / 3
        self._consumer = AIOKafkaConsumer(
            **shared.connection,
            group_id=kafka.group,
            enable_auto_commit=False,
            auto_offset_reset="none",
            isolation_level="read_committed",
            session_timeout_ms=round(kafka.session_timeout * 1000),
            heartbeat_interval_ms=round(self._heartbeat * 1000),
            rebalance_timeout_ms=round((kafka.session_timeout + shared.config.service.drain + REVOKE_SECONDS) * 1000),
            fetch_max_bytes=min(_FETCH_BYTES, shared.config.service.bytes),
        )
        self.tenures: dict[TopicPartition, Tenure] = {}
        self.halted: dict[TopicPartition, str] = {}
        """Partitions that stopped, and why; they count as ours and are not read."""
        self.epoch = 0
        self.broken = ""
        """Why the consumer is of no use any more, once it is not."""
        self.source = Source(
            self._consumer,
            self.tenures,
            traces=shared.config.service.traces,
            bytes=shared.config.service.bytes,
            clock=shared.clock,
            reread=self._reread,
            gone=self._gone,
        )
        self._tasks: TaskGroup

    async def run(self, ended: Callable[[], Awaitable[bool]]) -> None:
        """Be a member until ``ended`` returns, then let everything go and leave.

        :param ended: returns whether the open windows are to be closed and published, as far as time allows.
        :raises StopHung: when the consumer does not stop.
        """
        drained = False
        async with anyio.create_task_group() as tasks:
            self._tasks = tasks
            try:
                self._consumer.subscribe([self._shared.config.topics.traces], listener=self)
                await self._consumer.start()
                tasks.start_soon(self._poll)
                drained = await ended()
                self.source.stopping = True
                seconds = self._shared.config.service.drain if drained else REVOKE_SECONDS
                await self._let_all_go(seconds, drain=drained)
            finally:
                self.source.stopping = True
                self.abandon()
                if not await stop(self._consumer, _STOP_SECONDS):
                    raise StopHung(_STOP_SECONDS, drained=drained)
            tasks.cancel_scope.cancel()  # a poll that waits for a rebalance would wait for ever

    async def _poll(self) -> None:
        try:
            await self.source.run()
        except (GroupAuthorizationFailedError, TopicAuthorizationFailedError) as error:
            raise CannotRead(f"not allowed to read {self._shared.config.topics.traces}: {error}") from error
        except (KafkaError, ConsumerStoppedError) as error:
            self.broken = f"{type(error).__name__}: {error}"

    def on_partitions_assigned(self, assigned: Iterable[TopicPartition]) -> None:
        """Pause what was assigned, hand it over and return: no heartbeat is sent while this runs."""
        self._consumer.pause(*assigned)
        self.epoch += 1
        self.tenures.clear()
        self.halted.clear()
        for tp in sorted(assigned):
            self._tasks.start_soon(self._own, tp, self.epoch)

    async def on_partitions_revoked(self, revoked: Iterable[TopicPartition]) -> None:
        """Publish what is ready, and abandon the rest."""
        self.epoch += 1
        if self.tenures:
            log.info("partitions revoked", partitions=sorted(tp.partition for tp in revoked))
        await self._let_all_go(REVOKE_SECONDS, drain=False)
        self.tenures.clear()

    async def positions(self) -> dict[TopicPartition, int]:
        """Where the consumer has come to, of the partitions that are being read."""
        reading = [tp for tp, each in self.tenures.items() if each.accepting and tp not in self.source.paused]
        assigned = self._consumer.assignment()
        return {tp: await self._consumer.position(tp) for tp in reading if tp in assigned}

    def abandon(self) -> None:
        """Drop all that is under way at once: somebody else may own it already."""
        self.epoch += 1
        for tenure in self.tenures.values():
            tenure.abandon()

    async def _let_all_go(self, seconds: float, *, drain: bool) -> None:
        async with anyio.create_task_group() as tasks:
            for tenure in list(self.tenures.values()):
                tasks.start_soon(partial(tenure.let_go, seconds, drain=drain))

    async def _own(self, tp: TopicPartition, epoch: int) -> None:
        """Own a partition for as long as it is assigned: one tenure after another when one is lost."""
        shared, ours = self._shared, self._shared.ours(tp.partition)

        def seek(offset: int) -> None:
            if self.epoch == epoch:
                self.source.open(tp, offset)

        failures = 0
        with structlog.contextvars.bound_contextvars(partition=ours.source):
            while self.epoch == epoch and not self.source.stopping:
                tenure = self.tenures[tp] = Tenure(shared, ours, seek)
                try:
                    await tenure.run()
                except Exception as error:
                    cause = cause_of(error)
                    if isinstance(cause, PartitionHalted):
                        self.halted[tp] = str(cause)
                        log.error("partition halted", reason=str(cause))
                        self._pause(tp, epoch)
                        return
                    if not isinstance(cause, KafkaError | TenureLost | WindowLost | TimeoutError | OSError):
                        raise cause from error
                    failures = 0 if tenure.has_published else failures + 1
                    log.warning("tenure lost, taking over again", reason=f"{type(cause).__name__}: {cause}")
                else:
                    if not tenure.is_lost:
                        return
                # Long enough for a heartbeat to tell that the partition is not ours any more.
                self._pause(tp, epoch)
                await anyio.sleep(min(self._heartbeat * 2 ** min(failures, 5), max(_MOST_WAIT, self._heartbeat)))

    def _pause(self, tp: TopicPartition, epoch: int) -> None:
        if self.epoch == epoch and tp in self._consumer.assignment():
            self._consumer.pause(tp)

    def _gone(self, tp: TopicPartition) -> None:
        """Take a partition over again: its position is out of range, and a take-over knows what to do then."""
        tenure = self.tenures.get(tp)
        if tenure is not None:
            tenure.lose()

    async def _reread(self, tp: TopicPartition, offset: int) -> Reread:
        client = AIOKafkaClient(**self._shared.connection)
        try:
            await client.bootstrap()
            return await reread(client, tp, offset, max_bytes=1 << 20, timeout=_REREAD_SECONDS)
        finally:
            with anyio.move_on_after(_STOP_SECONDS, shield=True):
                await client.close()
