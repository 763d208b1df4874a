"""The section of RESULTS.md."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from statistics import median

from msgspec import Struct

from tests.bench.kafka.failover import RATE, Failover
from tests.bench.kafka.latency import Latency
from tests.bench.kafka.measured import Measured
from tests.bench.kafka.rates import BYTES, OURS, RAW_TRANSACTIONAL, Rates
from tests.bench.kafka.waiting import SIZE, Waiting

GOAL = 0.6
"""Of the raw transactional loop's rate."""


class Load(Struct, frozen=True):
    """Load averages of a minute when the measurements began and ended."""

    before: float
    after: float


class Results(Struct, frozen=True):
    """All that was measured; ``rates`` by the size of a trace."""

    rates: dict[int, Rates]
    latency: Latency
    failover: Failover
    waiting: Waiting
    load: Load
    partitions: int


def section(results: Results) -> str:
    """The section, as Markdown."""
    latency, failover, waiting = results.latency, results.failover, results.waiting
    middle = [mb for second, mb in waiting.samples if second >= waiting.samples[-1][0] / 2]
    lines = [
        "## Kafka",
        "",
        "Repeat with `make bench ARGS='--only kafka'`. One broker (Apache Kafka on the same machine, `-Xmx512m`).",
        f"This run: Python {platform.python_version()}, {os.cpu_count()} cores, {platform.machine()}; load average "
        f"{results.load.before:.1f} when it began",
        f"and {results.load.after:.1f} when it ended.",
        "",
        f"100 prompts, mixed, windows of 50, {_partitions(results.partitions)}, zstd. *Raw loop*: aiokafka's consumer,",
        "a typed msgspec decode, windows by prompt, one summary a window published, every send awaited before the",
        "offsets are committed; transactional with `retry_backoff_ms` 5. It learns nothing, keeps no state, and loses",
        "its open windows in a crash. *tracecomb*: the whole service in one process, the zero-cost reflector of the",
        "engine's benchmark; each window makes a version, a delta and a state. CPU is the process's own; medians, by",
        f"turns on the same topic. `bytes` is {BYTES >> 20} MiB: at half of the default windows of 10 kB traces would",
        "close early. *Of raw* is the share of the raw transactional loop's rate.",
        "",
        "| trace | system | traces a second (min to max) | of raw | CPU, µs a trace | peak, MB |",
        "|---|---|---|---|---|---|",
        *(line for size, rates in results.rates.items() for line in _rows(size, rates)),
        "",
        f"The goal is {GOAL:.0%} of the raw transactional loop: {_verdict(results.rates)}.",
        "",
        "| | |",
        "|---|---|",
        f"| publish latency, window closed to update readable, median | {latency.median * 1e3:,.0f} ms |",
        f"| the same, 99th percentile ({latency.windows:,} windows at {latency.rate:,.0f} traces a second) "
        f"| {latency.p99 * 1e3:,.0f} ms |",
        f"| kill -9 of the only worker, a new one started at once: next update | {_seconds(failover.started_anew)} |",
        f"| kill -9 of the owner beside a standby: next update | {_seconds(failover.standby)} |",
        f"| memory, {waiting.traces:,} traces of {SIZE} bytes waiting, reflector stalled: at the take-over "
        f"| {waiting.before:.0f} MB |",
        f"| the same, the second half of {waiting.samples[-1][0]:.0f} s | {min(middle):.0f} to {max(middle):.0f} MB |",
        f"| the same, peak | {waiting.peak:.0f} MB |",
        "",
        f"Both kills are at {RATE:,.0f} traces a second. A worker that is killed stays a member until its session ends",
        "(`session_timeout`, 10 s), and nobody can have its partitions before.",
        "",
    ]
    return "\n".join(lines)


def _share(rates: Rates) -> float:
    """Of the raw transactional loop's rate, ours."""
    return median(each.rate for each in rates[OURS]) / median(each.rate for each in rates[RAW_TRANSACTIONAL])


def _verdict(by_size: dict[int, Rates]) -> str:
    shares = {size: _share(rates) for size, rates in by_size.items()}
    return ", ".join(
        f"{'met' if share >= GOAL else 'missed'} at {size // 1_000} kB ({share:.0%})" for size, share in shares.items()
    )


def _rows(size: int, rates: Rates) -> list[str]:
    base = median(each.rate for each in rates[RAW_TRANSACTIONAL])
    return [_row(size, system, runs, base) for system, runs in rates.items()]


def _row(size: int, system: str, runs: Sequence[Measured], base: float) -> str:
    measured = sorted(each.rate for each in runs)
    rate = median(measured)
    shown = f"**{rate:,.0f}**" if system == OURS else f"{rate:,.0f}"
    return (
        f"| {size // 1_000} kB | {system} | {shown} ({measured[0]:,.0f} to {measured[-1]:,.0f}) | {rate / base:.0%} "
        f"| {median(each.micros for each in runs):.1f} | {median(each.peak for each in runs):.0f} |"
    )


def _partitions(count: int) -> str:
    return "one partition" if count == 1 else f"{count} partitions"


def _seconds(times: Sequence[float]) -> str:
    return f"{median(times):.1f} s" + (f" ({min(times):.1f} to {max(times):.1f})" if len(times) > 1 else "")
