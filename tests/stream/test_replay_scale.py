"""Many prompts, many traces."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.kill.soak import run
from tests.kill.worker import Job
from tests.stream.logs import Log, trace, write
from tests.stream.replaying import (
    learned,
)

ROOT = Path(__file__).parents[2]


MANY = """
import resource, sys
from pathlib import Path
from tests.stream.replaying import replay
resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))  # what macOS gives
replay(Path(sys.argv[1]), Path(sys.argv[2]), 2)
"""


@pytest.mark.slow
@pytest.mark.timeout(180)
def test_ten_thousand_prompts_in_one_log(tmp_path: Path) -> None:
    path = tmp_path / "log"
    names = [f"p{number * 7919 % 10_000}" for number in range(20_000)]
    # Each comes back after all others, so no index of ids can stay open.
    write(path, *(trace(f"t{number}", prompt=name) for number, name in enumerate(names)))
    command = [sys.executable, "-c", MANY, str(tmp_path / "store"), str(path)]
    done = subprocess.run(command, check=False, cwd=ROOT, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    found = learned(tmp_path / "store")
    assert len(found) == 10_000
    assert all(len(ids) == 2 for ids in found.values())


@pytest.mark.slow
def test_memory_is_flat(tmp_path: Path) -> None:
    peaks = []
    for count in (6_000, 24_000):
        path = Log(count=count, prompts=5, bare=True).write(tmp_path / "log")
        peaks.append(run(Job(store=str(tmp_path / str(count)), logs=[str(path)])).memory)
    assert peaks[1] < 1.3 * peaks[0], peaks
