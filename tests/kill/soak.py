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
from itertools import count
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


class Soak:
    """One log, replayed undisturbed and by processes that are killed.

    :param root: an empty folder; the log and the stores, ``whole`` and one a round, are left in it.
    :param job: the replay; its store and, unless it has any, its logs are set here. With ``auto``, the undisturbed run
        takes the sizes that the killed ones chose.
    :param base: a store to start from.
    :param timed: kill at random instants, from outside; else processes kill themselves, after random numbers of changes
        to the store, so that it does not depend on the machine how far they come.
    """

    def __init__(
        self,
        root: Path,
        log: Log,
        job: Job,
        seed: int,
        *,
        base: Path | None = None,
        timed: bool = False,
        say: Say = lambda text: None,
    ) -> None:
        if not job.logs:
            job = replace(job, logs=[str(log.write(root / "log"))])
            say(f"log: {log.count:,} traces, {(root / 'log').stat().st_size / 1e6:,.0f} MB")
        self._root = root
        self._log = log
        self._job = job
        self._base = base
        self._timed = timed
        self._say = say
        self._source = random.Random(seed)
        self._starting = 0.5
        self.first = run(self._from_base("whole"))
        say(f"undisturbed: {self.first}")

    def kill(self, kills: int) -> None:
        """Kill ``kills`` processes; when a replay ends before that, begin another.

        :raises AssertionError: saying what was lost, learned twice or different.
        """
        died = 0
        for number in count(1):
            job = self._from_base(f"killed-{number}")
            seen = 0
            while died < kills and self._dies(job, kills):
                died += 1
                now = _versions(job.store)
                assert now >= seen, f"version {now} after version {seen}"
                seen = now
                self._say(f"kill {died}: {now:,} versions")
            if died == kills:
                self._say(f"taken up: {run(job)}")
            whole = self._root / "whole"
            if job.size == "auto":
                again = self._from_base(f"again-{number}")
                self._say(f"undisturbed, with the same sizes: {run(replace(again, recorded=job.store))}")
                whole = Path(again.store)
            check(Path(job.store), whole, self._log, stats=job.size != "auto", order="refusing" not in job.method)
            self._say("the same bytes; nothing lost, nothing learned twice")
            if died == kills:
                return

    def _from_base(self, name: str) -> Job:
        if self._base is not None:
            shutil.copytree(self._base, self._root / name)
        return replace(self._job, store=str(self._root / name))

    def _dies(self, job: Job, kills: int) -> bool:
        """Run the job in a process that is killed; False when it ended before."""
        if not self._timed:
            job = replace(job, dies=self._source.randint(1, 2 * self.first.changes // kills))
        with worker(job) as process:
            if self._timed:
                self._wait(process, kills)
                process.kill()
            ended = process.wait()
        assert ended in (0, -signal.SIGKILL), f"ended with {ended}"
        return ended != 0

    def _wait(self, process: subprocess.Popen[bytes], kills: int) -> None:
        """Wait for a random time."""
        started = time.monotonic()
        if self._source.random() < AT_START:
            time.sleep(self._source.uniform(0, self._starting))
            return
        assert process.stdout is not None
        if process.stdout.readline() == b"learning\n":
            self._starting = time.monotonic() - started
            time.sleep(self._source.uniform(0, 1.6 * self.first.seconds / kills))


def _versions(store: str) -> int:
    try:
        return versions(Path(store))
    except NotAStore:
        return 0


def check(killed: Path, whole: Path, log: Log, *, stats: bool, order: bool) -> None:
    """Compare two stores with each other and with the log.

    :param order: whether rejects must stand in one order; that of traces nobody could reflect depends on speed.
    """
    assert learned(killed) == log.ids(), "a trace is missing, there twice or out of order"
    bad = [msgspec.json.encode(each) for each in rejects(killed)]
    assert len(set(bad)) == len(bad), "a bad line is there twice"
    assert set(bad) == {msgspec.json.encode(each) for each in rejects(whole)}, "other bad lines"
    found = differing(store_bytes(killed, stats=stats), store_bytes(whole, stats=stats))
    if not order:
        found = [name for name in found if name not in ("rejects.jsonl", "rejects.idx")]
    assert not found, f"other bytes in {found[:5]}, {len(found)} files in all"


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
        Soak(root, log, job, options.seed, timed=True, say=say).kill(options.kills)
    except AssertionError as error:
        sys.exit(f"{error} (see {root})")
    finally:
        if options.dir is None and sys.exc_info()[0] is None:
            shutil.rmtree(root)


if __name__ == "__main__":
    main()
