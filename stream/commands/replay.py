"""``tracecomb replay``: learn from trace logs."""

from __future__ import annotations

import json
import shlex
import time
from argparse import Namespace
from typing import NamedTuple

import anyio
from rich.cells import cell_len

from operators.explanation import Explanation
from stream.commands.reading import check_paths, progress
from stream.config import Config
from stream.files import TraceFiles
from stream.intake import Tally
from stream.replay import Replay, recorded_sizes
from stream.sizes import AutoSizes, RecordedSizes
from stream.states import newest
from stream.store import Store
from stream.terminal import counted, invoked, line, say, visible


class Learned(NamedTuple):
    """Where a prompt stands after the replay."""

    version: int
    bullets: int


def replay(options: Namespace, config: Config) -> int:
    """Learn from the traces of files and folders, and say what came of it."""
    started = time.monotonic()
    check_paths(options.paths)
    files = TraceFiles(options.paths, exclude=[options.at])  # before a store is made for a path that is mistyped
    recorded = None
    if options.sizes_from:
        with Store.open(options.sizes_from, write=False) as other:
            recorded = recorded_sizes(other)
    with Store.open(options.at, write=True, create=True) as store, progress(files, options.verbose) as show:

        def advance(tally: Tally) -> None:
            show(f"{counted(tally.learned, 'trace')} learned, {counted(tally.updates, 'version')}")

        run = Replay(store, files, config, recorded=recorded, go_on=options.go_on, progress=advance)
        tally = anyio.run(run.run)
        states = {name: newest(store.prompt(name)).now for name in sorted(tally.prompts)}
        prompts = {name: Learned(now.version, len(now.bullets)) for name, now in states.items()}
    _talk(run, tally, prompts)
    if options.json:
        told = {
            "traces": tally.learned,
            "rejected": tally.rejected,
            "duplicates": tally.duplicates,
            "updates": tally.updates,
            "prompts": {name: each._asdict() for name, each in prompts.items()},
            "seconds": round(time.monotonic() - started, 3),
        }
        line(json.dumps(told))
    else:
        _print(tally, prompts, options.given_at)
    return 0


def _talk(run: Replay, tally: Tally, prompts: dict[str, Learned]) -> None:
    """What is worth knowing and no result, on stderr."""
    if run.resumed:
        say("an earlier replay into this store was cut short; this one went on where that had come to")
    if tally.conflicts:
        say(f"{counted(tally.conflicts, 'known id')} came again with other content; the first content stands")
    if tally.rejected:
        kept = run.store_path / "rejects.jsonl"
        say(f"{counted(tally.rejected, 'bad line')} rejected, kept with the reason in {kept}")
    if tally.repaired:
        what = "broken UTF-8, lone surrogates, NaN or raw control characters"
        say(f"{counted(tally.repaired, 'trace')} had {what} in them; those were replaced, the rest was read")
    if tally.skipped:
        file, reason = tally.skipped[0]
        first = "" if len(tally.skipped) == 1 else "the first is "
        say(f"{counted(len(tally.skipped), 'file')} skipped, with no trace in it; {first}{file}: {reason}")
    if isinstance(run.sizes, RecordedSizes) and run.sizes.missing:
        say(f"{counted(run.sizes.missing, 'window')} had no recorded size and took the smallest candidate")
    if not tally.updates:
        if tally.duplicates:
            say(f"nothing new: {counted(tally.duplicates, 'trace')} read, all known already")
        else:
            say("no trace was found in what was given")
    elif not any(each.bullets for each in prompts.values()):
        say("no lesson yet: no failed call was put right, no loop, and no failed run has feedback")
    if tally.updates and isinstance(run.sizes, AutoSizes) and (grounds := _grounds(run.controller.explain())):
        say(f"batch size: {grounds}")


def _grounds(known: Explanation) -> str:
    """Why windows have the size they have; empty as long as there is nothing to say."""
    if known.stage == "profiling":
        timed = {point.size for point in known.points}
        left = [str(size) for size in known.candidates if size not in timed and size not in known.left_out]
        sizes = f"windows of {', '.join(map(str, sorted(timed)))} traces"
        following = f", {', '.join(left)} come next" if left else " so far"
        return f"still being chosen; {sizes} were timed{following}" if timed else ""
    why = "too few larger ones filled to tell what they would gain"
    if known.stage == "flat":
        why = "larger ones gain nothing measurable"
    elif known.alpha is not None and known.r2 is not None:
        law = f"time falls with n^-{known.alpha:.2f}, which explains {known.r2:.0%} of what was measured"
        why = f"larger ones would gain too little ({law})"
    clamped = f"; less for {counted(len(known.clamps), 'prompt')} with an overloaded curator" if known.clamps else ""
    return f"{counted(known.size, 'trace')} a window; {why}{clamped}"


def _print(tally: Tally, prompts: dict[str, Learned], at: str | None) -> None:
    """The table of prompts, the counts, and what to run next."""
    if prompts:
        names = {name: visible(name) for name in prompts}
        width = max(map(cell_len, ["prompt", *names.values()]))
        line(f"prompt{' ' * (width - 6)}  version  bullets")
        for name, each in prompts.items():
            line(f"{names[name]}{' ' * (width - cell_len(names[name]))}  {each.version:>7}  {each.bullets:>7}")
    line(
        f"{counted(tally.learned, 'trace')} learned in {counted(tally.updates, 'version')}, "
        f"{tally.duplicates:,} known already, {tally.rejected:,} rejected"
    )
    taught = [name for name, each in prompts.items() if each.bullets and name == visible(name)]
    if taught:
        most = max(taught, key=lambda name: prompts[name].bullets)
        store = "" if at is None else f" --at {shlex.quote(at)}"
        line(f"next: {invoked()} show{store} {'-- ' if most.startswith('-') else ''}{shlex.quote(most)}")
