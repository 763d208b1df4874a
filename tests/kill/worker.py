"""A replay in a process of its own, to be killed: ``python -m tests.kill.worker JOB``, where JOB is JSON.

It writes ``learning`` once it has made a version, and at its end what it did, as JSON.
"""

from __future__ import annotations

import os
import resource
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from operators.modelfree import ModelFree
from operators.values import Bullet, Reflection, Trace
from stream.atomic import Disk
from stream.intake import Tally
from tests.stream.crashing import Stopping
from tests.stream.replaying import Late, Overloaded, replay


class Job(Struct, frozen=True, kw_only=True):
    """One replay.

    :param method: ``late``, ``overloaded``, ``refusing``, or several of them, as words.
    :param sync: wait for the device, as the command does; a process can be killed well without.
    :param dies: after so many changes of the store the process kills itself with SIGKILL, wherever that is.
    """

    store: str
    logs: list[str]
    size: int | str = 50
    seed: int = 0
    chunk: int = 512
    method: str = ""
    recorded: str | None = None
    sync: bool = False
    dies: int | None = None
    tables: dict[str, Any] = {}


class Done(Struct, frozen=True):
    """What one replay did; ``changes`` are system calls that change the store, memory is in megabytes."""

    learned: int
    duplicates: int
    conflicts: int
    rejected: int
    updates: int
    changes: int
    seconds: float
    memory: float


class Deadly(Stopping):
    """A disk that kills the process."""

    def __init__(self, at: int | None, sync: bool) -> None:
        super().__init__(at)
        self._sync = sync

    def stop(self) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    def sync(self, fd: int) -> None:
        super().sync(fd)
        if self._sync:
            Disk.sync(self, fd)


class Refusing(ModelFree):
    """Cannot reflect every hundredth trace."""

    def reflect(self, trace: Trace, seen: Sequence[Bullet]) -> Reflection:
        if trace.id.endswith("77"):
            raise RuntimeError(f"no sense in {trace.id}")
        return super().reflect(trace, seen)


def peak() -> float:
    """The most memory this process has had, in megabytes."""
    try:
        # Not by getrusage: there Linux counts what the parent had when it made this process.
        status = Path("/proc/self/status").read_text()
    except FileNotFoundError:
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return most / (1 << 20 if sys.platform == "darwin" else 1 << 10)
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


def _method(words: list[str]) -> Any:
    method: Any = Overloaded() if "overloaded" in words else ModelFree()
    if "refusing" in words:
        method = Refusing()
        sys.modules["operators.learner"].__dict__["ModelFree"] = Refusing  # what falls back refuses too
    return Late(time.time_ns(), method) if "late" in words else method


def main() -> None:
    """Do the job."""
    job = msgspec.json.decode(sys.argv[1], type=Job)
    told = False

    def progress(tally: Tally) -> None:
        nonlocal told
        if tally.updates and not told:
            print("learning", flush=True)
            told = True

    disk = Deadly(job.dies, job.sync)
    started = time.monotonic()
    tally = replay(
        Path(job.store),
        [Path(log) for log in job.logs],
        job.size,
        seed=job.seed,
        chunk=job.chunk,
        disk=disk,
        method=_method(job.method.split()),
        recorded=None if job.recorded is None else Path(job.recorded),
        progress=progress,
        **job.tables,
    )
    done = Done(
        tally.learned,
        tally.duplicates,
        tally.conflicts,
        tally.rejected,
        tally.updates,
        disk.calls,
        round(time.monotonic() - started, 2),
        round(peak(), 1),
    )
    print(msgspec.json.encode(done).decode(), flush=True)


if __name__ == "__main__":
    main()
