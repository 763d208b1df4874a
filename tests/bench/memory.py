"""Memory: the peak of a whole ``tracecomb replay``, by the number of traces replayed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from random import Random

from msgspec import Struct


class Memory(Struct, frozen=True):
    """Peak resident memory of one replay, in MB, and its CPU seconds."""

    traces: int
    peak: float
    seconds: float


def write_log(path: Path, count: int, prompts: int = 20, seed: int = 0) -> None:
    """A trace log in our own JSON lines, some with an error and the recovery from it."""
    random = Random(seed)
    with path.open("w") as log:
        for number in range(count):
            steps: list[dict[str, object]] = [{"role": "user", "content": f"task {number} " + "x" * 120}]
            value = random.randrange(100)
            if random.random() < 0.3:
                steps.append(
                    {"role": "assistant", "calls": [{"id": "a", "name": "pay", "arguments": {"amount": value}}]}
                )
                steps.append({"role": "tool", "call": "a", "error": f"amount must be over 100, got {value}"})
            steps.append({"role": "assistant", "calls": [{"id": "b", "name": "pay", "arguments": {"amount": 500}}]})
            steps.append({"role": "tool", "call": "b", "content": "ok"})
            trace = {
                "id": f"t{number}",
                "prompt": f"p{number % prompts}",
                "session": f"s{number % 999}",
                "steps": steps,
            }
            log.write(json.dumps(trace) + "\n")


def replay(count: int) -> Memory:
    """Replay ``count`` traces in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder, "log.jsonl")
        write_log(log, count)
        command = "import sys; from stream.cli import main; sys.exit(main())"
        arguments = [sys.executable, "-c", command, "replay", str(log), "--at", str(Path(folder, "store")), "--json"]
        arguments += ["--batch-size", "100"]
        process = subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        assert process.returncode == 0, f"replay ended with {process.returncode}"
        return Memory(count, used.ru_maxrss / 1024, used.ru_utime + used.ru_stime)
