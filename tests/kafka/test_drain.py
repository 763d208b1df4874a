"""Signals to a real process: the first drains it within its deadline, the second cuts that short; nothing is lost."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from stream.config import Config
from tests.conftest import ROOT
from tests.kafka.serving import configured, fates, made, send, trace, versions
from tests.kafka.working import toml

QUICK, STALLED = "quick", "stalled"
SECONDS = 120.0


class Running:
    """A process, and what it has said so far."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.said = ""

    async def says(self, text: str) -> None:
        """Read on until it has said something."""
        assert self.process.stderr is not None
        with anyio.fail_after(SECONDS):
            while text not in self.said:
                line = await self.process.stderr.readline()
                assert line, self.said
                self.said += line.decode()

    async def ends(self) -> int:
        """Read on until it has ended."""
        assert self.process.stderr is not None
        with anyio.fail_after(SECONDS):
            self.said += (await self.process.stderr.read()).decode()
            return await self.process.wait()


@asynccontextmanager
async def running(file: Path, *stalled: str) -> AsyncIterator[Running]:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "tests.kafka.draining", str(file), *stalled),
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    try:
        yield Running(process)
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


def write(file: Path, config: Config) -> None:
    file.write_text(toml(config))


async def started(kafka: str, unique: str, file: Path, drain: float) -> tuple[Config, list[tuple[int, int]]]:
    """Seven traces that make a version and a half, and between them five that never get one."""
    config = configured(kafka, unique, drain=drain, straggler_deadline=86_400.0)
    write(file, config)
    await made(config)
    prompts = [QUICK, STALLED] * 5 + [QUICK] * 2
    return config, await send(config, [trace(number, prompt) for number, prompt in enumerate(prompts)])


async def all_learned(config: Config, file: Path, placed: list[tuple[int, int]]) -> None:
    """Another process that nothing stalls finds what is left, and each trace has one fate in the end."""
    async with running(file) as worker:
        await worker.says("partition taken over")
        with anyio.fail_after(SECONDS):
            while len({place for each in await versions(config) for place in each.offsets}) < 10:
                await anyio.sleep(0.1)
        worker.process.send_signal(signal.SIGTERM)
        assert await worker.ends() == 0
    assert await fates(config) == {place: ["learned"] for place in placed}


@pytest.mark.timeout(400)
async def test_a_signal_drains_within_the_deadline(kafka: str, unique: str, tmp_path: Path) -> None:
    file = tmp_path / "drain.toml"
    config, placed = await started(kafka, unique, file, drain=4.0)
    async with running(file, STALLED) as worker:
        await worker.says("version published")
        worker.process.send_signal(signal.SIGTERM)
        # What is stalled never ends, so only the deadline can.
        assert await worker.ends() == 0
        assert "SIGTERM: publishing what is ready" in worker.said
        assert "let go with work under way" in worker.said
        assert "cut short" not in worker.said
    assert [(each.prompt, each.batch_size) for each in await versions(config)] == [(QUICK, 5), (QUICK, 2)]
    await all_learned(config, file, placed)


@pytest.mark.timeout(400)
async def test_a_second_signal_cuts_it_short_and_loses_nothing(kafka: str, unique: str, tmp_path: Path) -> None:
    file = tmp_path / "short.toml"
    config, placed = await started(kafka, unique, file, drain=3_600.0)
    async with running(file, STALLED) as worker:
        await worker.says("version published")
        worker.process.send_signal(signal.SIGTERM)
        await worker.says("publishing what is ready")
        worker.process.send_signal(signal.SIGTERM)
        # Long before its deadline, which is an hour.
        assert await worker.ends() == 0
        assert "cut short; what was under way is read again" in worker.said
    assert {each.prompt for each in await versions(config)} == {QUICK}
    await all_learned(config, file, placed)
