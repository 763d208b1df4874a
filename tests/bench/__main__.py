"""``make bench``: measure, and write ``tests/bench/RESULTS.md`` with its plots.

Times are CPU seconds of one process, compared within one run; they decide no test.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import anyio
from rich.progress import Progress

from stream.kafka.broker import Missing
from tests.bench import engine, memory, overload, plots
from tests.bench.kafka import run
from tests.bench.kafka.report import section

HERE = Path(__file__).parent
RESULTS = HERE / "RESULTS.md"
KAFKA = "## Kafka\n"
"""The heading that the second part of the page begins with."""

# Combee's Formula runs with GEPA: batch size and seconds (arXiv 2604.04247).
COMBEE_FORMULA = ((5, 2977.0), (10, 1891.0), (25, 844.0), (50, 508.0), (100, 359.0))


def main() -> None:
    """Measure what was asked for."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the traces; RESULTS.md is not written")
    parser.add_argument(
        "--only", choices=("learning", "kafka"), help="one part; the other stays as it is in RESULTS.md"
    )
    options = parser.parse_args()
    was = RESULTS.read_text()
    head, heading, tail = was.partition(KAFKA)
    parts = {"learning": head, "kafka": heading + tail}
    if options.only != "kafka":
        parts["learning"] = learning(quick=options.quick)
    if options.only != "learning":
        parts["kafka"] = on_kafka(quick=options.quick)
    text = "\n".join(part.strip("\n") + "\n" for part in parts.values() if part)
    print(text)
    if not options.quick:
        RESULTS.write_text(text)


def learning(*, quick: bool) -> str:
    """Measure what needs no broker, and draw the plots."""
    scale = 10 if quick else 1
    with Progress() as progress:
        task = progress.add_task("engine", total=4)
        count = 200_000 // scale
        engines = [engine.run(count, seed) for seed in range(5)]
        alone = [count / engine.operators_alone(count, seed) for seed in range(5)]
        progress.update(task, advance=1, description="cost of apply")
        costs = [engine.apply_cost(10**power) for power in (2, 3, 4, 5)]
        progress.update(task, advance=1, description="memory")
        memories = [memory.replay(count // scale) for count in (10_000, 100_000, 1_000_000)]
        progress.update(task, advance=1, description="context overload")
        results = overload.run(traces=3_000 // scale)
        progress.update(task, advance=1)
    if not quick:
        plots.overload(results, HERE / "overload.png")
        plots.apply_costs(costs, HERE / "apply.png")
        plots.controller(COMBEE_FORMULA, HERE / "controller.png")
    return report(engines, alone, costs, memories, results)


def on_kafka(*, quick: bool) -> str:
    """Measure the service on a broker; where there can be none, say why."""
    with Progress() as progress:
        task = progress.add_task("Kafka", total=None)
        try:
            results = anyio.run(partial(run.measure, lambda what: progress.update(task, description=what), quick=quick))
        except Missing as error:
            return f"{KAFKA}\nNot measured: {error}.\n"
    return section(results)


def report(
    engines: Sequence[engine.Engine],
    alone: Sequence[float],
    costs: Sequence[engine.ApplyCost],
    memories: Sequence[memory.Memory],
    results: Sequence[overload.Result],
) -> str:
    """The page, as Markdown."""
    rates = sorted(each.rate for each in engines)
    per_trace = statistics.median(each.seconds / each.traces for each in engines) * 1e6
    raw = statistics.median(each.raw_seconds / each.traces for each in engines) * 1e6
    lines = [
        "# Benchmarks",
        "",
        "Repeat with `make bench`; it writes this page and the plots. Times are CPU time of one process.",
        f"This run: Python {platform.python_version()}, {os.cpu_count()} cores, {platform.machine()}.",
        "",
        "## Engine",
        "",
        "Traces a second on one core: decoded 1 kB traces, 100 prompts, windows of 50, chunks of 1,000, mixed prompts;",
        "a zero-cost reflector (one vote a trace, one insight in ten, out of 20 lessons a prompt). *Operators* are",
        "those that the goal of 300,000 names: window, reflect, shuffle, scan, apply. *Learner* is all that a replay",
        "or the service runs: those, cited curation, carrying, caps, folding, and a version with its text. Medians of",
        "five runs.",
        "",
        "| | traces a second (min to max) | µs a trace |",
        "|---|---|---|",
        f"| operators | **{statistics.median(alone):,.0f}** ({min(alone):,.0f} to {max(alone):,.0f}) "
        f"| {1e6 / statistics.median(alone):.2f} |",
        f"| learner | **{statistics.median(rates):,.0f}** ({rates[0]:,.0f} to {rates[-1]:,.0f}) | {per_trace:.2f} |",
        f"| a bare loop that only fills windows | {1e6 / raw:,.0f} | {raw:.2f} |",
        "",
        "## Cost of apply",
        "",
        "Joining one window's delta (50 votes, 5 pieces of evidence) must depend on the change; deriving what is shown",
        "is O(playbook), and happens when a version is written out.",
        "",
        "| bullets | apply, µs | derive what is shown, µs |",
        "|---|---|---|",
        *(f"| {each.bullets:,} | {each.apply:.0f} | {each.write_out:,.0f} |" for each in costs),
        "",
        "![cost of apply](apply.png)",
        "",
        "## Memory",
        "",
        "Peak resident memory of `tracecomb replay`, windows of 100, 20 prompts, traces of some 0.5 kB, store on disk.",
        "",
        "| traces | peak, MB | CPU seconds | traces a CPU second |",
        "|---|---|---|---|",
        *(
            f"| {each.traces:,} | {each.peak:.0f} | {each.seconds:.1f} | {each.traces / each.seconds:,.0f} |"
            for each in memories
        ),
        "",
        "## Context overload",
        "",
        "A simulated curator keeps what Combee measured (about 0.5, 2.0, 2.4, 3.9, 4.7, 4.2 updates a call at 1, 5,",
        "10, 20, 50, 100 reflections); half of the reflections hold a lesson of their own, half hold none. *Kept*: in",
        "the playbook at the end. *Curated*: a curator wrote it. *Raw*: entered as it was after three windows. *Junk*:",
        "bullets without a lesson, a lesson. *Waits*: windows from a lesson's trace to its bullet. Calls and input",
        "tokens are a trace. *Clamp lowered*: the controller had seen as many traces before counting began.",
        "",
        "| system | batch | kept | curated | raw | dropped | junk | waits | calls | tokens |",
        "|---|---|---|---|---|---|---|---|---|---|",
        *(
            f"| {each.system} | {each.batch} | {each.kept:.1%} | {each.curated:.1%} | {each.raw:.1%} "
            f"| {each.dropped:.1%} | {each.junk:.2f} | {each.waits:.2f} | {each.calls:.3f} | {each.tokens:.0f} |"
            for each in results
        ),
        "",
        "![context overload](overload.png)",
        "",
        "*No curator* keeps every lesson and as many bullets that are none; a curator is there to tell them apart.",
        "",
        "## Controller",
        "",
        "Combee's own Formula runs (GEPA) through our fit; its paper chose 84.",
        "",
        "![controller](controller.png)",
        "",
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
