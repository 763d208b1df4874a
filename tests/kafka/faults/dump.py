"""Taking down what a run has left on a broker, once nothing writes any more."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio
from aiokafka import AIOKafkaConsumer
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import KafkaError
from aiokafka.structs import TopicPartition

from tests.kafka.faults.history import Delta, History, Told, delta, newest, told
from tests.kafka.faults.segments import read_partition
from tests.kafka.faults.stopping import stop
from tests.kafka.faults.stored import Stored

TRACES, UPDATES, DELTAS, STATE, REJECTS = (
    "agent-traces", "prompt-updates", "prompt-deltas", "prompt-state", "trace-rejects",
)  # fmt: skip
_READ_SECONDS = 60.0
_ASK_AGAIN = 0.3


def partitions(topic: str, count: int) -> list[TopicPartition]:
    """All partitions of a topic."""
    return [TopicPartition(topic, number) for number in range(count)]


def _consumer(bootstrap: str, isolation: str) -> Any:
    return AIOKafkaConsumer(
        bootstrap_servers=bootstrap, group_id=None, enable_auto_commit=False, isolation_level=isolation
    )


async def watermarks(bootstrap: str, topics: list[TopicPartition]) -> dict[TopicPartition, int]:
    """One past the last record of each, committed or not."""
    consumer = _consumer(bootstrap, "read_uncommitted")
    await consumer.start()
    try:
        return dict(await consumer.end_offsets(topics))
    finally:
        await stop(consumer)


async def behind(bootstrap: str, group: str, topic: str, count: int) -> dict[int, int]:
    """How many offsets of each partition the group's committed offset lies before its end; nothing where it does not.

    Done beyond a record that is not, as the offsets' metadata would tell, counts as not done.
    """
    ends = await watermarks(bootstrap, partitions(topic, count))
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
    await admin.start()
    try:
        found = await admin.list_consumer_group_offsets(group, partitions=list(ends))
    finally:
        await admin.close()
    lags = {tp.partition: end - max(found[tp].offset if tp in found else 0, 0) for tp, end in ends.items()}
    return {partition: lag for partition, lag in lags.items() if lag}


async def until_done(bootstrap: str, group: str, topic: str, count: int, seconds: float) -> dict[int, int]:
    """Wait until the group has done all of a topic; what it lies behind when that takes longer."""
    lags: dict[int, int] = {-1: -1}
    with anyio.move_on_after(seconds):
        while lags:
            # An admin client trips over an answer that holds an error, with an AttributeError.
            with suppress(KafkaError, AttributeError, OSError):
                lags = await behind(bootstrap, group, topic, count)
            await anyio.sleep(_ASK_AGAIN)
    return lags


async def read_committed(bootstrap: str, topic: str, count: int, take: Callable[[Stored], None]) -> list[str]:
    """Hand over all that is committed, in the order of each partition, up to the end just now.

    :return: which partitions could not be read to their end, for a transaction that nobody ends.
    """
    ends = await watermarks(bootstrap, partitions(topic, count))
    consumer = _consumer(bootstrap, "read_committed")
    await consumer.start()
    try:
        consumer.assign(list(ends))
        await consumer.seek_to_beginning()
        left = set(ends)
        with anyio.move_on_after(_READ_SECONDS):
            while left:
                for records in (await consumer.getmany(timeout_ms=200)).values():
                    for each in records:
                        headers = tuple((name.encode(), content) for name, content in each.headers)
                        take(Stored(each.partition, each.offset, each.key, each.value, headers, each.timestamp))
                left = {tp for tp in left if await consumer.position(tp) < ends[tp]}
        return [f"{topic}/{tp.partition} cannot be read to its end" for tp in sorted(left)]
    finally:
        await stop(consumer)


async def history(bootstrap: str, data: Path, count: int, say: Callable[[str], None]) -> History:
    """All that is there.

    :param say: told what cannot be read.
    :param data: the broker's data directory, which the topic of traces is read from: no reader of ours or of aiokafka
        then decides what was in it.
    """
    traces = [record for number in range(count) for record in read_partition(data, TRACES, number).records]
    deltas: list[Delta] = []
    updates: list[Told] = []
    states: list[Stored] = []
    rejects: list[Stored] = []
    takes: dict[str, Callable[[Stored], None]] = {
        DELTAS: lambda record: deltas.append(delta(record)),
        UPDATES: lambda record: updates.append(told(record)),
        STATE: states.append,
        REJECTS: rejects.append,
    }
    for topic, take in takes.items():
        for unread in await read_committed(bootstrap, topic, count, take):
            say(unread)
    return History(count, TRACES, traces, deltas, updates, rejects, newest(states))


def aborted(data: Path, count: int) -> int:
    """How many transactions that had written a delta were aborted: those that a fault has hit in their midst."""
    return sum(read_partition(data, DELTAS, number).aborted for number in range(count))


def lost_ends(log: Path) -> list[str]:
    """What a broker says of transactions whose ends it left out for good, so that nothing after them is committed."""
    lines = log.read_text(errors="replace").splitlines()
    return [line for line in lines if "find leader endpoint for partitions" in line]
