"""Reports of users of other stream libraries, each a test: what is committed, and when."""

from __future__ import annotations

import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from aiokafka.errors import KafkaTimeoutError, ProducerFenced

from stream.config import Config
from stream.kafka import member, metadata
from stream.kafka.ledger import Position
from stream.kafka.publisher import Publisher
from stream.kafka.service import Service
from stream.kafka.takeover import Reads
from tests.kafka.serving import (
    at_home,
    configured,
    fates,
    made,
    published,
    reading,
    send,
    serving,
    taken,
    trace,
    until,
    versions,
)
from tests.kafka.stalling import Stalling
from tests.kafka.working import toml, worker

SLOW, QUICK = "slow", "quick"


@asynccontextmanager
async def positions(config: Config) -> AsyncIterator[Any]:
    """Ask what the group has committed of a partition of traces."""
    service = Service(config)
    async with service._clients() as (shared, _):

        async def position(partition: int = 0) -> Position | None:
            ours = shared.ours(partition)
            reads: Reads = shared.reads
            found = (await reads.committed(ours.group, [ours.traces]))[ours.traces]
            if found.offset < 0:
                return None
            end = (await reads.ends([ours.traces]))[ours.traces]
            return metadata.decode(found.metadata, found.offset, ours.count, end, ours.place(ours.traces))

        yield position


async def test_report_01_a_slow_head_is_read_again_after_a_kill(kafka: str, unique: str, tmp_path: Path) -> None:
    """Report 1: head record slow, later ones done, process killed: the head is lost (faust-streaming 606)."""
    config = configured(kafka, unique)
    await made(config)
    file = tmp_path / "config.toml"
    file.write_text(toml(config))
    slow = await send(config, [trace(number, SLOW) for number in range(5)])
    quick = await send(config, [trace(number, QUICK) for number in range(100, 110)])
    async with positions(config) as position:
        async with worker(file, "tests.kafka.stalling", SLOW):
            with anyio.fail_after(50):
                while len(await versions(config)) < 2:
                    await anyio.sleep(0.1)
        done = Position(0, sum(1 << offset for _, offset in quick))
        assert await position() == done
        async with serving(config) as service:
            await until(lambda: service.tally.versions >= 1)
        assert await position() == Position(15)
    assert await fates(config) == {place: ["learned"] for place in [*slow, *quick]}


async def test_report_02_a_partition_that_comes_back_is_tracked_anew(kafka: str, unique: str) -> None:
    """Report 2: a partition comes back, and a stale tracker commits nothing, or too much (faust-streaming 318)."""
    config = configured(kafka, unique)
    await made(config, 2)
    prompts = [at_home(0, 2), at_home(1, 2)]
    stalling, free = Stalling(set(prompts)), Stalling(set())
    placed = await send(config, [trace(number, prompts[number % 2]) for number in range(10)], partitions=2)
    async with positions(config) as position:
        async with serving(config, method=stalling) as first:
            await until(lambda: taken(first) == 10)
            async with serving(config, method=free) as second:  # one of the two goes away, is learned from, comes back
                await until(lambda: second.tally.versions >= 1)
                placed += await send(config, [trace(100 + n, prompts[n % 2]) for n in range(10)], partitions=2)
                await until(lambda: second.tally.versions >= 2)
            placed += await send(config, [trace(200 + n, prompts[n % 2]) for n in range(10)], partitions=2)
            stalling.release()
            await until(lambda: first.tally.versions >= 4)
        assert [await position(0), await position(1)] == [Position(15), Position(15)]
    assert await fates(config) == {place: ["learned"] for place in placed}


@pytest.mark.parametrize(("seconds", "fails"), [(1.0, False), (8.0, False), (1.0, True)])
async def test_report_03_a_commit_that_races_a_revoke(
    kafka: str, unique: str, monkeypatch: pytest.MonkeyPatch, seconds: float, fails: bool
) -> None:
    """Report 3: a commit races a revoke: crash (faust-streaming 94), or nothing is consumed again (faststream 1414)."""
    config = configured(kafka, unique)
    await made(config, 2)
    prompts = [at_home(0, 2), at_home(1, 2)]
    monkeypatch.setattr(member, "REVOKE_SECONDS", 3.0)
    under_way, as_it_is = anyio.Event(), Publisher._send
    slowed: set[int] = set()

    async def slowly(publisher: Publisher, messages: Any, offsets: Any) -> None:
        partition = publisher._ours.partition
        if len(messages) > 1 and partition not in slowed:  # not where it only commits a position
            slowed.add(partition)
            under_way.set()
            send_offsets = publisher._producer.send_offsets_to_transaction

            async def late(*arguments: Any) -> None:
                await anyio.sleep(seconds)
                if fails:
                    raise ProducerFenced
                await send_offsets(*arguments)

            publisher._producer.send_offsets_to_transaction = late
        await as_it_is(publisher, messages, offsets)

    monkeypatch.setattr(Publisher, "_send", slowly)
    async with serving(config) as first:
        await until(lambda: published(first))
        placed = await send(config, [trace(number, prompts[number % 2]) for number in range(10)], partitions=2)
        await under_way.wait()
        async with serving(config) as second:
            await until(lambda: reading(second))
            placed += await send(config, [trace(100 + n, prompts[n % 2]) for n in range(20)], partitions=2)
            await until(lambda: first.tally.versions + second.tally.versions >= 6)
        placed += await send(config, [trace(200 + n, prompts[n % 2]) for n in range(10)], partitions=2)
        await until(lambda: first.tally.versions + second.tally.versions >= 8)
    assert slowed == {0, 1}
    assert await fates(config) == {place: ["learned"] for place in placed}


async def test_report_04_what_is_finished_when_a_revoke_comes_is_not_done_again(
    kafka: str, unique: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Report 4: work finished during a revoke is refused and done again elsewhere (posthog 80897)."""
    config = configured(kafka, unique)
    await made(config, 2)
    prompts = [at_home(0, 2), at_home(1, 2)]
    method, other = Stalling(set(), awaited=True), Stalling(set(), awaited=True)
    as_it_is = Publisher._send

    async def during_the_revoke(publisher: Publisher, messages: Any, offsets: Any) -> None:
        if len(messages) > 1 and not other.calls:
            await until(lambda: not reading(first))
            await anyio.sleep(0.2)
        await as_it_is(publisher, messages, offsets)

    monkeypatch.setattr(Publisher, "_send", during_the_revoke)
    async with serving(config, method=method) as first:
        await until(lambda: published(first))
        placed = await send(config, [trace(number, prompts[number % 2]) for number in range(16)], partitions=2)
        # Of each partition five traces are in a window, three wait for two more; all are reflected on.
        await until(lambda: method.ended.total() == 16 and first.tally.versions == 0)
        async with serving(config, method=other) as second:
            await until(lambda: reading(second) and taken(first) == 3 and taken(second) == 3)
            placed += await send(config, [trace(100 + n, prompts[n % 2]) for n in range(4)], partitions=2)
            await until(lambda: first.tally.versions >= 3 and second.tally.versions >= 1)
    windows = [each for each in await versions(config) if each.window == 1]
    assert not {id for each in windows for id, _ in each.traces} & set(other.calls), "published, and done again"
    assert set(method.calls.values()) == {1}, "finished, and done again by the same worker"
    assert len(other.calls) == 5  # what it had to begin anew, and what was new to all
    assert await fates(config) == {place: ["learned"] for place in placed}


async def test_report_06_sigterm_commits_all_that_is_done(kafka: str, unique: str, tmp_path: Path) -> None:
    """Report 6: SIGTERM: done but not committed (faststream 1648)."""
    config = configured(kafka, unique)
    await made(config)
    file = tmp_path / "config.toml"
    file.write_text(toml(config))
    values: list[Any] = [trace(number, QUICK) for number in range(8)]
    placed = await send(config, [*values, values[0], b"[]", b"{not json"])
    async with positions(config) as position:
        async with worker(file) as process:
            with anyio.fail_after(50):
                while len(await versions(config)) < 1:
                    await anyio.sleep(0.1)
            process.send_signal(signal.SIGTERM)
            with anyio.fail_after(30):
                assert await process.wait() == 0
        assert await position() == Position(11)
    told = await fates(config)
    assert [told[place] for place in placed] == [["learned"]] * 8 + [["duplicate"], ["skipped"], ["rejected"]]


async def test_report_10_each_partition_goes_back_to_its_own_position(
    kafka: str, unique: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Report 10: a rejected batch rewinds only its first record's partition (faststream, in source)."""
    config = configured(kafka, unique)
    await made(config, 3)
    prompts = [at_home(number, 3) for number in range(3)]
    failed: dict[int, int] = {}
    as_it_is = Publisher._send

    async def fails_at_the_second_version(publisher: Publisher, messages: Any, offsets: Any) -> None:
        partition = publisher._ours.partition
        if len(messages) > 1:
            failed[partition] = failed.get(partition, 0) + 1
            if failed[partition] == 2:
                raise KafkaTimeoutError
        await as_it_is(publisher, messages, offsets)

    monkeypatch.setattr(Publisher, "_send", fails_at_the_second_version)
    async with serving(config) as service:
        await until(lambda: published(service))
        placed = []
        for start in (0, 100, 200):
            numbers = range(start, start + 30)
            placed += await send(config, [trace(number, prompts[number % 3]) for number in numbers], partitions=3)
            await anyio.sleep(0.5)
        await until(lambda: service.tally.learned >= 90)
    assert min(failed.values()) > 2
    assert await fates(config) == {place: ["learned"] for place in placed}
