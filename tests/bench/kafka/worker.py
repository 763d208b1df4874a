"""The real service, a process, with a reflector that costs nothing, or one that never answers.

``python -m tests.bench.kafka.worker CONFIG [--count N] [--closed FILE] [--stalled]``

It logs as ``tracecomb run`` does. With a count it stops once so many traces are learned, and prints what that took.
"""

from __future__ import annotations

import argparse
import logging
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Sequence
from typing import NoReturn

import anyio
import msgspec
from msgspec import Struct

from operators import Bullet, Curation, Given, Insight, Reflection, Trace, identity, union
from stream.config import load
from stream.kafka.service import Service
from stream.logs import configure
from tests.bench.kafka.load import PROMPTS, WINDOW
from tests.bench.kafka.measured import Measured, memory

LESSONS = 20
_LOOK_SECONDS = 0.005


class Closed(Struct, frozen=True, array_like=True):
    """When a window closed, by the clock that all processes of a machine share."""

    prompt: str
    window: int
    time: float


class ZeroCost:
    """One vote a trace, one insight in ten, out of 20 lessons a prompt, as in the engine's benchmark."""

    name = "zero-cost"
    reduces = False

    def __init__(self) -> None:
        self.began = self.cpu = 0.0
        """When the first trace came, and the CPU time then."""
        lessons = {
            f"prompt-{p}": [f"lesson {j} of prompt {p}: what to do when it happens" for j in range(LESSONS)]
            for p in range(PROMPTS)
        }
        self._insights = {
            prompt: [(Insight(1, "OTHERS", text),) for text in texts] for prompt, texts in lessons.items()
        }
        self._votes = {prompt: [(identity("OTHERS", text),) for text in texts] for prompt, texts in lessons.items()}

    def reflect(self, trace: Trace, seen: Sequence[Bullet]) -> Reflection | Awaitable[Reflection]:
        if not self.began:
            self.began, self.cpu = time.monotonic(), time.process_time()
        number = int(trace.id[6:])
        lesson = number * 7 % 19
        insights = () if number % 10 else self._insights[trace.prompt][lesson]
        return Reflection(trace.id, trace.session, insights, self._votes[trace.prompt][lesson])

    def curate(self, given: Sequence[Given], base: Sequence[Bullet]) -> Curation:
        return union(given)

    def reduce(self, proposals: Sequence[Bullet], base: Sequence[Bullet]) -> Curation:
        return Curation()


class Timed(ZeroCost):
    """Notes when a prompt's window is full: its last reflection is there at once, and nothing lies in between."""

    def __init__(self) -> None:
        super().__init__()
        self.closed: list[Closed] = []
        self._count: Counter[str] = Counter()

    def reflect(self, trace: Trace, seen: Sequence[Bullet]) -> Reflection | Awaitable[Reflection]:
        self._count[trace.prompt] += 1
        window, left = divmod(self._count[trace.prompt], WINDOW)
        if not left:
            self.closed.append(Closed(trace.prompt, window, time.monotonic()))
        return super().reflect(trace, seen)


class Stalled(ZeroCost):
    """No reflection ever ends."""

    def reflect(self, trace: Trace, seen: Sequence[Bullet]) -> Awaitable[Reflection]:
        return self._never()

    async def _never(self) -> NoReturn:
        await anyio.sleep_forever()
        raise AssertionError


async def run(options: argparse.Namespace) -> Measured | None:
    """Learn; until killed where no count is given."""
    method: ZeroCost = Stalled() if options.stalled else Timed() if options.closed else ZeroCost()
    service = Service(load(options.config), method=method)
    measured: Measured | None = None
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(service.run)
        while not options.count or service.tally.learned < options.count:
            await anyio.sleep(_LOOK_SECONDS if options.count else 3600)
        measured = Measured(
            service.tally.learned,
            time.monotonic() - method.began,
            time.process_time() - method.cpu,
            memory("VmHWM"),
        )
        service.stop()
    if isinstance(method, Timed):
        await anyio.Path(options.closed).write_bytes(msgspec.json.encode(method.closed))
    return measured


def main() -> None:
    """Run, and print what it took as JSON."""
    parser = argparse.ArgumentParser()
    parser.add_argument("config")
    parser.add_argument("--count", type=int, default=0)
    parser.add_argument("--closed", default="")
    parser.add_argument("--stalled", action="store_true")
    options = parser.parse_args()
    configure("info")
    for name, level in (("aiokafka", logging.WARNING), ("aiokafka.producer.sender", logging.ERROR)):
        logging.getLogger(name).setLevel(level)
    sys.stdout.write(msgspec.json.encode(anyio.run(run, options)).decode() + "\n")


if __name__ == "__main__":
    main()
