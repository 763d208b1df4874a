"""Memory: the peak of a whole ``tracecomb replay``, by the number of traces replayed."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from random import Random

from msgspec import Struct

# The kernel's own high-water mark: ru_maxrss still holds the parent's from before the exec.
_COMMAND = """
import sys, time
from pathlib import Path
from stream.cli import main
code = main()
peak = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
print(peak.split()[1], time.process_time())
sys.exit(code)
"""


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
        arguments = [sys.executable, "-c", _COMMAND, "replay", str(log), "--at", str(Path(folder, "store")), "--json"]
        arguments += ["--batch-size", "100"]
        done = subprocess.run(arguments, capture_output=True, text=True, check=True)
        peak, seconds = done.stdout.splitlines()[-1].split()
        return Memory(count, int(peak) / 1024, float(seconds))
