"""Kill a replay with SIGKILL at random instants, take it up again, and compare with one that nobody killed.

    python -m tests.kill.soak --traces 200000 --kills 50 --seed 1

Exit code 0 when the stores are the same bytes, every trace was learned once and every bad line kept once.
"""

from __future__ import annotations

import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from argparse import ArgumentParser
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
from msgspec.structs import replace

from stream.storeerrors import NotAStore
from tests.kill.worker import Done, Job
from tests.stream.logs import Log
from tests.stream.replaying import differing, learned, rejects, store_bytes, versions

AT_START = 0.2
"""The share of kills while a process starts and passes over what was done; the others come while it learns."""

Say = Callable[[str], None]


def soak(root: Path, log: Log, kills: int, seed: int, job: Job, say: Say = lambda text: None) -> Done:
    """Replay ``log`` in processes of which ``kills`` are killed, and check what comes of it.

    :param root: an empty folder; the log, and the stores ``whole`` and ``killed``, are left in it.
    :param job: the replay; its store and, unless it has any, its logs are set here. With ``auto``, the undisturbed run
        takes the sizes that the killed ones chose.
    :return: what the undisturbed run did.
    :raises AssertionError: saying what was lost, learned twice or different.
    """
    source = random.Random(seed)
    if not job.logs:
        job = replace(job, logs=[str(log.write(root / "log"))])
        say(f"log: {log.count:,} traces, {(root / 'log').stat().st_size / 1e6:,.0f} MB")
    auto = job.size == "auto"
    whole, killed = replace(job, store=str(root / "whole")), replace(job, store=str(root / "killed"))
    first = run(replace(whole, store=str(root / "first"))) if auto else run(whole)
    say(f"undisturbed: {first}")
    died, seen = 0, 0
    starting = 0.5
    while died < kills:
        with worker(killed) as process:
            started = time.monotonic()
            assert process.stdout is not None
            if source.random() < AT_START:
                time.sleep(source.uniform(0, starting))
                when = "at start"
            else:
                told = process.stdout.readline()
                assert told == b"learning\n", f"ended after {died} kills: {told!r}"
                starting = time.monotonic() - started
                # Together they must not reach the end: the last one comes to it undisturbed.
                time.sleep(source.uniform(0, 1.6 * first.seconds / kills))
                when = "while learning"
            process.send_signal(signal.SIGKILL)
            assert process.wait() == -signal.SIGKILL, "ended by itself"
        died += 1
        try:
            now = versions(root / "killed")
        except NotAStore:
            now = 0
        assert now >= seen, f"version {now} after version {seen}"
        say(f"kill {died}, {time.monotonic() - started:.2f} s after its start, {when}: {now:,} versions")
        seen = now
    last = run(killed)
    say(f"taken up: {last}")
    if auto:
        first = run(replace(whole, recorded=str(root / "killed")))
        say(f"undisturbed, with the same sizes: {first}")
    check(root, log, stats=not auto, order="refusing" not in job.method)
    say("the same bytes; nothing lost, nothing learned twice")
    return first


def check(root: Path, log: Log, *, stats: bool, order: bool) -> None:
    """Compare the two stores with each other and with the log.

    :param order: whether rejects must stand in one order; that of traces nobody could reflect depends on speed.
    """
    assert learned(root / "killed") == log.ids(), "a trace is missing, there twice or out of order"
    bad = [msgspec.json.encode(each) for each in rejects(root / "killed")]
    assert len(set(bad)) == len(bad), "a bad line is there twice"
    assert set(bad) == {msgspec.json.encode(each) for each in rejects(root / "whole")}, "other bad lines"
    found = differing(store_bytes(root / "killed", stats=stats), store_bytes(root / "whole", stats=stats))
    if not order:
        found = [name for name in found if name not in ("rejects.jsonl", "rejects.idx")]
    assert not found, f"other bytes in {found[:5]} and {len(found)} files in all"


@contextmanager
def worker(job: Job) -> Iterator[subprocess.Popen[bytes]]:
    """The job in a process of its own, which does not outlive the block."""
    command = [sys.executable, "-m", "tests.kill.worker", msgspec.json.encode(job).decode()]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=Path(__file__).parents[2]) as process:
        try:
            yield process
        finally:
            process.kill()


def run(job: Job) -> Done:
    """Do the job to its end."""
    with worker(job) as process:
        assert process.stdout is not None
        lines = process.stdout.read().splitlines()
        assert process.wait() == 0, f"ended with {process.returncode}"
    return msgspec.json.decode(lines[-1], type=Done)


def main() -> None:
    """Run it, and print what is done."""
    parser = ArgumentParser(prog="python -m tests.kill.soak", description=__doc__)
    parser.add_argument("--traces", type=int, default=200_000)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--prompts", type=int, default=20)
    parser.add_argument("--batch-size", default="50", metavar="auto|N")
    parser.add_argument("--method", default="", help="late, overloaded, refusing")
    parser.add_argument("--no-sync", action="store_true", help="do not wait for the device")
    parser.add_argument("--dir", type=Path, help="where to work (else a temporary folder); it is left as it is")
    options = parser.parse_args()
    size = options.batch_size if options.batch_size == "auto" else int(options.batch_size)
    named = tuple(f"err-{number:05}" for number in range(1, 40))
    log = Log(
        count=options.traces, seed=options.seed, prompts=options.prompts, repeats=10, conflicts=5, bad=5, named=named
    )
    job = Job(store="", logs=[], size=size, method=options.method, sync=not options.no_sync)
    root = options.dir or Path(tempfile.mkdtemp(prefix="tracecomb-soak-"))
    root.mkdir(parents=True, exist_ok=True)
    started = time.monotonic()

    def say(text: str) -> None:
        print(f"{time.monotonic() - started:8.1f} s  {text}", flush=True)

    try:
        soak(root, log, options.kills, options.seed, job, say)
    except AssertionError as error:
        sys.exit(f"{error} (see {root})")
    finally:
        if options.dir is None and sys.exc_info()[0] is None:
            shutil.rmtree(root)


if __name__ == "__main__":
    main()
