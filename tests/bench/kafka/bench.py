"""One broker for all measurements, topics for each, and the processes that are measured."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import msgspec

from stream.config import Config
from stream.kafka.tables import Kafka, Service, Topics
from stream.kafka.topics import create
from tests.bench.kafka.load import WINDOW
from tests.bench.kafka.measured import Measured
from tests.conftest import ROOT
from tests.kafka.working import toml

_DECODER = msgspec.json.Decoder(Measured)


class Bench:
    """Where the measurements run.

    :param folder: for configurations and logs.
    """

    def __init__(self, bootstrap: str, folder: Path) -> None:
        self.bootstrap = bootstrap
        self.folder = folder

    async def configured(self, name: str, traces: str, partitions: int = 1, **service: Any) -> tuple[Config, Path]:
        """A configuration with topics of its own, which are made, and its file; the defaults but for what is given.

        :param name: of the group, and of the topics but that of the traces.
        """
        names = {field: f"{name}-{field}" for field in Topics.__struct_fields__}
        config = Config(
            kafka=Kafka(bootstrap=self.bootstrap, group=name),
            topics=Topics(**{**names, "traces": traces}),
            service=Service(**{"batch_size": WINDOW, **service}),
        )
        await create(config.kafka, config.topics, partitions)
        file = self.folder / f"{name}.toml"
        file.write_text(toml(config))
        return config, file

    async def measured(self, name: str, module: str, *arguments: str) -> Measured:
        """Run a process to its end, and return what it printed."""
        with (self.folder / f"{name}.log").open("wb") as log:
            done = await anyio.run_process(
                [sys.executable, "-m", f"tests.bench.kafka.{module}", *arguments],
                stdin=subprocess.DEVNULL,
                stderr=log,
                cwd=ROOT,
            )
        return _DECODER.decode(done.stdout.splitlines()[-1])

    @asynccontextmanager
    async def worker(self, name: str, *arguments: str) -> AsyncIterator[Worker]:
        """A worker that runs until it is killed, at the end at the latest."""
        worker = await Worker.start(self.folder / f"{name}.log", *arguments)
        try:
            yield worker
        finally:
            await worker.kill()


class Worker:
    """A process with the service."""

    def __init__(self, process: asyncio.subprocess.Process, log: Path) -> None:
        self._process = process
        self._log = log

    @classmethod
    async def start(cls, log: Path, *arguments: str) -> Worker:
        """Start it; it is not ready then."""
        with log.open("wb") as file:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "tests.bench.kafka.worker", *arguments),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=file,
                cwd=ROOT,
                env=os.environ,
            )
        return cls(process, log)

    @property
    def pid(self) -> int:
        """The number of its process."""
        return self._process.pid

    async def kill(self) -> None:
        """End it as a power cut would."""
        if self._process.returncode is None:
            self._process.send_signal(signal.SIGKILL)
        await self._process.wait()

    def said(self, event: str) -> list[str]:
        """The times at which it logged this, oldest first."""
        lines = [line for line in self._log.read_bytes().splitlines() if line.startswith(b"{") and line.endswith(b"}")]
        found = [msgspec.json.decode(line) for line in lines]
        return [str(each["timestamp"]) for each in found if each.get("event") == event]
