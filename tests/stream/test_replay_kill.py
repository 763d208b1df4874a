"""Processes that replay and are killed with SIGKILL at random instants, as ``tests.kill.soak`` does at length."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from tests.kill.soak import Soak, run, worker
from tests.kill.worker import Job
from tests.stream.logs import Log
from tests.stream.replaying import learned, replay

NAMED = tuple(f"err-{number:05}" for number in range(1, 40))
ODD: dict[str, Any] = {"repeats": 30, "conflicts": 20, "bad": 20}
BOUND: dict[str, Any] = {"learning": {"open_traces": 40, "fold_every": 5}}


@pytest.mark.parametrize(
    ("log", "job"),
    [
        pytest.param(Log(count=4000, prompts=5, **ODD, named=NAMED), {}, id="plain"),
        pytest.param(Log(count=2000, prompts=40, **ODD), {"size": 8, "tables": BOUND}, id="the bound closes windows"),
        pytest.param(Log(count=2000, prompts=600, **ODD), {}, id="the end closes windows"),
        pytest.param(Log(count=1500, prompts=4, **ODD), {"size": 16, "method": "overloaded"}, id="carried insights"),
        pytest.param(
            Log(count=1200, prompts=20, **ODD),
            {"size": 8, "method": "late overloaded", "tables": BOUND},
            id="calls under way",
        ),
        pytest.param(Log(count=3000, prompts=5, **ODD), {"size": "auto"}, id="auto"),
        pytest.param(
            Log(count=1500, prompts=20, **ODD),
            {"size": "auto", "method": "late", "tables": BOUND},
            id="auto, late, bound",
        ),
        pytest.param(Log(count=2000, prompts=5, **ODD), {"size": 8, "method": "refusing"}, id="traces nobody reflects"),
    ],
)
def test_killed_at_random(tmp_path: Path, log: Log, job: dict[str, Any]) -> None:
    Soak(tmp_path, log, Job(store="", logs=[], **job), seed=4).kill(6)


def test_killed_in_a_second_replay_over_a_log_that_has_grown(tmp_path: Path) -> None:
    log = Log(count=3000, prompts=5, **ODD, named=NAMED)
    lines, path = list(log.lines()), tmp_path / "log"
    path.write_bytes(b"\n".join(lines[:1000]))
    replay(tmp_path / "base", path, 20)
    path.write_bytes(b"\n".join(lines) + b"\n")
    Soak(tmp_path, log, Job(store="", logs=[str(path)], size=20), seed=5, base=tmp_path / "base").kill(6)


def test_killed_at_once_again_and_again(tmp_path: Path) -> None:
    # Before the store is there, while it is made, while its first run begins.
    log = Log(count=300, prompts=3)
    job = Job(store=str(tmp_path / "killed"), logs=[str(log.write(tmp_path / "log"))], size=8)
    for number in range(12):
        with worker(job):
            time.sleep(0.1 + 0.03 * number)
    done = run(job)
    assert learned(tmp_path / "killed") == log.ids()
    assert done.learned + done.duplicates == 300


@pytest.mark.slow
def test_killed_ten_times_in_twenty_thousand_traces(tmp_path: Path) -> None:
    log = Log(count=20_000, seed=3, prompts=20, repeats=10, conflicts=5, bad=5, named=NAMED)
    Soak(tmp_path, log, Job(store="", logs=[]), seed=6, timed=True).kill(10)
