"""Watching a member: whether its consumer still polls and moves, and whether this process was stopped for long."""

from __future__ import annotations

from collections.abc import Callable

import anyio
import structlog
from aiokafka import AIOKafkaConsumer
from aiokafka.errors import KafkaError
from aiokafka.structs import TopicPartition

from stream.kafka.member import Member

log = structlog.get_logger()

TICK_SECONDS = 1.0
SILENT_SECONDS = 60.0
"""How long a consumer may read nothing of a partition that has something for it."""


class Watch:
    """Finds out that a member must be built anew.

    :param meter: a read_committed consumer without a group, asked for last stable offsets only: what lies behind
        somebody's open transaction is not ours to read yet.
    :param session: seconds after which the group has given our partitions away.
    :param rebalance: seconds for which a poll may wait for the others.
    """

    def __init__(
        self, member: Member, meter: AIOKafkaConsumer, clock: Callable[[], float], *, session: float, rebalance: float
    ) -> None:
        self._member = member
        self._meter = meter
        self._clock = clock
        self._session = session
        self._rebalance = rebalance
        self._moved: dict[TopicPartition, tuple[int, float]] = {}

    async def silent(self) -> str:
        """Wait until the member is of no use any more; return why."""
        before = self._clock()
        looked = before
        while True:
            await anyio.sleep(TICK_SECONDS)
            now = self._clock()
            if self._member.broken:
                return self._member.broken
            if now - before > self._session:
                self._member.abandon()
                return f"this process stood still for {now - before:.0f} s, longer than the session timeout"
            if now - self._member.source.polled > self._rebalance + SILENT_SECONDS:
                return f"the consumer has not been polled for {now - self._member.source.polled:.0f} s"
            if now - looked >= SILENT_SECONDS / 4:
                looked = now
                if (silent := await self._stuck(now)) is not None:
                    return f"the consumer reads nothing more of {silent.topic}/{silent.partition}, though there is more"
            before = self._clock()  # what looking took is no standstill of ours: a broker that is down does not answer

    async def _stuck(self, now: float) -> TopicPartition | None:
        positions = await self._member.positions()
        try:
            with anyio.fail_after(SILENT_SECONDS / 4):
                ends = await self._meter.end_offsets(list(positions)) if positions else {}
        except (KafkaError, TimeoutError) as error:
            log.warning("cannot see whether the consumer keeps up", reason=str(error))
            ends = {}
        for tp in list(self._moved):
            if tp not in ends:
                del self._moved[tp]
        for tp, end in ends.items():
            position, since = self._moved.get(tp, (-1, now))
            if positions[tp] != position or positions[tp] >= end:
                self._moved[tp] = positions[tp], now
            elif now - since >= SILENT_SECONDS:
                return tp
        return None
