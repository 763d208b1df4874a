"""Reading on a real broker: what cannot be read costs no other record, and what does not get done stops no other."""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from typing import Any

import anyio
import msgspec
import pytest
from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import CorruptRecordException

from operators.modelfree import ModelFree
from operators.values import Bullet, Reflection, Trace
from stream.kafka.errors import PartitionHalted
from stream.kafka.member import Member
from stream.kafka.tolerant import Reread
from tests.kafka.raw import Raw, produce_raw
from tests.kafka.serving import (
    at_home,
    configured,
    ending_by,
    fates,
    made,
    published,
    send,
    serving,
    taken,
    trace,
    until,
)

UNDECODABLE = [(b"caf\xe9", b"x")]


class Stalling:
    """The model-free method, but for the reflections of some prompts, which never end."""

    name = "stalling"
    reduces = False

    def __init__(self, stalled: set[str]) -> None:
        self.stalled = stalled
        self._method = ModelFree()
        self.curate = self._method.curate
        self.reduce = self._method.reduce

    def reflect(self, trace: Trace, seen: Sequence[Bullet]) -> Reflection | Awaitable[Reflection]:
        return self._never() if trace.prompt in self.stalled else self._method.reflect(trace, seen)

    async def _never(self) -> Reflection:
        await anyio.sleep_forever()
        raise AssertionError


def raw(prompt: str, numbers: range, bad: set[int]) -> list[Raw]:
    return [
        Raw(prompt.encode(), msgspec.json.encode(trace(number, prompt)), UNDECODABLE if number in bad else [])
        for number in numbers
    ]


async def test_a_stalled_partition_starves_no_other(kafka: str, unique: str) -> None:
    """What one partition holds for ever is a share of the bound, and never the last of it."""
    config = configured(
        kafka, unique, traces=100, in_flight=10_000, straggler_deadline=3_600.0, drain=0.5, batch_size=5
    )
    await made(config, 3)
    prompts = [at_home(number, 3) for number in range(3)]
    placed = await send(config, [trace(number, prompts[number % 3]) for number in range(900)], partitions=3)
    most = 0
    async with serving(config, method=Stalling({prompts[0]})) as service:

        def all_but_the_stalled_are_learned() -> bool:
            nonlocal most
            most = max(most, taken(service))
            return service.tally.learned + taken(service, 0) == 600

        await until(lambda: published(service))
        await until(all_but_the_stalled_are_learned)
        assert service.member is not None
        assert TopicPartition(config.topics.traces, 0) in service.member.source.paused
    assert most <= 100 + 3 * 12, "a partition may hold one poll more than its share"
    assert await fates(config) == {place: ["learned"] for place in placed if place[0] != 0}
    async with serving(config) as service:
        await until(lambda: service.tally.learned >= 300)
    assert await fates(config) == {place: ["learned"] for place in placed}


@pytest.mark.parametrize("bad", [{0}, {0, 1, 2}, {4}, set(range(5))])
async def test_an_undecodable_header_in_an_idle_stream(kafka: str, unique: str, bad: set[int]) -> None:
    """aiokafka forgets what it had fetched when it raises, so a poll that does not wait finds nothing afterwards."""
    config = configured(kafka, unique)
    await made(config, 3)
    async with serving(config) as service:
        await until(lambda: published(service))
        await produce_raw(kafka, config.topics.traces, 1, raw(at_home(1, 3), range(5), bad))
        await until(lambda: service.tally.versions >= 1)
    assert await fates(config) == {(1, at): ["learned"] for at in range(5)}


async def test_undecodable_headers_in_two_partitions_cost_none_of_three(kafka: str, unique: str) -> None:
    config = configured(kafka, unique)
    await made(config, 3)
    for partition, bad in enumerate([{3, 17, 44}, set(), {0, 49}]):
        prompt = at_home(partition, 3)
        for start in range(0, 50, 10):
            batch = raw(prompt, range(start, start + 10), bad)
            await produce_raw(kafka, config.topics.traces, partition, batch, codec=partition)
    async with serving(config) as service:
        await until(lambda: service.tally.versions >= 30)
    assert await fates(config) == {(partition, at): ["learned"] for partition in range(3) for at in range(50)}


class Pure(AIOKafkaConsumer):  # type: ignore[misc]
    """The consumer as it is without its C extensions: what it cannot read is corrupt to it."""

    async def getmany(self, *partitions: TopicPartition, **options: Any) -> dict[TopicPartition, list[Any]]:
        try:
            found: dict[TopicPartition, list[Any]] = await super().getmany(*partitions, **options)
        except UnicodeDecodeError as error:
            raise CorruptRecordException(f"Found invalid record structure: {error!r}") from error
        return found


async def test_an_undecodable_header_without_c_extensions(
    kafka: str, unique: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("stream.kafka.member.AIOKafkaConsumer", Pure)
    config = configured(kafka, unique)
    await made(config, 2)
    await produce_raw(kafka, config.topics.traces, 0, raw(at_home(0, 2), range(15), {0, 8}), codec=1)
    async with serving(config) as service:
        await until(lambda: service.tally.versions >= 3)
        await produce_raw(kafka, config.topics.traces, 0, raw(at_home(0, 2), range(15, 20), {15}))
        await until(lambda: service.tally.versions >= 4)
    assert await fates(config) == {(0, at): ["learned"] for at in range(20)}


@pytest.mark.parametrize("times", [3, 1_000_000])
async def test_a_damaged_batch_is_fetched_again_and_halts_its_partition_in_the_end(
    kafka: str, unique: str, monkeypatch: pytest.MonkeyPatch, times: int
) -> None:
    """A batch may be damaged on its way; one that is damaged where it lies is not passed, nor tried for ever."""
    config = configured(kafka, unique)
    await made(config, 2)
    monkeypatch.setattr("stream.kafka.member.AIOKafkaConsumer", Pure)
    tries = 0
    as_it_is = Member._reread

    async def damaged(member: Member, tp: TopicPartition, offset: int) -> Reread:
        nonlocal tries
        tries += 1
        if tries <= times:
            raise CorruptRecordException("Invalid CRC")
        return await as_it_is(member, tp, offset)

    monkeypatch.setattr(Member, "_reread", damaged)
    await produce_raw(kafka, config.topics.traces, 0, raw(at_home(0, 2), range(5), {0}))
    if times == 3:
        async with serving(config) as service:
            await until(lambda: service.tally.versions >= 1)
        assert await fates(config) == {(0, at): ["learned"] for at in range(5)}
        return
    with ending_by(PartitionHalted, "what lies at offset 0 of"):
        async with serving(config) as service:
            await until(lambda: service.member is not None and service.member.halted)
            placed = await send(config, [trace(number, at_home(1, 2)) for number in range(10)], partitions=2)
            await until(lambda: service.tally.versions >= 2)
    assert tries == 5
    assert await fates(config) == {place: ["learned"] for place in placed}
