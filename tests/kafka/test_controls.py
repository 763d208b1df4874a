"""Controls: what people ask for is applied once, in order, and answered."""

from __future__ import annotations

from functools import partial
from typing import Any

import msgspec
import pytest
from aiokafka import AIOKafkaProducer

from operators.values import Bullet
from stream.config import Config
from stream.kafka.messages import Answer
from stream.kafka.service import Service
from tests.kafka.serving import configured, deltas, made, send, serving, trace, until, updates, versions

PROMPT = "support/refunds"


async def ask(config: Config, *controls: dict[str, Any] | bytes | None) -> list[int]:
    """Ask for something; returns the offsets."""
    async with AIOKafkaProducer(bootstrap_servers=config.kafka.bootstrap, acks="all") as producer:
        offsets = []
        for control in controls:
            value = msgspec.json.encode({"prompt": PROMPT, **control}) if isinstance(control, dict) else control
            done = await producer.send_and_wait(config.topics.controls, value, PROMPT.encode(), 0)
            offsets.append(done.offset)
    return offsets


async def answers(config: Config) -> dict[int, Answer]:
    found = [each for each in await deltas(config) if isinstance(each, Answer)]
    assert len({each.offset for each in found}) == len(found)  # each once
    return {each.offset: each for each in found}


def at_least(service: Service, count: int) -> bool:
    return service.tally.versions >= count


async def shown(config: Config) -> tuple[Bullet, ...]:
    return (await updates(config))[-1].bullets


async def test_each_kind_makes_its_version(kafka: str, unique: str) -> None:
    config = configured(kafka, unique)
    await made(config)
    await send(config, [trace(number, PROMPT) for number in range(10)])
    async with serving(config) as service:
        await until(lambda: service.tally.versions >= 2)
        first, second, third = (each.id for each in (await shown(config))[:3])
        await ask(
            config,
            {"kind": "pin", "bullet": first},
            {"kind": "edit", "bullet": second, "content": "Amounts are whole cents."},
            {"kind": "remove", "bullet": third},
        )
        await until(lambda: service.tally.versions >= 5)
        bullets = {each.id: each for each in await shown(config)}
        assert bullets[first].pinned
        assert bullets[second].content == "Amounts are whole cents."
        assert third not in bullets
        await ask(
            config,
            {"kind": "unpin", "bullet": first},
            {"kind": "import", "bullets": [{"section": "OTHERS", "content": "Ask before you refund."}]},
            {"kind": "rollback", "to": 1},
        )
        await until(lambda: service.tally.versions >= 8)
        # Lessons learned later go on from there, and a person's decisions stay.
        await send(config, [trace(number, PROMPT) for number in range(10, 15)])
        await until(lambda: service.tally.versions >= 9)
    made_by = {each.version: each for each in await versions(config)}
    assert [made_by[version].kind for version in range(1, 10)] == [
        *["window"] * 2,
        *["edit"] * 4,
        "import",
        "rollback",
        "window",
    ]
    told = await answers(config)
    assert {offset: each.version for offset, each in told.items()} == {at: at + 3 for at in range(6)}
    assert [made_by[version].audit["control"] for version in range(3, 9)] == list(range(6))
    texts = [each.content for each in await shown(config)]
    assert "Amounts are whole cents." in texts
    assert "Ask before you refund." not in texts  # the rollback went behind the import


async def test_what_cannot_be_done_is_answered_with_the_reason(kafka: str, unique: str) -> None:
    config = configured(kafka, unique)
    await made(config)
    await send(config, [trace(number, PROMPT) for number in range(5)])
    asked: list[tuple[dict[str, Any] | bytes | None, str]] = [
        (b"{", "it is no control"),
        (None, "its value is null"),
        ({"kind": "approve"}, "approve is not available"),
        ({"kind": "dance"}, "'dance' is no kind of control"),
        ({"kind": "rollback"}, "must say `to` which version"),
        ({"kind": "rollback", "to": 99}, "no version 99"),
        ({"kind": "rollback", "to": 1, "prompt": "nobody"}, "there is no prompt 'nobody'"),
        ({"kind": "pin"}, "must name a bullet"),
        ({"kind": "pin", "bullet": "err-99999"}, "there is no bullet err-99999"),
        ({"kind": "unpin", "bullet": "tool-00001"}, "there is no bullet"),
        ({"kind": "edit", "bullet": "nowhere", "content": ""}, "there is no bullet nowhere"),
        ({"kind": "import"}, "an import without bullets"),
    ]
    async with serving(config) as service:
        await until(lambda: service.tally.versions >= 1)
        offsets = await ask(config, *(control for control, _ in asked))
        with_all: dict[int, Answer] = {}
        while len(with_all) < len(asked):
            with_all = await answers(config)
        for offset, (_, reason) in zip(offsets, asked, strict=True):
            assert with_all[offset].version is None
            if reason != "there is no bullet":
                assert reason in with_all[offset].reason
    assert len(await versions(config)) == 1


async def test_a_control_is_applied_once_whoever_owns_the_partition(kafka: str, unique: str) -> None:
    config = configured(kafka, unique)
    await made(config)
    await ask(config, {"kind": "import", "bullets": [{"section": "A", "content": "One."}]})
    for turn in range(3):
        async with serving(config) as service:
            await ask(config, {"kind": "import", "bullets": [{"section": "A", "content": f"Lesson {turn}."}]})
            await until(partial(at_least, service, 1))
    async with serving(config) as service:
        offsets = await ask(config, {"kind": "import", "bullets": [{"section": "A", "content": "Lesson 1."}]})
        while offsets[0] not in await answers(config):
            pass
    told = await answers(config)
    assert "has all of it already" in told.pop(offsets[0]).reason
    assert sorted(each.version or 0 for each in told.values()) == [1, 2, 3, 4]


@pytest.mark.parametrize("kind", ["pin", "edit"])
async def test_a_persons_decision_outlives_the_learners(kafka: str, unique: str, kind: str) -> None:
    config = configured(kafka, unique)
    await made(config)
    await send(config, [trace(0, PROMPT) for _ in range(1)] + [trace(number * 7, PROMPT) for number in range(1, 5)])
    async with serving(config) as service:
        await until(lambda: service.tally.versions >= 1)
        (bullet,) = await shown(config)
        await ask(config, {"kind": kind, "bullet": bullet.bullet, "content": "Mine."})
        await until(lambda: service.tally.versions >= 2)
        await ask(config, {"kind": "rollback", "to": 0})
        await until(lambda: service.tally.versions >= 3)
    (kept,) = await shown(config)
    assert kept.content == ("Mine." if kind == "edit" else bullet.content)
    assert kept.id == bullet.id
