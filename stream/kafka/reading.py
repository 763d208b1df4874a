"""Reading a stretch of a partition to its end, by a reader of its own."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import anyio
from aiokafka import AIOKafkaConsumer
from aiokafka.structs import ConsumerRecord, TopicPartition

from stream.kafka.stopping import start, stop

_POLL_MS = 200
_RECORDS = 2_000
_STOP_SECONDS = 5.0


@asynccontextmanager
async def reader(connection: Mapping[str, Any], **options: Any) -> AsyncIterator[AIOKafkaConsumer]:
    """A consumer without a group; it is stopped within seconds, also when the task is cancelled."""
    consumer = AIOKafkaConsumer(
        **{
            **connection,
            "group_id": None,
            "enable_auto_commit": False,
            "auto_offset_reset": "earliest",
            "isolation_level": "read_committed",
            "retry_backoff_ms": 20,
            **options,
        }
    )
    try:
        await start(consumer)
        yield consumer
    finally:
        await stop(consumer, _STOP_SECONDS)


async def read_through(
    connection: Mapping[str, Any],
    spans: Mapping[TopicPartition, tuple[int, int]],
    take: Callable[[ConsumerRecord], None],
    *,
    timeout: float,
) -> None:
    """Hand every committed record of these stretches to ``take``, in order within a partition.

    The end of a stretch is a high watermark. A read_committed reader comes to it only when no transaction is open
    before it any more, whoever's that is; what it finds before then may be behind what was committed.

    :param spans: the first offset, and the one after the last. The log may begin later than the first.
    :raises TimeoutError: when ``timeout`` seconds were not enough.
    """
    left = {tp: end for tp, (start, end) in spans.items() if start < end}
    if not left:
        return
    try:
        with anyio.fail_after(timeout):
            await _read(connection, spans, left, take)
    except TimeoutError:
        held = ", ".join(f"{tp.topic}/{tp.partition}" for tp in sorted(left))
        raise TimeoutError(
            f"{held} could not be read to the end in {timeout:.0f} s. A transaction that is open there holds up its "
            "readers; brokers end one within its timeout unless they have lost track of it, and such ones are named by "
            "kafka-transactions.sh find-hanging, and ended by its abort"
        ) from None


async def _read(
    connection: Mapping[str, Any],
    spans: Mapping[TopicPartition, tuple[int, int]],
    left: dict[TopicPartition, int],
    take: Callable[[ConsumerRecord], None],
) -> None:
    async with reader(connection) as consumer:
        consumer.assign(list(left))
        for tp in left:
            consumer.seek(tp, spans[tp][0])
        while left:
            for tp, records in (await consumer.getmany(timeout_ms=_POLL_MS, max_records=_RECORDS)).items():
                for record in records:
                    if record.offset < spans[tp][1]:
                        take(record)
            for tp in list(left):
                # A position, not the last record's offset: markers and compacted records stand at ends too.
                if await consumer.position(tp) >= left[tp]:
                    del left[tp]
                    consumer.pause(tp)
