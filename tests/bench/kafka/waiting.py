"""Memory while a million traces wait for a reflector that never answers."""

from __future__ import annotations

from collections.abc import Callable

import anyio
from msgspec import Struct

from tests.bench.kafka.bench import Bench
from tests.bench.kafka.load import mixed, produce
from tests.bench.kafka.measured import memory

SIZE = 300
_NAME = "waiting"


class Waiting(Struct, frozen=True):
    """Resident memory in MB.

    :param before: when it had just taken a partition over.
    :param samples: (seconds after that, MB).
    """

    traces: int
    before: float
    samples: list[tuple[float, float]]
    peak: float


async def run(bench: Bench, count: int, seconds: float, partitions: int, told: Callable[[str], None]) -> Waiting:
    """Let a stalled service stand before ``count`` traces for so many seconds."""
    config, file = await bench.configured(_NAME, f"{_NAME}-traces", partitions)
    told(f"sending {count:,} traces of {SIZE} bytes")
    await produce(bench.bootstrap, config.topics.traces, partitions, mixed(count, SIZE))
    told("a stalled reflector")
    async with bench.worker(_NAME, str(file), "--stalled") as worker:
        while not worker.said("partition taken over"):
            await anyio.sleep(0.01)
        before, began = memory("VmRSS", worker.pid), anyio.current_time()
        samples = []
        while (passed := anyio.current_time() - began) < seconds:
            samples.append((passed, memory("VmRSS", worker.pid)))
            await anyio.sleep(1)
        return Waiting(count, before, samples, memory("VmHWM", worker.pid))
