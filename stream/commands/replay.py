"""``tracecomb replay``: learn from trace logs."""

from __future__ import annotations

import json
import shlex
import sys
import time
from argparse import Namespace
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

import anyio
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, SpinnerColumn, TextColumn, TimeRemainingColumn
from rich.table import Table

from stream.config import Config
from stream.files import TraceFiles
from stream.intake import Tally
from stream.replay import Replay, recorded_sizes
from stream.sizes import AutoSizes, RecordedSizes
from stream.states import newest
from stream.store import Store


def replay(options: Namespace, config: Config) -> int:
    """Learn from the traces of files and folders, and say what came of it."""
    started = time.monotonic()
    recorded = None
    if options.sizes_from:
        with Store.open(options.sizes_from, write=False) as other:
            recorded = recorded_sizes(other)
    with Store.open(options.at, write=True, create=True) as store:
        files = TraceFiles(options.paths, exclude=[store.path])
        shown, progress = _progress(files)
        run = Replay(store, files, config, recorded=recorded, go_on=options.go_on, progress=progress)
        with shown:
            tally = anyio.run(run.run)
        prompts = {}
        for name in sorted(tally.prompts):
            state = newest(store.prompt(name))
            prompts[name] = {"version": state.now.version, "bullets": len(state.now.bullets)}
    seconds = round(time.monotonic() - started, 3)
    _talk(run, tally, seconds)
    if options.json:
        print(
            json.dumps(
                {
                    "traces": tally.learned,
                    "rejected": tally.rejected,
                    "duplicates": tally.duplicates,
                    "updates": tally.updates,
                    "prompts": prompts,
                    "seconds": seconds,
                }
            )
        )
    else:
        _print(tally, prompts, options)
    return 0


def _progress(files: TraceFiles) -> tuple[AbstractContextManager[object], Callable[[Tally], None]]:
    """A bar on a terminal, nothing elsewhere."""
    if not sys.stderr.isatty():
        return nullcontext(), lambda tally: None
    bar = Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TimeRemainingColumn(),
        console=Console(file=sys.stderr),
        transient=True,
    )
    task = bar.add_task("reading", total=files.bytes_total)

    def advance(tally: Tally) -> None:
        bar.update(
            task,
            completed=files.bytes_read,
            description=f"{tally.learned:,} traces learned, {tally.updates:,} versions",
        )

    return bar, advance


def _talk(run: Replay, tally: Tally, seconds: float) -> None:
    """What is worth knowing and no result, on stderr."""

    def say(text: str) -> None:
        print(f"tracecomb: {text}", file=sys.stderr)

    if run.resumed:
        say("went on with a replay that had not come to its end")
    if tally.conflicts:
        say(f"{tally.conflicts:,} known ids came again with other content; the first content stands")
    if tally.rejected:
        say(f"{tally.rejected:,} bad lines are in {run.store_path / 'rejects.jsonl'}, each with its reason")
    if tally.skipped:
        say(
            f"{len(tally.skipped):,} files without a trace were skipped, as {tally.skipped[0][0]}: {tally.skipped[0][1]}"
        )
    if isinstance(run.sizes, RecordedSizes) and run.sizes.missing:
        say(f"{run.sizes.missing:,} windows had no recorded size; they took the smallest candidate")
    if isinstance(run.sizes, AutoSizes) and tally.updates:
        say(f"batch size: {run.controller.explain().reason}")
    if not (tally.learned or tally.duplicates or tally.rejected):
        say("no trace was found in what was given")
    elif not tally.updates:
        say(f"nothing new: all {tally.duplicates:,} traces are known")


def _print(tally: Tally, prompts: dict[str, dict[str, int]], options: Namespace) -> None:
    table = Table(box=None, pad_edge=False)
    table.add_column("prompt")
    table.add_column("version", justify="right")
    table.add_column("bullets", justify="right")
    for name, each in prompts.items():
        table.add_row(name, str(each["version"]), str(each["bullets"]))
    console = Console(file=sys.stdout)
    if prompts:
        console.print(table, markup=False)
    print(
        f"{tally.learned:,} traces learned in {tally.updates:,} versions, {tally.duplicates:,} known already, "
        f"{tally.rejected:,} rejected"
    )
    if prompts:
        most = max(prompts, key=lambda name: prompts[name]["bullets"])
        at = "" if str(options.at) == "./tracecomb.d" else f" --at {options.at}"
        print(f"next: tracecomb show {shlex.quote(most)}{at}")
