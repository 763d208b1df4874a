"""Run workers on a broker while everything fails, and see that every trace has exactly one fate.

    python -m tests.kafka.faults --rounds 100 --seed 1

Exit code 0 when nothing was wrong in the end. What a run leaves (logs, the broker's data, what was found) is kept
when something was, and with --dir.
"""

from __future__ import annotations

import logging
import shutil
import sys
import tempfile
import time
from argparse import ArgumentParser
from pathlib import Path
from random import SystemRandom

import anyio

from tests.kafka.faults.rig import Outcome, Rig

_SHOWN = 40


def main() -> int:
    """Run it, print a line a round and the verdict, and return the exit code."""
    parser = ArgumentParser(prog="python -m tests.kafka.faults", description=__doc__)
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--minutes", type=float, help="begin no round after so long")
    parser.add_argument("--seed", type=int, help="of the schedule and the traces (else any)")
    parser.add_argument("--dir", type=Path, help="where to work, an empty folder (else a temporary one)")
    options = parser.parse_args()
    seed = SystemRandom().getrandbits(32) if options.seed is None else options.seed
    folder = options.dir or Path(tempfile.mkdtemp(prefix="tracecomb-faults-"))
    folder.mkdir(parents=True, exist_ok=True)
    logging.basicConfig(filename=folder / "harness.log", format="%(asctime)s %(name)s %(levelname)s %(message)s")
    started = time.monotonic()
    with (folder / "run.log").open("w") as file:

        def say(text: str) -> None:
            told = f"{time.monotonic() - started:8.1f} s  {text}"
            print(told, flush=True)
            print(told, file=file, flush=True)

        say(f"seed {seed}, in {folder}")
        outcome = anyio.run(Rig(folder, seed, say).run, options.rounds, options.minutes and 60 * options.minutes)
        say(verdict(outcome))
    if outcome.wrong:
        for each in outcome.wrong[:_SHOWN]:
            print(each)
        if len(outcome.wrong) > _SHOWN:
            print(f"and {len(outcome.wrong) - _SHOWN:,} more")
        print(f"seed {seed}; everything is in {folder}")
        return 1
    if options.dir is None:
        shutil.rmtree(folder)
    return 0


def verdict(outcome: Outcome) -> str:
    """One line on how a run ended."""
    kinds = ", ".join(f"{times} × {kind}" for kind, times in sorted(outcome.kinds.items()))
    return (
        f"{outcome.rounds} rounds ({kinds}); {outcome.traces:,} traces, {outcome.versions:,} versions, "
        f"{outcome.rejects:,} rejects, {outcome.aborted} transactions hit in their midst: "
        f"{f'{len(outcome.wrong):,} things are wrong' if outcome.wrong else 'nothing is wrong'}"
    )


if __name__ == "__main__":
    sys.exit(main())
