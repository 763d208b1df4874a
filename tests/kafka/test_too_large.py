"""Versions that are too large for the topics: pruned, refused, or the prompt held; each trace keeps its one fate."""

from __future__ import annotations

from typing import Any

import pytest
from aiokafka import AIOKafkaProducer
from msgspec.structs import replace

from operators.text import render
from operators.values import Bullet
from stream.config import Config
from stream.kafka.controls import Control, encode_control
from stream.kafka.messages import Answer, Fates, encode_delta
from stream.kafka.outgoing import Message
from stream.kafka.publisher import Publisher
from stream.kafka.room import OVERHEAD, RESERVE, Room
from tests.kafka.serving import (
    configured,
    deltas,
    fates,
    made,
    published,
    read_all,
    send,
    serving,
    until,
    updates,
    versions,
)
from tests.kafka.teaching import Teaching
from tests.kafka.test_publishing import limit

LIMIT = 1 << 17
PROMPT, OTHER = "large", "small"


def test_room() -> None:
    room = Room(10_000)
    fits = Message("t", b"key", b"x" * (10_000 - OVERHEAD - 3))
    large = Message("u", b"key", b"x" * (10_001 - OVERHEAD - 3))
    assert room.over([fits, fits]) == ""
    assert room.over([fits, large]) == "a record of 10,001 bytes for u, which takes 10,000"
    assert room.share(fits) == 1
    assert room.share(large) < 1
    most = 10_000 - 10_000 // RESERVE
    assert room.full(most) == ""
    assert "over 10,000" in room.full(most + 1)


@pytest.mark.parametrize("largest", [LIMIT, 8 << 20])
def test_records_of_fates_fit_whatever_the_names(largest: int) -> None:
    publisher = Publisher(*[None] * 6, largest=largest)  # type: ignore[arg-type]
    publisher._ours = type("Ours", (), {"source": "traces/0"})  # type: ignore[assignment]
    for offset in range(1_200):
        publisher.refuse(offset, "\x01" * 500, "\x02" * 500, "a record of 123,456,789 bytes for " + "t" * 249)
    told = publisher._fates()
    assert [refused[0] for each in told for refused in each.refused] == list(range(1_200))
    assert max(len(encode_delta(each)) for each in told) + OVERHEAD <= largest


def limited(kafka: str, name: str, limit: int = LIMIT, **learning: Any) -> Config:
    config = configured(kafka, name, batch_size=2, learning=learning)
    return replace(config, kafka=replace(config.kafka, max_message_bytes=limit))


def teaches(number: int, prompt: str, *lessons: str) -> dict[str, Any]:
    return {"id": f"t-{number}", "prompt": prompt, "task": " ".join(lessons), "steps": []}


Places = list[tuple[int, int]]


def expected(learned: Places, *, refused: Places) -> dict[tuple[int, int], list[str]]:
    return {**{place: ["learned"] for place in learned}, **{place: ["refused"] for place in refused}}


def all_fit(records: list[Any], limit: int = LIMIT) -> bool:
    return all(len(each.key or b"") + len(each.value or b"") + OVERHEAD <= limit for each in records)


async def everything_fits(config: Config) -> bool:
    topics = config.topics
    return all([all_fit(await read_all(config, topic)) for topic in (topics.updates, topics.deltas, topics.state)])


async def test_what_is_too_large_is_pruned_and_then_refused_and_nothing_halts(kafka: str, unique: str) -> None:
    config = limited(kafka, unique)
    await made(config)
    # An update holds each bullet twice: these 70 kB come to 140, and as state to 70.
    placed = await send(config, [teaches(0, PROMPT, "a*20000", "b*20000"), teaches(1, PROMPT, "c*15000", "d*15000")])
    # No topic holds this one, whatever is pruned: its delta alone has 200 kB.
    placed += await send(config, [teaches(2, PROMPT, "e*200000"), teaches(3, PROMPT, "f*10")])
    placed += await send(config, [teaches(4, PROMPT, "g*100"), teaches(5, PROMPT, "h*100")])
    placed += await send(config, [teaches(6, OTHER, "a*10"), teaches(7, OTHER, "b*10")])
    async with serving(config, method=Teaching()) as service:
        await until(lambda: service.tally.versions >= 4)
        assert (service.tally.learned, service.tally.refused) == (6, 2)
    by_version = {each.version: each for each in await versions(config) if each.prompt == PROMPT}
    assert sorted(by_version) == [1, 2, 3]
    assert len(by_version[1].audit["evicted"]) in (1, 2)
    assert "which takes 131,072" in by_version[2].refused
    assert by_version[2].delta.texts == frozenset()
    assert {text.key for text in by_version[3].delta.texts} == {"g", "h"}
    mine = [each for each in await updates(config) if each.prompt == PROMPT]
    assert [each.learned.traces for each in mine] == [2, 0, 2]
    assert mine[0].bullets == mine[1].bullets
    assert mine[2].text == render(mine[2].bullets)
    assert await fates(config) == expected(placed, refused=placed[2:4])
    assert await everything_fits(config)
    # The state that another process goes on from is that of what stands, not of what did not fit.
    placed += await send(config, [teaches(8, PROMPT, "i*10"), teaches(9, PROMPT, "j*10")])
    async with serving(config, method=Teaching()) as service:
        await until(lambda: service.tally.versions >= 1)
    last = (await updates(config))[-1]
    assert {each.bullet for each in mine[2].bullets} < {each.bullet for each in last.bullets}
    assert last.version == 4


async def test_a_prompt_whose_state_leaves_no_room_is_held_and_others_go_on(kafka: str, unique: str) -> None:
    config = limited(kafka, unique)
    await made(config)
    # What was pruned stands in the state still: its text is needed when it is taught again.
    placed = await send(config, [teaches(0, PROMPT, "a*30000", "b*30000"), teaches(1, PROMPT, "c*31000", "d*32000")])
    async with serving(config, method=Teaching()) as service:
        await until(lambda: service.tally.versions >= 1)
        placed += await send(config, [teaches(number, PROMPT, "e*10") for number in range(2, 6)])
        placed += await send(config, [teaches(number, OTHER, "e*10") for number in range(6, 10)])
        await until(lambda: service.tally.versions >= 3 and service.tally.refused == 4)
    # It is held for whoever comes next, without a window.
    placed += await send(config, [teaches(10, PROMPT, "f*10"), teaches(11, PROMPT, "f*10")])
    async with serving(config, method=Teaching()) as service:
        await until(lambda: service.tally.refused >= 2)
        assert service.tally.versions == 0
    told = [each for each in await deltas(config) if isinstance(each, Fates) and each.refused]
    assert {id for each in told for _, _, id, _ in each.refused} == {"t-2", "t-3", "t-4", "t-5", "t-10", "t-11"}
    assert all("a window needs 8,192 more" in why for each in told for _, _, _, why in each.refused)
    assert await fates(config) == expected(placed, refused=[*placed[2:6], *placed[10:12]])
    assert await everything_fits(config)
    # More room, and it learns again.
    wider = replace(config, kafka=replace(config.kafka, max_message_bytes=8 << 20))
    for role in ("updates", "deltas", "state", "rejects", "controls"):
        await limit(wider, role, 8 << 20)
    await send(wider, [teaches(12, PROMPT, "g*10"), teaches(13, PROMPT, "g*10")])
    async with serving(wider, method=Teaching()) as service:
        await until(lambda: service.tally.learned >= 2)
    assert [each.version for each in await versions(wider) if each.prompt == PROMPT] == [1, 2]


async def test_a_window_that_cannot_even_be_refused_is_passed(kafka: str, unique: str) -> None:
    """With little more room than the state takes, the names of a window's traces alone are too much."""
    config = limited(kafka, unique)
    config = replace(config, service=replace(config.service, batch_size=300))
    await made(config)
    values = [{**teaches(number, PROMPT, "a*10"), "id": f"{number:03}".ljust(500, "i")} for number in range(900)]
    placed = await send(config, values)
    other = await send(config, [teaches(number, OTHER, "a*10") for number in range(300)])
    async with serving(config, method=Teaching()) as service:
        await until(lambda: service.tally.versions >= 1)
        await until(lambda: service.tally.refused >= 900)
    assert await fates(config) == expected(other, refused=placed)
    assert {each.prompt for each in await versions(config)} == {OTHER}
    assert await everything_fits(config)


async def test_an_import_that_is_too_large_is_declined(kafka: str, unique: str) -> None:
    config = limited(kafka, unique)
    await made(config)
    bullets = tuple(Bullet(section="S", content=f"{letter} ".ljust(24_000, letter)) for letter in "abc")
    control = Control(kind="import", prompt=PROMPT, bullets=bullets)
    async with AIOKafkaProducer(bootstrap_servers=kafka) as producer:
        await producer.send_and_wait(config.topics.controls, encode_control(control), PROMPT.encode(), 0)
    async with serving(config, method=Teaching()) as service:
        await until(lambda: published(service))
        await send(config, [teaches(0, PROMPT, "a*10"), teaches(1, PROMPT, "b*10")])
        await until(lambda: service.tally.versions >= 1)
        found: list[Answer] = []
        while not found:
            found = [each for each in await deltas(config) if isinstance(each, Answer)]
    assert found[0].version is None
    assert "which takes 131,072" in found[0].reason
