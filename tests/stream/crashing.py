"""Disks that fail on purpose, and what tests of the store share: a script of writes and a picture of its files."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path

from stream.atomic import Disk
from stream.rejects import RejectRecord
from stream.store import Store

NAMES = ("support/refunds", "Support/Refunds", "", "../../etc", "x" * 300, "a\udc80b", "crème brûlée")


class Unsynced(Disk):
    """A disk for tests that cut no power: it does not wait for the device."""

    def sync(self, fd: int) -> None:
        pass


class Crash(BaseException):
    """The process is gone."""


class Stopping(Unsynced):
    """A disk that fails at the call number ``at``; a write is half done then.

    :param error: what the call and the ``more`` calls after it raise; when None, the process ends there.
    """

    def __init__(self, at: int | None = None, error: int | None = None, more: int = 0) -> None:
        self.at = at
        self.error = error
        self.more = more
        self.calls = 0

    def stop(self) -> None:
        """Answer the call that fails."""
        if self.error is None:
            self.calls -= 1  # and so all calls after it
            raise Crash
        self.at = self.calls if self.more else None
        self.more -= 1
        raise OSError(self.error, os.strerror(self.error))

    def tick(self) -> None:
        number, self.calls = self.calls, self.calls + 1
        if number == self.at:
            self.stop()

    def create(self, path: Path) -> int:
        self.tick()
        return super().create(path)

    def open(self, path: Path) -> int:
        self.tick()
        return super().open(path)

    def write(self, fd: int, data: bytes, at: int) -> None:
        if self.calls == self.at:
            super().write(fd, data[: len(data) // 2], at)
        self.tick()
        super().write(fd, data, at)

    def truncate(self, fd: int, size: int) -> None:
        self.tick()
        super().truncate(fd, size)

    def sync(self, fd: int) -> None:
        self.tick()

    def rename(self, source: Path, target: Path) -> None:
        self.tick()
        super().rename(source, target)

    def unlink(self, path: Path) -> None:
        self.tick()
        super().unlink(path)

    def mkdir(self, path: Path) -> None:
        self.tick()
        super().mkdir(path)

    def rmdir(self, path: Path) -> None:
        self.tick()
        super().rmdir(path)


class Untouchable(Disk):
    """A disk that nobody may change: a reader opens no file for writing."""

    def create(self, path: Path) -> int:
        raise AssertionError(f"a reader makes {path}")

    def open(self, path: Path) -> int:
        raise AssertionError(f"a reader opens {path} for writing")


@dataclass
class Commit:
    """One version of a prompt, with ids that nobody else has unless ``again`` says so."""

    name: str
    version: int
    traces: list[tuple[str, bytes]]

    @property
    def update(self) -> bytes:
        return json.dumps({"version": self.version}).encode()

    @property
    def state(self) -> bytes:
        return json.dumps({"state": self.version, "pad": "é" * 40}).encode()

    @property
    def entry(self) -> bytes:
        pairs = [[id, digest.hex()] for id, digest in self.traces]
        return json.dumps({"version": self.version, "traces": pairs}).encode()

    def write(self, store: Store) -> None:
        """Make the version unless it is there."""
        prompt = store.prompt(self.name)
        if prompt.version < self.version:
            prompt.commit(self.version, self.update, self.entry, self.state, self.traces)


def digest(text: str) -> bytes:
    """8 bytes of content hash."""
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()


def traces(prefix: str, count: int) -> list[tuple[str, bytes]]:
    """Traces with ids of their own."""
    return [(f"{prefix}-{number}", digest(f"{prefix}{number}")) for number in range(count)]


def reject(number: int) -> RejectRecord:
    """One of many different bad lines."""
    raw = f"{{bad {number} é".encode() + (b"\xff" if number % 3 == 0 else b"")
    return RejectRecord(file=f"logs/a\udcff{number % 2}.jsonl", line=number, reason="no JSON: \ud800", raw=raw)


@dataclass
class Script:
    """A run as a replay makes it: versions, rejects and checkpoints, resumed from the checkpoint.

    ``promised`` collects, when given, what was durable after how many calls of the disk.
    """

    names: tuple[str, ...] = NAMES[:3]
    versions: int = 2
    size: int = 20
    promised: list[tuple[int, str, int]] = field(default_factory=list)

    def commits(self) -> list[Commit]:
        """All versions, the prompts taking turns; from the second on each has one trace that is known."""
        made = []
        for version in range(1, self.versions + 1):
            for name in self.names:
                own = traces(f"{name[:9]}{version}", self.size)
                known = [(f"{name[:9]}1-0", b"otherone")] if version > 1 else []
                made.append(Commit(name, version, own + known))
        return made

    def run(self, store: Store, calls: Callable[[], int] = lambda: 0) -> None:
        """Do what the checkpoint says is left to do."""
        done = int(store.checkpoint() or 0)
        for number, commit in enumerate(self.commits()):
            if number < done:
                continue
            store.rejects.add(reject(2 * number))
            store.rejects.add(reject(2 * number + 1))
            commit.write(store)
            self.promised.append((calls(), commit.name, commit.version))
            if number % 2:
                store.write_checkpoint(b"%d" % (number + 1))
                self.promised.append((calls(), "checkpoint", number + 1))
        for name in self.names:
            store.prompt(name).find(["anything"])

    def picture(self, root: Path) -> dict[str, bytes]:
        """What an undisturbed run leaves in ``root``."""
        with Store.open(root, write=True, create=True, disk=Unsynced()) as store:
            self.run(store)
        return picture(root)

    def check(self, store: Store) -> dict[str, int]:
        """Compare every prompt, in a store open in any way, with what was written; their versions."""
        made = {(commit.name, commit.version): commit for commit in self.commits()}
        versions = {}
        for name in store.prompts():
            prompt = store.prompt(name)
            versions[name] = prompt.version
            newest = made[name, prompt.version]
            assert prompt.state() == newest.state
            assert list(prompt.entries()) == [made[name, v].entry for v in range(1, prompt.version + 1)]
            for version in range(1, prompt.version + 1):
                known = made[name, version]
                assert prompt.update(version) == known.update
                ids = [id for id, _ in known.traces[: self.size]]
                assert prompt.find(ids) == [found for _, found in known.traces[: self.size]]
            assert prompt.find([f"{name[:9]}1-0", "never seen"]) == [made[name, 1].traces[0][1], None]
        return versions


def abandon(store: Store) -> None:
    """Let go of a store as the death of its process does."""
    store._access.indexes.close()
    if store._access.lock is not None:
        store._access.lock.release(Disk(), clean=False)


def picture(root: Path) -> dict[str, bytes]:
    """Every file below a store but those that differ between equal runs, and every directory."""
    found = {}
    for path in sorted(root.rglob("*")):
        name = str(path.relative_to(root))
        if name not in ("lock", "store.json"):
            found[name] = b"" if path.is_dir() else path.read_bytes()
    return found


def spread(seed: int, most: int) -> Iterator[int]:
    """Endless whole numbers from 0 to ``most``."""
    source = random.Random(seed)
    while True:
        yield source.randint(0, most)
