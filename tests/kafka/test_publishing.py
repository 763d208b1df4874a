"""Publishing on a real broker: all of it or nothing, and nothing is committed past what could not be written."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from aiokafka import TopicPartition
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.admin.records_to_delete import RecordsToDelete
from msgspec.structs import replace

from stream.config import Config
from stream.kafka.errors import CannotPublish, RecordsLost
from stream.kafka.layout import settings_for
from stream.kafka.messages import Fates
from tests.kafka.serving import (
    configured,
    deltas,
    ending_by,
    fates,
    made,
    published,
    read_all,
    send,
    serving,
    taken,
    trace,
    until,
    updates,
)

PROMPT = "support/refunds"


@asynccontextmanager
async def admin_of(config: Config) -> AsyncIterator[AIOKafkaAdminClient]:
    admin = AIOKafkaAdminClient(bootstrap_servers=config.kafka.bootstrap)
    await admin.start()
    try:
        yield admin
    finally:
        await admin.close()


async def limit(config: Config, role: str, bytes: int) -> None:
    """Let a topic take only small batches, which aiokafka knows nothing of."""
    settings = {**settings_for(role), "max.message.bytes": str(bytes)}
    async with admin_of(config) as admin:
        topic = getattr(config.topics, role)
        await admin.alter_configs([ConfigResource(ConfigResourceType.TOPIC, topic, settings)])


async def committed(config: Config) -> int:
    async with admin_of(config) as admin:
        tp = TopicPartition(config.topics.traces, 0)
        found = await admin.list_consumer_group_offsets(config.kafka.group, partitions=[tp])
        return int(found[tp].offset)


@pytest.mark.parametrize("role", ["updates", "deltas", "state"])
async def test_one_failed_send_commits_nothing_of_the_transaction(kafka: str, unique: str, role: str) -> None:
    """aiokafka's commit goes through although a send failed: the record would be gone and its offset stored."""
    config = configured(kafka, unique)
    await made(config)
    with ending_by(CannotPublish, "will never take"):
        async with serving(config) as service:
            await until(lambda: published(service))
            await limit(config, role, 100)
            await send(config, [trace(number, PROMPT) for number in range(5)])
            await until(lambda: False)
    assert await updates(config) == []
    assert await deltas(config) == []
    assert await committed(config) == 0
    await limit(config, role, 8 << 20)
    async with serving(config) as service:
        await until(lambda: service.tally.versions >= 1)
    assert set(map(tuple, (await fates(config)).values())) == {("learned",)}


async def test_report_11_nothing_is_committed_past_a_reject_that_cannot_be_written(kafka: str, unique: str) -> None:
    """Report 11: the reject queue's own produce fails, and the record is dropped (arroyo, in source)."""
    config = configured(kafka, unique)
    await made(config)
    with ending_by(CannotPublish, "will never take"):
        async with serving(config) as service:
            await until(lambda: published(service))
            await limit(config, "rejects", 100)
            await send(config, [b"no trace" * 50, *(trace(number, PROMPT) for number in range(5))])
            await until(lambda: False)
    assert await committed(config) == 0
    assert await read_all(config, config.topics.rejects) == []


async def delete_before(config: Config, offset: int) -> None:
    """Let the beginning of the topic of traces expire."""
    async with admin_of(config) as admin:
        tp = TopicPartition(config.topics.traces, 0)
        await admin.delete_records({tp: RecordsToDelete(before_offset=offset)})


async def test_what_expired_unread_stops_the_service_unless_told(kafka: str, unique: str) -> None:
    config = configured(kafka, unique)
    await made(config)
    async with serving(config) as service:
        await until(lambda: published(service))
    await send(config, [trace(number, PROMPT) for number in range(12)])
    await delete_before(config, 7)
    with ending_by(RecordsLost, "7 offsets"):
        async with serving(config):
            await until(lambda: False)
    assert await updates(config) == []
    config = replace(config, service=replace(config.service, on_loss="continue"))
    async with serving(config) as service:
        await until(lambda: service.tally.versions >= 1)
        assert service.tally.lost == 7
    told = [each for each in await deltas(config) if isinstance(each, Fates)]
    assert [each.lost for each in told] == [((0, 6),)]
    assert sorted(await fates(config)) == [(0, offset) for offset in range(7, 12)]


async def test_what_expires_while_it_runs_is_lost_too(kafka: str, unique: str) -> None:
    config = configured(kafka, unique)
    config = replace(config, service=replace(config.service, on_loss="continue", traces=10, batch_size=1_000))
    await made(config)
    async with serving(config) as service:
        await until(lambda: published(service))
        assert service.member is not None
        tp = TopicPartition(config.topics.traces, 0)
        # As if the reader stood still while the topic went on: it is paused, and then asked for what is gone.
        service.member.source._consumer.pause(tp)
        await send(config, [trace(number, PROMPT) for number in range(30)])
        await delete_before(config, 25)
        service.member.source._consumer.resume(tp)
        # What was fetched before the pause may have been taken.
        await until(lambda: service.tally.lost and service.tally.lost + service.tally.learned + taken(service) == 30)
    spans = [span for each in await deltas(config) if isinstance(each, Fates) for span in each.lost]
    lost = {offset for first, last in spans for offset in range(first, last + 1)}
    assert 0 < len(lost) <= 25
    assert max(lost) == 24
    assert await fates(config) == {(0, offset): ["learned"] for offset in range(30) if offset not in lost}
