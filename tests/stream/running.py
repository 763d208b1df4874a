"""Running the command, for tests: inside this process, where that is quicker, or as a process of its own."""

from __future__ import annotations

import io
import json
import logging
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import structlog

from stream.atomic import Disk
from stream.cli import main
from tests.conftest import ROOT

PYTHON = [sys.executable, "-m", "stream"]


class Ran(NamedTuple):
    """How a command ended, with what it wrote."""

    code: int
    out: bytes
    err: str

    @property
    def text(self) -> str:
        return self.out.decode()

    @property
    def json(self) -> Any:
        """The object in the last line of stdout."""
        return json.loads(self.text.splitlines()[-1])

    def succeeded(self) -> Ran:
        """Itself, if the exit code is 0."""
        assert self.code == 0, self
        return self

    def failed(self, code: int) -> str:
        """The one line of the error, if that is all there is and the exit code is this."""
        assert self.code == code, self
        lines = [line for line in self.err.splitlines() if not line.startswith("{")]
        assert len(lines) == 1, self
        assert self.out == b"", self
        return lines[0]


class Terminal(io.TextIOWrapper):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def tracecomb(*arguments: str | Path, stdin: bytes = b"", terminal: bool = False) -> Ran:
    """Run a command in this process, without waiting for the device.

    :param terminal: stdout is a terminal.
    """
    before = sys.stdin, sys.stdout, sys.stderr
    out, err = io.BytesIO(), io.StringIO()
    sys.stdin = io.TextIOWrapper(io.BytesIO(stdin), "utf-8")
    sys.stdout = (Terminal if terminal else io.TextIOWrapper)(out, "utf-8", write_through=True)
    sys.stderr = err
    try:
        with logs_as_before(), patch.object(Disk, "sync", lambda disk, fd: None):
            code = main([str(each) for each in arguments])
        return Ran(code, out.getvalue(), err.getvalue())
    finally:
        sys.stdout.detach()
        sys.stdin.close()
        sys.stdin, sys.stdout, sys.stderr = before


@contextmanager
def logs_as_before() -> Iterator[None]:
    """Undo what a command sets about logs for the whole process."""
    root = logging.getLogger()
    level, handlers, settings = root.level, list(root.handlers), structlog.get_config()
    root.handlers = []
    try:
        yield
    finally:
        structlog.configure(**settings)
        logging.captureWarnings(False)
        root.handlers = handlers
        root.setLevel(level)


def environment(more: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment for a process of the command, which is that of a checkout and of no store."""
    kept = {name: value for name, value in os.environ.items() if name not in ("TRACECOMB_AT", "PYTHONUNBUFFERED")}
    return {**kept, "PYTHONPATH": str(ROOT), **(more or {})}


def process(
    *arguments: str | bytes | Path, cwd: Path, stdin: bytes = b"", more: Mapping[str, str] | None = None
) -> Ran:
    """Run a command as a process, with ``more`` in its environment."""
    ended = subprocess.run(
        [*PYTHON, *arguments], cwd=cwd, env=environment(more), input=stdin, capture_output=True, check=False
    )
    return Ran(ended.returncode, ended.stdout, ended.stderr.decode())


def shell(line: str, cwd: Path) -> Ran:
    """Run a line of bash in which ``tracecomb`` is the command; the code is that of the pipeline's first part."""
    script = f'tracecomb() {{ {shlex.join(PYTHON)} "$@"; }}\n{line}\nexit ${{PIPESTATUS[0]}}'
    ended = subprocess.run(["bash", "-c", script], cwd=cwd, env=environment(), capture_output=True, check=False)
    return Ran(ended.returncode, ended.stdout, ended.stderr.decode())


def start(*arguments: str | Path, cwd: Path, **options: Any) -> subprocess.Popen[bytes]:
    """Start a command that reads what is written to its stdin."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
    return subprocess.Popen([*PYTHON, *arguments], cwd=cwd, env=environment(), **pipes)


def wait_for(what: Callable[[], object]) -> None:
    """Wait until something is so; the test's time limit ends the waiting."""
    while not what():
        time.sleep(0.02)
