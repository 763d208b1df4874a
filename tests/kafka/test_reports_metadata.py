"""Reports of users of another stream library, each a test: what a commit's metadata holds, and whom it is believed."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.structs import OffsetAndMetadata

from stream.config import Config
from stream.kafka import metadata
from stream.kafka.errors import PartitionHalted
from stream.kafka.ledger import SPAN
from tests.kafka.serving import (
    at_home,
    configured,
    ending_by,
    fates,
    made,
    send,
    serving,
    taken,
    trace,
    until,
)
from tests.kafka.stalling import Stalling


async def committed(config: Config, partitions: int = 1) -> dict[int, OffsetAndMetadata]:
    """What the group holds of the traces, by partition."""
    admin = AIOKafkaAdminClient(bootstrap_servers=config.kafka.bootstrap)
    await admin.start()
    try:
        each = [TopicPartition(config.topics.traces, number) for number in range(partitions)]
        found = await admin.list_consumer_group_offsets(config.kafka.group, partitions=each)
        return {tp.partition: found[tp] for tp in each}
    finally:
        await admin.close()


async def commit(config: Config, offsets: Mapping[int, OffsetAndMetadata]) -> None:
    """Commit as another program does that has the same group by mistake."""
    group = config.kafka.group
    consumer = AIOKafkaConsumer(bootstrap_servers=config.kafka.bootstrap, group_id=group, enable_auto_commit=False)
    await consumer.start()
    try:
        each = {TopicPartition(config.topics.traces, number): offset for number, offset in offsets.items()}
        consumer.assign(list(each))
        await consumer.commit(each)
    finally:
        await consumer.stop()


async def test_report_12_what_is_done_beyond_a_slow_record_always_fits(kafka: str, unique: str) -> None:
    """Report 12: state in commit metadata grows past 4,096 bytes and is stripped, or intake stops for good
    (parallel-consumer 647, 47).

    Every other record is slow, which no coding of ranges bears, and there are more than a span of them.
    """
    config = configured(
        kafka, unique, batch_size=1_000, in_flight=100_000, straggler_deadline=3_600.0, traces=100_000, drain=30.0
    )
    await made(config)
    small = {"steps": [{"role": "user", "content": "x"}]}
    count = SPAN + 2_000
    values = [trace(number, ("slow", "quick")[number % 2], **small) for number in range(count)]
    placed = await send(config, values)
    slow = Stalling({"slow"})
    async with serving(config, method=slow) as service:
        # Everything but slow records is learned as far as the span goes, and no record past it is taken.
        await until(lambda: service.tally.learned >= SPAN // 2)
        found = (await committed(config))[0]
        assert found.offset == 0
        assert 3_000 < len(found.metadata) <= metadata.LIMIT
        assert service.member is not None
        (tenure,) = service.member.tenures.values()
        assert tenure.load.span >= SPAN
        slow.release()
        await until(lambda: service.tally.learned + taken(service) == count)
    assert (await committed(config))[0].offset == count
    assert await fates(config) == {place: ["learned"] for place in placed}


async def test_report_12_a_slow_record_and_a_restart(kafka: str, unique: str) -> None:
    """Report 12: what was stripped runs again after a rebalance (parallel-consumer 647)."""
    config = configured(kafka, unique, in_flight=1_000, straggler_deadline=3_600.0, drain=0.5)
    await made(config)
    placed = await send(config, [trace(number, ("slow", "quick")[number % 2]) for number in range(200)])
    async with serving(config, method=Stalling({"slow"})) as service:
        await until(lambda: service.tally.learned >= 100)
    again = Stalling(set(), awaited=True)
    async with serving(config, method=again) as service:
        await until(lambda: service.tally.learned >= 100)
    assert set(again.calls) == {f"t-{number:06}" for number in range(0, 200, 2)}
    assert await fates(config) == {place: ["learned"] for place in placed}


Change = Callable[[OffsetAndMetadata, OffsetAndMetadata], OffsetAndMetadata]
"""From what was committed for a partition, and for another, to what somebody else commits."""


def _done_beyond(mine: OffsetAndMetadata, others: OffsetAndMetadata) -> OffsetAndMetadata:
    text = mine.metadata.split(" ")
    return OffsetAndMetadata(mine.offset, " ".join([*text[:3], "/////w==", text[4]]))


HOSTILE: dict[str, Change] = {
    "no metadata": lambda mine, others: OffsetAndMetadata(mine.offset, ""),
    "no metadata, from the beginning": lambda mine, others: OffsetAndMetadata(0, ""),
    "no metadata, past what was read": lambda mine, others: OffsetAndMetadata(mine.offset + 2, ""),
    "another program's": lambda mine, others: OffsetAndMetadata(mine.offset, "leader=connect-1"),
    "another library's": lambda mine, others: OffsetAndMetadata(mine.offset, "bAAAAAAAAAAAAAA//////w=="),
    "as long as the broker takes it": lambda mine, others: OffsetAndMetadata(mine.offset, "\N{SNOWMAN}" * 1_365),
    "ours for another partition": lambda mine, others: OffsetAndMetadata(others.offset, others.metadata),
    "ours for another offset": lambda mine, others: OffsetAndMetadata(mine.offset + 1, mine.metadata),
    "ours cut short": lambda mine, others: OffsetAndMetadata(mine.offset, mine.metadata[:-3]),
    "ours, and more counted as done": _done_beyond,
    "a newer version's": lambda mine, others: OffsetAndMetadata(mine.offset, mine.metadata.replace("/1 ", "/2 ")),
}


async def test_report_13_nobody_elses_word_is_taken_for_what_is_done(kafka: str, unique: str) -> None:
    """Report 13: hostile metadata says that records are done which never were (parallel-consumer 480, 563, 35)."""
    count = len(HOSTILE) + 1  # the last partition is left alone
    config = configured(kafka, unique)
    await made(config, count)
    prompts = [at_home(number, count) for number in range(count)]
    learned = await send(config, [trace(n, prompts[n % count]) for n in range(5 * count)], partitions=count)
    async with serving(config) as service:
        await until(lambda: service.tally.versions >= count)
    was = await committed(config, count)
    assert {each.offset for each in was.values()} == {5}
    hostile = {at: change(was[at], was[(at + 1) % count]) for at, change in enumerate(HOSTILE.values())}
    await commit(config, hostile)
    placed = await send(config, [trace(1_000 + n, prompts[n % count]) for n in range(5 * count)], partitions=count)
    with ending_by(PartitionHalted, f"has offset {hostile[0].offset} of {config.topics.traces}/0"):
        async with serving(config) as service:
            await until(lambda: service.member is not None and len(service.member.halted) == len(HOSTILE))
            await until(lambda: service.tally.versions >= 1)
    alone = [place for place in placed if place[0] == count - 1]
    assert await fates(config) == {place: ["learned"] for place in [*learned, *alone]}
    assert {at: each for at, each in (await committed(config, count)).items() if at in hostile} == hostile
    await commit(config, {at: was[at] for at in hostile})  # put right again, all is read that was not done
    async with serving(config) as service:
        await until(lambda: service.tally.versions >= len(HOSTILE))
    assert await fates(config) == {place: ["learned"] for place in [*learned, *placed]}
