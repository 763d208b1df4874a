"""The service in a test: topics of its own, traces to send, and what came out."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import anyio
import msgspec
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.structs import ConsumerRecord, TopicPartition

from operators.method import Method
from operators.values import Update
from stream.config import Config, Learning
from stream.kafka.errors import cause_of
from stream.kafka.homes import home
from stream.kafka.messages import Answer, Fates, Made, decode_delta
from stream.kafka.rejected import Rejected
from stream.kafka.rejected import decode as decode_rejected
from stream.kafka.service import Service
from stream.kafka.tables import Kafka, Topics
from stream.kafka.tables import Service as Table
from stream.kafka.topics import create

decode_update = msgspec.json.Decoder(Update).decode


def configured(bootstrap: str, name: str, *, learning: dict[str, Any] | None = None, **service: Any) -> Config:
    """A configuration whose topics and group nobody else has."""
    names = {field: f"{name}-{field}" for field in Topics.__struct_fields__}
    return Config(
        kafka=Kafka(bootstrap=bootstrap, group=f"{name}-group", session_timeout=6.0),
        topics=Topics(**names),
        service=Table(**{"batch_size": 5, "drain": 10.0, **service}),
        learning=Learning(**{"max_wait": 3_600.0, **(learning or {})}),
    )


def trace(number: int, prompt: str, **fields: Any) -> dict[str, Any]:
    """A trace that teaches something: an error, and what put it right."""
    kind = number % 7
    return {
        "id": f"t-{number:06}",
        "prompt": prompt,
        "session": f"s-{number}",
        "started": f"2026-01-02T03:{number // 60 % 60:02}:{number % 60:02}Z",
        "steps": [
            {"role": "assistant", "calls": [{"id": "a", "name": f"tool{kind}", "arguments": {"amount": 1.5}}]},
            {"role": "tool", "call": "a", "error": f"amount must be in unit {kind}"},
            {"role": "assistant", "calls": [{"id": "b", "name": f"tool{kind}", "arguments": {"amount": 150}}]},
            {"role": "tool", "call": "b", "content": "ok"},
        ],
        "outcome": {"success": True},
        **fields,
    }


def at_home(partition: int, partitions: int) -> str:
    """The name of a prompt whose home is this partition."""
    names = (f"prompt-{number}" for number in range(10_000))
    return next(name for name in names if home(name.encode(), "murmur2", partitions) == partition)


async def send(
    config: Config, values: Iterable[dict[str, Any] | bytes], *, partitions: int = 1
) -> list[tuple[int, int]]:
    """Send traces to the homes of their prompts; returns (partition, offset) of each."""
    async with AIOKafkaProducer(bootstrap_servers=config.kafka.bootstrap, acks="all", linger_ms=5) as producer:
        futures = []
        for value in values:
            prompt = value.get("prompt", "") if isinstance(value, dict) else ""
            data = msgspec.json.encode(value) if isinstance(value, dict) else value
            at = home(prompt.encode(), "murmur2", partitions)
            futures.append(await producer.send(config.topics.traces, data, prompt.encode() or None, at))
        return [(done.partition, done.offset) for done in [await future for future in futures]]


@asynccontextmanager
async def serving(config: Config, *, method: Method | None = None) -> AsyncIterator[Service]:
    """The service, running; it is stopped and drained at the end."""
    service = Service(config, method=method)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(service.run)
        try:
            yield service
        finally:
            service.stop()


@contextmanager
def ending_by(kind: type[BaseException], text: str) -> Iterator[None]:
    """What follows must end with this error, whatever groups it comes in."""
    try:
        yield
    except BaseException as error:
        cause = cause_of(error)
        if not isinstance(cause, kind):
            raise
        assert text in str(cause), str(cause)
    else:
        raise AssertionError(f"it did not end by {kind.__name__}")


def published(service: Service) -> bool:
    """Whether a partition's first transaction is through."""
    return service.member is not None and any(each.has_published for each in service.member.tenures.values())


def reading(service: Service) -> bool:
    """Whether it has a partition, taken over."""
    return service.member is not None and any(each.accepting for each in service.member.tenures.values())


def taken(service: Service, *but: int) -> int:
    """How many traces were taken and are not done, but for those of some partitions."""
    tenures = service.member.tenures if service.member else {}
    return sum(each.traces for tp, each in tenures.items() if tp.partition not in but)


async def until(condition: Callable[[], Any], seconds: float = 90.0) -> None:
    """Wait for something; a machine may be busy."""
    with anyio.fail_after(seconds):
        while not condition():
            await anyio.sleep(0.02)


async def read_all(config: Config, topic: str, *, isolation: str = "read_committed") -> list[ConsumerRecord]:
    """All that a reader gets of a topic up to its end just now."""
    consumer = AIOKafkaConsumer(
        bootstrap_servers=config.kafka.bootstrap,
        group_id=None,
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        isolation_level=isolation,
    )
    await consumer.start()
    found: list[ConsumerRecord] = []
    try:
        partitions = [TopicPartition(topic, number) for number in await consumer_partitions(consumer, topic)]
        consumer.assign(partitions)
        ends = await consumer.end_offsets(partitions)
        while any([await consumer.position(tp) < ends[tp] for tp in partitions]):
            for records in (await consumer.getmany(timeout_ms=100)).values():
                found += records
        return sorted(found, key=lambda record: (record.partition, record.offset))
    finally:
        await consumer.stop()


async def consumer_partitions(consumer: AIOKafkaConsumer, topic: str) -> Sequence[int]:
    await consumer._client._wait_on_metadata(topic)
    return sorted(consumer.partitions_for_topic(topic) or ())


async def updates(config: Config) -> list[Update]:
    """All updates, in the order of each partition."""
    return [decode_update(record.value) for record in await read_all(config, config.topics.updates)]


async def deltas(config: Config) -> list[Made | Fates | Answer]:
    """All records of prompt-deltas."""
    return [decode_delta(record.value) for record in await read_all(config, config.topics.deltas)]


async def versions(config: Config) -> list[Made]:
    """All versions in prompt-deltas."""
    return [each for each in await deltas(config) if isinstance(each, Made)]


async def rejects(config: Config) -> list[Rejected]:
    """All of trace-rejects."""
    records = await read_all(config, config.topics.rejects)
    return [decode_rejected(record.key, record.value, record.headers) for record in records]


async def fates(config: Config) -> dict[tuple[int, int], list[str]]:
    """The fates of each (partition, offset); exactly one each, if all is well."""
    told: dict[tuple[int, int], list[str]] = {}

    def tell(source: str, offset: int, fate: str) -> None:
        told.setdefault((int(source.rpartition("/")[2]), offset), []).append(fate)

    for each in await deltas(config):
        if isinstance(each, Made):
            rejected = {id for id, _ in each.rejected}
            for (id, _), offset in zip(each.traces, each.offsets, strict=False):
                if id not in rejected:
                    tell(each.source, offset, "refused" if each.refused else "learned")
        elif isinstance(each, Fates):
            for offset, _, _ in each.duplicates:
                tell(each.source, offset, "duplicate")
            for offset, _, _, _ in each.refused:
                tell(each.source, offset, "refused")
            for offset in each.skipped:
                tell(each.source, offset, "skipped")
    for reject in await rejects(config):
        tell(f"/{reject.partition}", reject.offset, "rejected")
    return told


async def made(config: Config, partitions: int = 1) -> None:
    """Make the topics."""
    await create(config.kafka, config.topics, partitions)
