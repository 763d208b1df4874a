"""Worker processes of a test: the real command, or another that learns by a method of the test's own."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec

from stream.config import Config
from tests.conftest import ROOT


def toml(config: Config) -> str:
    """A configuration as a file, as far as tests set it."""
    lines = []
    for name in ("kafka", "topics", "service", "learning"):
        lines.append(f"[{name}]")
        table = msgspec.to_builtins(getattr(config, name))
        lines += [f"{key} = {msgspec.json.encode(each).decode()}" for key, each in table.items() if each is not None]
    return "\n".join(lines)


@asynccontextmanager
async def worker(
    file: Path, *command: str, stderr: int = asyncio.subprocess.DEVNULL
) -> AsyncIterator[asyncio.subprocess.Process]:
    """A worker process, killed at the end as it stands.

    :param command: a module and what it gets besides the configuration; ``tracecomb run`` where there is none.
    :param stderr: as for a subprocess; thrown away where nobody reads it.
    """
    module, *rest = command or ("stream", "run", "--config")
    arguments = (*rest, str(file)) if not command else (str(file), *rest)
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", module, *arguments),
        stdout=asyncio.subprocess.DEVNULL,
        stderr=stderr,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.send_signal(signal.SIGKILL)
        await process.wait()
