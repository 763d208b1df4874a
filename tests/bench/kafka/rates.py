"""Traces a second, CPU and memory of the raw loop and of the service, by turns on the same topic."""

from __future__ import annotations

from collections.abc import Callable

from tests.bench.kafka.bench import Bench
from tests.bench.kafka.load import mixed, produce
from tests.bench.kafka.measured import Measured

RAW, RAW_TRANSACTIONAL, OURS = "raw loop, at least once", "raw loop, transactional", "tracecomb, exactly once"
Rates = dict[str, list[Measured]]

BYTES = 256 << 20
"""What may be under way: open windows of 50 traces of 10 kB for 100 prompts do not fit into half of the default."""


async def run(bench: Bench, count: int, size: int, rounds: int, partitions: int, told: Callable[[str], None]) -> Rates:
    """Measure each system ``rounds`` times.

    :param size: of a trace, in bytes.
    """
    base = f"rates-{size}-{partitions}"
    traces = f"{base}-traces"
    await bench.configured(base, traces, partitions)
    told(f"sending {count:,} traces of {size:,} bytes")
    await produce(bench.bootstrap, traces, partitions, mixed(count, size))
    found: Rates = {RAW: [], RAW_TRANSACTIONAL: [], OURS: []}
    for number in range(rounds):
        for system in found:
            told(f"{system}, {size:,} bytes")
            name = f"{base}-{number}-{list(found).index(system)}"
            config, file = await bench.configured(name, traces, partitions, bytes=BYTES)
            if system == OURS:
                measured = await bench.measured(name, "worker", str(file), "--count", str(count))
            else:
                more = ["--transactional"] if system == RAW_TRANSACTIONAL else []
                arguments = [bench.bootstrap, traces, config.topics.updates, name, str(count), *more]
                measured = await bench.measured(name, "raw", *arguments)
            found[system].append(measured)
    return found
