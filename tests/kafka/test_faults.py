"""Some rounds of the fault suite, under a seed of its own each time; ``make soak`` goes on for as long as one likes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from random import SystemRandom

import pytest

from stream.kafka.broker import Missing, jars, java
from tests.conftest import ROOT, require

MINUTES = "0.75"


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_every_trace_has_one_fate_whatever_fails(tmp_path: Path) -> None:
    try:
        java()
        jars()
    except (Missing, OSError) as error:
        require(f"a Kafka broker ({' '.join(str(error).split())})", False)
    seed = str(SystemRandom().getrandbits(32))
    command = [sys.executable, "-m", "tests.kafka.faults", "--rounds", "1000", "--minutes", MINUTES, "--seed", seed]
    ran = subprocess.run([*command, "--dir", str(tmp_path)], cwd=ROOT, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "nothing is wrong" in ran.stdout
