"""Membership in the group: rebalances, listeners, workers that stood still and consumers that fell silent."""

from __future__ import annotations

import time
from typing import Any

import anyio
import pytest

from stream.kafka import takeover, tenure, watch
from stream.kafka.checks import Taken
from stream.kafka.service import Service
from tests.kafka.serving import configured, fates, made, published, send, serving, trace, until, versions

PROMPTS = [f"prompt-{number}" for number in range(12)]


async def test_a_long_take_over_keeps_its_place_in_the_group(
    kafka: str, unique: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No heartbeat is sent while a listener runs: one that waited for this would be evicted in every round."""
    config = configured(kafka, unique)
    await made(config)
    await send(config, [trace(number, PROMPTS[0]) for number in range(5)])
    at_once = takeover.take_over

    async def slowly(*arguments: Any) -> Taken:
        await anyio.sleep(1.5 * config.kafka.session_timeout)
        return await at_once(*arguments)

    monkeypatch.setattr(tenure, "take_over", slowly)
    async with serving(config) as service:
        await until(lambda: service.member is not None and service.member.tenures)
        assert service.member is not None
        epoch = service.member.epoch
        await until(lambda: service.tally.versions >= 1)
        assert service.member.epoch == epoch


def owns(service: Service) -> bool:
    """Whether a partition is being read."""
    return service.member is not None and any(each.accepting for each in service.member.tenures.values())


async def test_partitions_come_and_go(kafka: str, unique: str) -> None:
    config = configured(kafka, unique)
    await made(config, 4)
    placed = []

    async def more(start: int) -> None:
        numbers = range(start, start + 120)
        placed.extend(await send(config, [trace(number, PROMPTS[number % 12]) for number in numbers], partitions=4))

    await more(0)
    async with serving(config) as first:
        await until(lambda: first.tally.learned >= 40)
        async with serving(config) as second:
            await until(lambda: owns(second))
            await more(200)
            await until(lambda: second.tally.learned >= 20)
            async with serving(config) as third:
                await until(lambda: owns(third))
                await more(400)
                await until(lambda: third.tally.learned >= 5)
            await more(600)
            await until(lambda: second.tally.learned >= 60)
        await more(800)
        services = (first, second, third)
        await until(lambda: sum(each.tally.learned for each in services) >= len(placed) - 12 * 4)
    assert await fates(config) == {place: ["learned"] for place in placed}
    for prompt in PROMPTS:
        mine = [each.version for each in await versions(config) if each.prompt == prompt]
        assert mine == list(range(1, len(mine) + 1))


async def test_a_worker_that_stood_still_gives_up_what_it_had(kafka: str, unique: str) -> None:
    config = configured(kafka, unique)
    await made(config)
    placed = await send(config, [trace(number, PROMPTS[0]) for number in range(13)])
    async with serving(config) as service:
        await until(lambda: service.tally.versions >= 2)
        before = service.member
        time.sleep(config.kafka.session_timeout + 2)  # noqa: ASYNC251  # heavy work in the loop, a stopped machine
        await until(lambda: service.member is not before)
        placed += await send(config, [trace(number, PROMPTS[0]) for number in range(13, 25)])
        await until(lambda: service.tally.versions >= 5)
    assert await fates(config) == {place: ["learned"] for place in placed}


async def test_a_silent_consumer_is_built_anew(kafka: str, unique: str, monkeypatch: pytest.MonkeyPatch) -> None:
    config = configured(kafka, unique)
    await made(config)
    monkeypatch.setattr(watch, "SILENT_SECONDS", 2.0)
    async with serving(config) as service:
        await until(lambda: published(service))
        assert service.member is not None
        before = service.member

        async def nothing(*partitions: Any, **options: Any) -> dict[Any, Any]:
            await anyio.sleep(0.1)
            return {}

        monkeypatch.setattr(before.source._consumer, "getmany", nothing)
        placed = await send(config, [trace(number, PROMPTS[0]) for number in range(5)])
        await until(lambda: service.member is not before and service.tally.versions >= 1)
    assert await fates(config) == {place: ["learned"] for place in placed}
