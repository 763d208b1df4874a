"""Reports of users of other stream libraries, each a test: what is taken, and which windows it makes."""

from __future__ import annotations

from collections import Counter
from random import Random

import anyio
import msgspec
from msgspec.structs import replace

from stream.config import Config
from stream.kafka.service import Service
from tests.kafka.conftest import MakeTopics
from tests.kafka.raw import Raw, produce_raw
from tests.kafka.serving import (
    configured,
    fates,
    made,
    reading,
    send,
    serving,
    taken,
    trace,
    until,
    versions,
)
from tests.kafka.stalling import Stalling

PROMPTS = [f"prompt-{number}" for number in range(12)]
YEAR_2262_MS = 2**63 // 1_000_000


async def learns(service: Service, count: int) -> None:
    """Wait until so many traces are learned."""
    await until(lambda: service.tally.learned >= count)


async def test_report_05_backpressure_drops_nothing_and_takes_nothing_twice(kafka: str, unique: str) -> None:
    """Report 5: backpressure drops what was fetched (faust-streaming 88), or submits it twice (arroyo 299)."""
    config = configured(kafka, unique, traces=24, in_flight=10_000, straggler_deadline=3_600.0)
    await made(config, 4)
    placed = await send(config, [trace(number, PROMPTS[number % 12]) for number in range(240)], partitions=4)
    first_method, second_method = Stalling(set(PROMPTS)), Stalling(set(PROMPTS))
    async with serving(config, method=first_method) as first:

        def is_full() -> bool:
            return first.member is not None and len(first.member.source.paused) >= 3 and taken(first) >= 12

        await until(is_full)
        async with serving(config, method=second_method) as second:
            await until(lambda: reading(second) and taken(second) >= 6)
            first_method.release()
            second_method.release()
            await until(lambda: first.tally.learned >= 30 and second.tally.learned >= 30)
        await until(lambda: first.tally.learned + second.tally.learned + taken(first) == 240)
    assert await fates(config) == {place: ["learned"] for place in placed}


async def test_report_07_one_timestamp_in_the_future_makes_no_other_late(
    kafka: str, make_topics: MakeTopics, unique: str
) -> None:
    """Report 7: one timestamp in the future makes all later records late (sql-flow 358)."""
    config = configured(kafka, unique, learning={"max_wait": 1.0}, batch_size=1_000)
    config = replace(config, topics=await make_topics(kafka, 1))

    def record(number: int, year: str, at: int | None) -> Raw:
        value = trace(number, PROMPTS[0], started=f"{year}-01-02T03:04:05Z", ended=f"{year}-01-02T03:04:06Z")
        return Raw(PROMPTS[0].encode(), msgspec.json.encode(value), timestamp=at)

    ahead = [record(0, "9999", 2**62), record(1, "2262", YEAR_2262_MS)]
    async with serving(config) as service:
        await produce_raw(kafka, config.topics.traces, 0, ahead)
        await learns(service, 2)
        for number in range(2, 8, 2):
            await produce_raw(
                kafka, config.topics.traces, 0, [record(number, "2026", None), record(number + 1, "1970", 0)]
            )
            await learns(service, number + 2)
    assert await fates(config) == {(0, offset): ["learned"] for offset in range(8)}
    assert {each.stats["closed_by"] for each in await versions(config)} == {"time"}


async def windows(config: Config) -> dict[tuple[str, int], list[str]]:
    """The ids of each window's traces."""
    return {(each.prompt, each.window): [id for id, _ in each.traces] for each in await versions(config)}


async def test_report_09_the_same_log_makes_the_same_windows_at_any_speed(kafka: str, unique: str) -> None:
    """Report 9: a replay cuts one window into five because it goes by wall clock (sql-flow 234)."""
    random = Random(9)
    log = [trace(number, random.choice(PROMPTS[:3])) for number in range(150)]  # an hour and more of `started`
    log = [{**each, "started": f"2026-01-02T{number // 60:02}:{number % 60:02}:00Z"} for number, each in enumerate(log)]
    at_once, slowly, restarted = (
        configured(kafka, f"{unique}-{name}", batch_size=8) for name in ("at-once", "slowly", "restarted")
    )
    for config in (at_once, slowly, restarted):
        await made(config)
    await send(at_once, log)
    async with serving(at_once) as service:
        await until(lambda: service.tally.learned + taken(service) == 150)
    async with serving(slowly) as service:
        for at in range(0, 150, 7):
            await send(slowly, log[at : at + 7])
            await anyio.sleep(random.random() / 5)
        await until(lambda: service.tally.learned + taken(service) == 150)
    await send(restarted, log)
    for share in (8, 8):  # each is abandoned in the middle of windows
        try:
            async with serving(restarted) as service:
                await learns(service, share)
                raise InterruptedError
        except* InterruptedError:
            pass
    counts = Counter(each["prompt"] for each in log)
    async with serving(restarted) as service:
        while len(await versions(restarted)) < sum(count // 8 for count in counts.values()):
            await anyio.sleep(0.1)
        await until(lambda: taken(service) == sum(count % 8 for count in counts.values()))
    found = await windows(at_once)
    assert {id for ids in found.values() for id in ids} == {each["id"] for each in log}
    assert await windows(slowly) == found
    assert await windows(restarted) == found
