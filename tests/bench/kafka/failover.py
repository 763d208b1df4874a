"""From kill -9 of the worker that owns a partition to the first update that is new."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AsyncExitStack
from itertools import takewhile

import anyio
from msgspec import Struct

from tests.bench.kafka.bench import Bench, Worker
from tests.bench.kafka.load import pace, steady
from tests.bench.kafka.sights import high_watermark, sights

RATE = 1_000.0
_TAKEN_OVER = "partition taken over"
_SETTLE_SECONDS = 2.0
_ENOUGH = 1_000  # windows of each prompt, which are more than any of this takes


class Failover(Struct, frozen=True):
    """Seconds without a new update after a kill, of each time that it was tried."""

    started_anew: list[float]
    standby: list[float]


async def run(bench: Bench, times: int, told: Callable[[str], None]) -> Failover:
    """Kill the owner ``times`` times each way."""
    found = Failover([], [])
    for number in range(times):
        told("kill -9, a new worker")
        found.started_anew.append(await _once(bench, f"anew-{number}", standby=False))
        told("kill -9, a standby")
        found.standby.append(await _once(bench, f"standby-{number}", standby=True))
    return found


async def _once(bench: Bench, name: str, *, standby: bool) -> float:
    config, file = await bench.configured(name, f"{name}-traces")
    done = anyio.Event()
    async with (
        sights(bench.bootstrap, config.topics.updates) as reader,
        anyio.create_task_group() as tasks,
        AsyncExitStack() as workers,
    ):
        records = takewhile(lambda _: not done.is_set(), steady(_ENOUGH, 1_000))
        tasks.start_soon(pace, bench.bootstrap, config.topics.traces, records, RATE)
        running = [await workers.enter_async_context(bench.worker(f"{name}-a", str(file)))]
        await reader.until(1)
        if standby:
            running.append(await workers.enter_async_context(bench.worker(f"{name}-b", str(file))))
            # Its coming revokes the partition, so one of the two takes it over for the second time.
            while sum(len(worker.said(_TAKEN_OVER)) for worker in running) < 2:
                await anyio.sleep(0.05)
            await reader.until(len(reader.seen) + 1)
            await anyio.sleep(_SETTLE_SECONDS)
        owner = max(running, key=_last_taken_over)
        began = time.monotonic()
        await owner.kill()
        if not standby:
            await workers.enter_async_context(bench.worker(f"{name}-b", str(file)))
        new = await high_watermark(bench.bootstrap, config.topics.updates)
        sight = await reader.first_from(new)
        done.set()
    return sight.time - began


def _last_taken_over(worker: Worker) -> str:
    return max(worker.said(_TAKEN_OVER), default="")
