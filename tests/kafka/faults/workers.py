"""The worker processes: the real command, started, killed, stopped, frozen, and looked after when they end."""

from __future__ import annotations

import ctypes
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from tests.conftest import ROOT

PYTHON = [sys.executable, "-m", "stream"]
"""The command, by the Python that runs the tests."""

_DIE_WITH_PARENT = 1  # PR_SET_PDEATHSIG of prctl(2)


class Worker:
    """One process.

    :param number: its own, from 1; its log is named after it.
    """

    def __init__(self, number: int, config: Path, folder: Path) -> None:
        self.number = number
        self.log = folder / f"worker-{number:03}.log"
        self.thaw_at: float | None = None
        self.told_to_end = False
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [*PYTHON, "run", "--config", str(config)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=ROOT,
                start_new_session=True,
                preexec_fn=_die_with_parent if sys.platform == "linux" else None,
            )

    def __str__(self) -> str:
        return f"worker {self.number}"

    @property
    def ended(self) -> int | None:
        """Its exit code; None while it is there."""
        return self.process.poll()

    def kill(self) -> None:
        """End it as a power cut would."""
        self.told_to_end = True
        self.process.kill()
        self.process.wait()

    def stop(self) -> None:
        """Ask it to drain and leave."""
        self.told_to_end = True
        self.process.send_signal(signal.SIGTERM)

    def freeze(self, seconds: float) -> None:
        """Stop it where it is, until it is thawed in so many seconds."""
        self.thaw_at = time.monotonic() + seconds
        self.process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let it go on."""
        self.thaw_at = None
        self.process.send_signal(signal.SIGCONT)

    def entries(self) -> list[dict[str, Any]]:
        """The lines of its log that are JSON."""
        found = []
        for line in self.log.read_text(errors="replace").splitlines():
            if line.startswith("{"):
                try:
                    found.append(json.loads(line))
                except ValueError:
                    continue
        return found

    def last_words(self) -> str:
        """The last line of its log."""
        lines = self.log.read_text(errors="replace").splitlines()
        return lines[-1][:400] if lines else "(it said nothing)"


class Fleet:
    """All workers of a run.

    :param folder: for their logs.
    """

    def __init__(self, config: Path, folder: Path) -> None:
        self._config = config
        self._folder = folder
        self.all: list[Worker] = []

    def start(self) -> Worker:
        """Start one more."""
        worker = Worker(len(self.all) + 1, self._config, self._folder)
        self.all.append(worker)
        return worker

    @property
    def there(self) -> list[Worker]:
        """Those that run and were not told to end."""
        return [each for each in self.all if each.ended is None and not each.told_to_end]

    @property
    def awake(self) -> list[Worker]:
        """Those of them that are not frozen."""
        return [each for each in self.there if each.thaw_at is None]

    @property
    def frozen(self) -> list[Worker]:
        """Those that are."""
        return [each for each in self.there if each.thaw_at is not None]

    @property
    def leaving(self) -> list[Worker]:
        """Those that were told to end, and have not."""
        return [each for each in self.all if each.told_to_end and each.ended is None]

    def thaw_due(self) -> list[Worker]:
        """Thaw those whose time has come; returns them."""
        due = [each for each in self.frozen if each.thaw_at is not None and time.monotonic() >= each.thaw_at]
        for each in due:
            each.thaw()
        return due

    def owners(self) -> dict[int, Worker]:
        """Who took each partition over last, by what they have logged."""
        last: dict[int, tuple[str, Worker]] = {}
        for worker in self.awake:
            for entry in worker.entries():
                if entry.get("event") == "partition taken over":
                    partition = int(entry["partition"].rpartition("/")[2])
                    if partition not in last or last[partition][0] < entry["timestamp"]:
                        last[partition] = entry["timestamp"], worker
        return {partition: worker for partition, (_, worker) in last.items()}

    def kill_all(self) -> None:
        """End whatever runs."""
        for each in self.all:
            if each.ended is None:
                each.kill()


def _die_with_parent() -> None:
    # A harness that is killed itself must leave nothing behind that goes on.
    ctypes.CDLL(None).prctl(_DIE_WITH_PARENT, signal.SIGKILL, 0, 0, 0)
    if os.getppid() == 1:
        os._exit(1)
