"""Publish latency: from the close of a window to its update being readable by a read_committed reader."""

from __future__ import annotations

from collections.abc import Callable
from statistics import median, quantiles

import anyio
import msgspec
from msgspec import Struct

from tests.bench.kafka.bench import Bench
from tests.bench.kafka.load import WINDOW, pace, steady, steady_windows
from tests.bench.kafka.sights import sights
from tests.bench.kafka.worker import Closed

_NAME = "latency"


class Latency(Struct, frozen=True):
    """Seconds, and over how many windows at how many traces a second."""

    median: float
    p99: float
    windows: int
    rate: float


async def run(bench: Bench, windows: int, rate: float, told: Callable[[str], None]) -> Latency:
    """Send at a steady rate and match what closes with what can be read.

    :param windows: of each prompt.
    """
    told(f"publish latency at {rate:,.0f} traces a second")
    config, file = await bench.configured(_NAME, f"{_NAME}-traces")
    closed, count = bench.folder / "closed.json", steady_windows(windows)
    async with sights(bench.bootstrap, config.topics.updates) as reader, anyio.create_task_group() as tasks:
        arguments = (str(file), "--count", str(count * WINDOW), "--closed", str(closed))
        tasks.start_soon(bench.measured, _NAME, "worker", *arguments)
        await pace(bench.bootstrap, config.topics.traces, steady(windows, 1_000), rate)
        await reader.until(count)
        seen = {(sight.prompt, sight.version): sight.time for sight in reader.seen}
    times = msgspec.json.decode(closed.read_bytes(), type=list[Closed])
    # The first windows close while the worker catches up with what was sent before it was ready.
    late = [seen[each.prompt, each.window] - each.time for each in times if (each.prompt, each.window) in seen]
    late = late[len(late) // 5 :]
    return Latency(median(late), quantiles(late, n=100)[98], len(late), rate)
