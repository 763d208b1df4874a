"""A real Kafka broker of one node, as a child of this process."""

from __future__ import annotations

import base64
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType

import anyio
import anyio.to_thread
from anyio import CancelScope

from stream.kafka.broker import leash
from stream.kafka.broker.answers import answers
from stream.kafka.broker.errors import NotStarted
from stream.kafka.broker.jars import LOG_CONFIGURATION, jars, java
from stream.kafka.broker.ports import free_ports, is_free
from stream.kafka.broker.properties import HOST, properties

START_TIMEOUT = 120.0
STOP_TIMEOUT = 30.0
_POLL = 0.05
_TAIL = 30
_TRIES = 3
_HEAP = "-Xmx512m"


class Broker:
    """A broker and its controller in one process on 127.0.0.1, for tests and for trying out.

    As a context manager it is ready inside and gone after. It ends with this process, also when that is killed. Not
    bound to an event loop: it may be started in one and stopped in another.

    :param port: where it listens; any free one when 0.
    :param data: a directory to keep logs, configuration and data in, and to go on from; without it they are in a
        temporary one that goes with the broker.
    :param settings: more of Kafka's own settings, as in ``server.properties``.
    """

    def __init__(
        self, *, port: int = 0, data: str | Path | None = None, settings: Mapping[str, str] | None = None
    ) -> None:
        self._wanted = port
        self._ports: list[int] = []
        self._settings = dict(settings or {})
        self._kept = None if data is None else Path(data).absolute()
        self._folder: Path | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._leash: subprocess.Popen[bytes] | None = None

    @property
    def bootstrap(self) -> str:
        """Its address, as ``127.0.0.1:9092``."""
        return f"{HOST}:{self._ports[0]}"

    @property
    def folder(self) -> Path:
        """The directory with its configuration, its log and its data."""
        assert self._folder is not None, "not started"
        return self._folder

    @property
    def log(self) -> Path:
        """The file that it logs to, across restarts."""
        return self.folder / "kafka.log"

    @property
    def pid(self) -> int:
        """The number of its process."""
        assert self._process is not None, "not running"
        return self._process.pid

    @property
    def running(self) -> bool:
        """Whether its process is there, frozen or not."""
        return self._process is not None and self._process.poll() is None

    async def start(self) -> None:
        """Return when it answers.

        :raises Missing: when Java, or what else it is made of, is not there.
        :raises NotStarted: when it ended, or did not answer within two minutes.
        """
        if self.running:
            return
        command, classes = java(), await anyio.to_thread.run_sync(jars)
        if self._folder is None:
            self._folder = self._make_folder()
        base = [command, _HEAP, "-cp", f"{classes}/*", f"-Dlog4j2.configurationFile={LOG_CONFIGURATION}"]
        try:
            if self._ports:
                await self._run(base)
            else:
                await self._first_run(base)
        except BaseException:
            with CancelScope(shield=True):
                await self.stop()
            raise

    async def stop(self) -> None:
        """End it as an operator would, and kill it where that takes over half a minute; remove what is temporary."""
        try:
            await self._halt()
        finally:
            if self._kept is None and self._folder is not None:
                shutil.rmtree(self._folder, ignore_errors=True)
                self._folder = None

    async def restart(self) -> None:
        """Stop it if it runs, and start it again on the same ports and data, also after :meth:`kill`."""
        await self._halt()
        await self.start()

    def kill(self) -> None:
        """End it as a power cut would (SIGKILL); its data stays for :meth:`restart`."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        self._release()

    def freeze(self) -> None:
        """Stop its process where it is (SIGSTOP): connections stay open, and nothing is answered."""
        os.kill(self.pid, signal.SIGSTOP)

    def thaw(self) -> None:
        """Let a frozen one go on (SIGCONT)."""
        os.kill(self.pid, signal.SIGCONT)

    async def __aenter__(self) -> Broker:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with CancelScope(shield=True):
            await self.stop()

    def _make_folder(self) -> Path:
        if self._kept is None:
            return Path(tempfile.mkdtemp(prefix="tracecomb-kafka-"))
        self._kept.mkdir(parents=True, exist_ok=True)
        return self._kept

    async def _first_run(self, base: list[str]) -> None:
        """Start it on ports that were free a moment ago, and on others where somebody was quicker."""
        for attempt in range(1, _TRIES + 1):
            if self._wanted and not is_free(self._wanted):
                raise NotStarted(f"port {self._wanted} of {HOST} is in use; end what listens there, or take another")
            free = free_ports(2, random.SystemRandom())
            self._ports = [self._wanted or free[0], free[1]]
            try:
                await self._run(base)
            except NotStarted:
                if attempt == _TRIES or not self._lost_a_port():
                    raise
            else:
                return

    def _lost_a_port(self) -> bool:
        return "Address already in use" in self.log.read_text(errors="replace")

    async def _run(self, base: list[str]) -> None:
        data, configuration = self.folder / "data", self.folder / "server.properties"
        configuration.write_text(properties(data, self._ports[0], self._ports[1], self._settings))
        if not (data / "meta.properties").exists():
            await self._format([*base, "kafka.tools.StorageTool", "format"], configuration)
        self._spawn([*base, "kafka.Kafka", str(configuration)])
        deadline = time.monotonic() + START_TIMEOUT
        while not await answers(self.bootstrap):
            assert self._process is not None
            if (code := self._process.poll()) is not None:
                raise NotStarted(f"the broker ended with exit code {code} before it was ready\n{self.tail()}")
            if time.monotonic() > deadline:
                raise NotStarted(f"the broker did not answer within {START_TIMEOUT:.0f} s\n{self.tail()}")
            await anyio.sleep(_POLL)

    async def _format(self, command: list[str], configuration: Path) -> None:
        cluster = base64.urlsafe_b64encode(uuid.uuid4().bytes).rstrip(b"=").decode()
        # One argument, as an id may begin with a dash.
        self._spawn([*command, f"--cluster-id={cluster}", f"--config={configuration}"])
        assert self._process is not None
        code = await self._ended(self._process, START_TIMEOUT)
        if code is None:
            raise NotStarted(f"formatting the storage took over {START_TIMEOUT:.0f} s\n{self.tail()}")
        if code:
            raise NotStarted(f"formatting the storage failed with exit code {code}\n{self.tail()}")

    def _spawn(self, command: list[str]) -> None:
        """Run Java in a session of its own: Ctrl-C on the terminal is for this process, which then stops it."""
        self._release()
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.folder, start_new_session=True
            )
        remove = [] if self._kept else [str(self.folder)]
        self._leash = subprocess.Popen(
            [sys.executable, "-I", "-S", leash.__file__, str(self._process.pid), *remove],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    async def _halt(self) -> None:
        process = self._process
        if process is not None and process.poll() is None:
            process.send_signal(signal.SIGCONT)
            process.terminate()
            await self._ended(process, STOP_TIMEOUT)
        self.kill()

    async def _ended(self, process: subprocess.Popen[bytes], timeout: float) -> int | None:
        """Wait for the end of a process; its exit code, or None when it took over ``timeout`` seconds."""
        deadline = time.monotonic() + timeout
        while (code := process.poll()) is None and time.monotonic() < deadline:
            await anyio.sleep(_POLL)
        return code

    def _release(self) -> None:
        """Let go of a process that has ended."""
        if self._leash is not None:
            self._leash.kill()
            self._leash.wait()
            assert self._leash.stdin is not None
            self._leash.stdin.close()
        self._leash = self._process = None

    def tail(self) -> str:
        lines = self.log.read_text(errors="replace").splitlines()
        text = "\n".join(lines[-_TAIL:])
        if "UnsupportedClassVersionError" in text:
            return f"Kafka's server needs Java 17 or newer; `java -version` tells which one there is\n{text}"
        return f"the end of its log:\n{text}"
