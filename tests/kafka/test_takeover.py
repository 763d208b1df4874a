"""Taking over a partition on a real broker: nothing stale, nothing twice, nobody un-fenced."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.structs import OffsetAndMetadata

from stream.config import Config
from stream.kafka.errors import PartitionHalted, PositionLost, TenureLost, cause_of
from stream.kafka.service import Service
from stream.kafka.takeover import Reads
from stream.kafka.tenure import Tenure
from tests.kafka.serving import (
    configured,
    ending_by,
    fates,
    made,
    read_all,
    send,
    serving,
    trace,
    until,
    updates,
    versions,
)

PROMPT = "support/refunds"


class Owner:
    """One partition owned without a group: what a worker does once it was assigned."""

    def __init__(self, tenure: Tenure, service: Service) -> None:
        self.tenure = tenure
        self.service = service
        self.offset: int | None = None
        self.error: BaseException | None = None

    async def run(self) -> None:
        try:
            await self.tenure.run()
        except Exception as error:
            self.error = cause_of(error)

    async def begins(self) -> int:
        """Wait until the partition is taken over; return where it goes on."""
        await until(lambda: self.offset is not None or self.error)
        assert self.offset is not None
        return self.offset

    async def publishes(self, versions: int) -> None:
        """Wait until it has published so many versions."""
        await until(lambda: self.service.tally.versions >= versions)


@asynccontextmanager
async def owning(config: Config, partition: int = 0) -> AsyncIterator[Owner]:
    service = Service(config)
    async with service._clients() as (shared, _):
        owner: Owner

        def seek(offset: int) -> None:
            owner.offset = offset

        owner = Owner(Tenure(shared, shared.ours(partition), seek), service)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(owner.run)
            yield owner
            owner.tenure.abandon()


async def test_nothing_is_stale_right_after_a_commit(kafka: str, unique: str) -> None:
    """aiokafka's commit returns before everyone sees it; a new owner that looked too early would learn twice."""
    config = configured(kafka, unique)
    await made(config)
    await send(config, [trace(number, PROMPT) for number in range(60)])
    records = await read_all(config, config.topics.traces)
    for start in range(0, 60, 5):
        async with owning(config) as owner:
            assert await owner.begins() == start
            owner.tenure.take(records[start : start + 5])
            await owner.publishes(1)
    assert [update.version for update in await updates(config)] == list(range(1, 13))
    assert all(fate == ["learned"] for fate in (await fates(config)).values())


async def test_what_stands_behind_anothers_open_transaction_is_waited_for(kafka: str, unique: str) -> None:
    """The end that read_committed readers see is held back by anyone's transaction: our versions lie behind it."""
    config = configured(kafka, unique)
    await made(config)
    await send(config, [trace(number, PROMPT) for number in range(10)])
    records = await read_all(config, config.topics.traces)
    async with AIOKafkaProducer(
        bootstrap_servers=kafka, transactional_id=f"{unique}-another", transaction_timeout_ms=60_000
    ) as another:
        await another.begin_transaction()
        for topic in (config.topics.updates, config.topics.state):
            await (await another.send(topic, b"{}", b"other", 0))
        async with owning(config) as first:
            # Nothing was there before, so the first owner too must wait for the open transaction.
            await anyio.sleep(1)
            assert not first.tenure.accepting
            await another.abort_transaction()
            assert await first.begins() == 0
            await another.begin_transaction()
            for topic in (config.topics.updates, config.topics.state):
                await (await another.send(topic, b"{}", b"other", 0))
            first.tenure.take(records[:5])
            await first.publishes(1)
        async with owning(config) as second:
            await anyio.sleep(2)
            assert not second.tenure.accepting  # its own version 1 is committed, and cannot be seen yet
            await another.abort_transaction()
            assert await second.begins() == 5
            second.tenure.take(records[5:])
            await second.publishes(1)
    assert [update.version for update in await updates(config)] == [1, 2]
    assert set(map(tuple, (await fates(config)).values())) == {("learned",)}


async def test_a_fenced_owner_drops_its_windows_and_stays_fenced(kafka: str, unique: str) -> None:
    config = configured(kafka, unique)
    await made(config)
    await send(config, [trace(number, PROMPT) for number in range(10)])
    records = await read_all(config, config.topics.traces)
    async with owning(config) as zombie:
        assert await zombie.begins() == 0
        await until(lambda: zombie.tenure.has_published)  # where it began
        zombie.tenure.take(records[:4])  # a window that is still open when its owner is replaced
        async with owning(config) as rightful:
            assert await rightful.begins() == 0
            rightful.tenure.take(records[:5])
            await rightful.publishes(1)
            zombie.tenure.take(records[4:5])
            await until(lambda: zombie.error)
            # It was fenced, and did nothing to become the owner again: that is for the group to say.
            rightful.tenure.take(records[5:])
            await rightful.publishes(2)
        assert rightful.error is None
    assert isinstance(zombie.error, TenureLost)
    assert "Fenced" in str(zombie.error)
    assert [update.version for update in await updates(config)] == [1, 2]
    assert set(map(tuple, (await fates(config)).values())) == {("learned",)}


async def test_a_worker_that_was_fenced_takes_over_anew(kafka: str, unique: str) -> None:
    """A producer that timed out, or a mistaken twin: if the partition is still ours we own it again, from step 1."""
    config = configured(kafka, unique)
    await made(config)
    await send(config, [trace(number, PROMPT) for number in range(8)])
    records = await read_all(config, config.topics.traces)
    async with serving(config) as service:
        await until(lambda: service.tally.versions >= 1)
        async with owning(config) as twin:  # it fences the service's producer
            assert await twin.begins() == 5
            twin.tenure.take(records[5:])
            placed = await send(config, [trace(number, PROMPT) for number in range(8, 20)])
            await until(lambda: service.tally.versions >= 3)
            twin.tenure.abandon()
    found = await versions(config)
    assert [each.version for each in found] == list(range(1, len(found) + 1))
    told = await fates(config)
    assert all(told[place] == ["learned"] for place in placed)
    assert set(map(tuple, told.values())) == {("learned",)}


class Loading:
    """The answers of a coordinator that loads its offsets: nothing, without an error."""

    def __init__(self, admin: AIOKafkaAdminClient, times: int) -> None:
        self._admin = admin
        self.left = times

    async def list_consumer_group_offsets(
        self, group: str, partitions: list[TopicPartition]
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        found: dict[TopicPartition, OffsetAndMetadata]
        found = await self._admin.list_consumer_group_offsets(group, partitions=partitions)
        self.left -= 1
        if self.left >= 0:
            return dict(list(found.items())[: self.left % len(partitions)])  # some, or none
        return found


async def test_a_coordinator_that_loads_is_asked_again(kafka: str, unique: str) -> None:
    config = configured(kafka, unique)
    await made(config)
    await send(config, [trace(number, PROMPT) for number in range(5)])
    async with serving(config) as service:
        await until(lambda: service.tally.versions >= 1)
    admin = AIOKafkaAdminClient(bootstrap_servers=kafka)
    meter = AIOKafkaConsumer(bootstrap_servers=kafka)
    await admin.start()
    await meter.start()
    try:
        loading = Loading(admin, 5)
        traces, controls = (TopicPartition(topic, 0) for topic in (config.topics.traces, config.topics.controls))
        found = await Reads({"bootstrap_servers": kafka}, loading, meter).committed(
            config.kafka.group, [traces, controls]
        )
    finally:
        await meter.stop()
        await admin.close()
    assert loading.left == -1
    assert (found[traces].offset, found[controls].offset) == (5, 0)


@pytest.mark.parametrize("text", ["", "another program's"])
async def test_a_commit_that_is_not_ours_halts_the_partition(kafka: str, unique: str, text: str) -> None:
    config = configured(kafka, unique)
    await made(config)
    await send(config, [trace(number, PROMPT) for number in range(10)])
    async with serving(config) as service:
        await until(lambda: service.tally.versions >= 2)
    consumer = AIOKafkaConsumer(bootstrap_servers=kafka, group_id=config.kafka.group, enable_auto_commit=False)
    await consumer.start()
    try:
        tp = TopicPartition(config.topics.traces, 0)
        consumer.assign([tp])
        await consumer.commit({tp: OffsetAndMetadata(3, text)})
    finally:
        await consumer.stop()
    with ending_by(PartitionHalted, "has offset 3 of"):
        async with serving(config) as service:
            await until(lambda: service.member is not None and service.member.halted)
            await send(config, [trace(number, PROMPT) for number in range(10, 15)])
            await anyio.sleep(1)
    assert len(await versions(config)) == 2


async def test_versions_without_a_position_stop_the_service(kafka: str, unique: str) -> None:
    config = configured(kafka, unique)
    await made(config)
    async with AIOKafkaProducer(bootstrap_servers=kafka) as producer:
        lineage = ""
        service = Service(config)
        async with service._clients() as (shared, _):
            lineage = shared.lineage
        value = b'{"version": 3, "lineage": "%s"}' % lineage.encode()
        await producer.send_and_wait(config.topics.updates, value, b"p", 0)
    with pytest.raises(PositionLost, match="versions of 1 prompts"):
        await Service(config).run()
