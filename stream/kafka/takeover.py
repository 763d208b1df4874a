"""Taking over a partition: what must be read, and fit together, before its first record is learned from.

It is called when the partition's producer has started, for that ended the last owner's transaction: nothing read
before counts. Reading is here, judging what was read is in :mod:`stream.kafka.checks`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import anyio
import structlog
from aiokafka import AIOKafkaConsumer
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import KafkaError
from aiokafka.structs import OffsetAndMetadata, TopicPartition

from stream.kafka.checks import Contradiction, Found, Ours, Taken, judged
from stream.kafka.errors import PartitionHalted
from stream.kafka.messages import PARTITION_KEY
from stream.kafka.reading import read_through

log = structlog.get_logger()

READ_SECONDS = 120.0
"""How long reading a partition's state may take; an abandoned transaction of anyone's holds it up."""

_ASK_SECONDS = 60.0
_ASK_AGAIN = 0.1
_TRIES = 3


class Reads:
    """What a take-over reads with: clients that all partitions of a worker share.

    :param meter: a read_uncommitted consumer without a group, which is asked for ends of partitions and no record.
    """

    def __init__(self, connection: Mapping[str, Any], admin: AIOKafkaAdminClient, meter: AIOKafkaConsumer) -> None:
        self.connection = connection
        self._admin = admin
        self._meter = meter

    async def committed(self, group: str, partitions: list[TopicPartition]) -> dict[TopicPartition, OffsetAndMetadata]:
        """What the group has committed for exactly these partitions; offset -1 where that is nothing.

        :raises TimeoutError: when the coordinator would not say. An answer that leaves a partition out is none.
        """
        last: object = "a partition was missing in each answer"
        with anyio.move_on_after(_ASK_SECONDS):
            while True:
                try:
                    found = await self._admin.list_consumer_group_offsets(group, partitions=partitions)
                except (KafkaError, AttributeError) as error:  # aiokafka trips over an answer that holds an error
                    last, found = error, {}
                if all(tp in found for tp in partitions):
                    return {tp: found[tp] for tp in partitions}
                await anyio.sleep(_ASK_AGAIN)
        raise TimeoutError(f"the coordinator of group {group} does not say what is committed ({last})")

    async def ends(self, partitions: list[TopicPartition]) -> dict[TopicPartition, int]:
        """Their high watermarks."""
        return dict(await self._meter.end_offsets(partitions))

    async def begins(self, partitions: list[TopicPartition]) -> dict[TopicPartition, int]:
        """The first offsets that they still have."""
        return dict(await self._meter.beginning_offsets(partitions))


async def take_over(reads: Reads, ours: Ours) -> Taken:
    """Read what Kafka holds about a partition, until it fits together.

    :param ours: which partition, and what is expected of it.
    :raises ServiceStopped: when the service may not go on.
    :raises PartitionHalted: when this partition may not.
    :raises TimeoutError: when it took too long; try again.
    """
    for attempt in range(_TRIES):
        if attempt:
            await anyio.sleep(2 * _ASK_AGAIN)
        try:
            return judged(ours, await _read(reads, ours))
        except Contradiction as error:
            log.warning("what was read does not fit together, reading again", reason=str(error))
            last = error
    raise PartitionHalted(str(last))


async def _read(reads: Reads, ours: Ours) -> Found:
    traces, controls, updates, state = ours.traces, ours.controls, ours.updates, ours.state
    committed = await reads.committed(ours.group, [traces, controls])
    begins = await reads.begins([traces, controls])
    ends = await reads.ends([traces, controls, updates, state])
    newest: dict[TopicPartition, dict[bytes, bytes]] = {updates: {}, state: {}}

    def take(record: Any) -> None:
        kept = newest[TopicPartition(record.topic, record.partition)]
        if record.key is None:
            return
        if record.value is None:
            kept.pop(record.key, None)
        else:
            kept[record.key] = record.value

    spans = {tp: (0, ends[tp]) for tp in (updates, state)}
    await read_through(reads.connection, spans, take, timeout=READ_SECONDS)
    record = newest[state].pop(PARTITION_KEY, None)
    return Found(
        committed_traces=committed[traces],
        committed_controls=committed[controls],
        begin=begins[traces],
        end=ends[traces],
        controls_begin=begins[controls],
        controls_end=ends[controls],
        updates=newest[updates],
        states=newest[state],
        record=record,
    )
