"""A disk that remembers what it was told and can tell what a power cut would leave of it."""

from __future__ import annotations

import os
import random
from dataclasses import dataclass, field
from pathlib import Path

from stream.atomic import Disk


@dataclass
class _File:
    """Changes of a file in order; the first ``kept`` of them are on the device."""

    changes: list[tuple[int, bytes | None]] = field(default_factory=list)  # (offset, data), or (size, None)
    kept: int = 0

    def left(self, source: random.Random) -> bytes:
        content = bytearray()
        for number, (at, data) in enumerate(self.changes):
            if number >= self.kept and source.random() < 0.5:
                continue
            end = at if data is None else at + len(data)
            content.extend(bytes(max(0, end - len(content))))
            if data is None:
                del content[at:]
            else:
                content[at:end] = data
        return bytes(content)


@dataclass
class _Directory:
    """Changes of the names in a directory in order: new name and what it means (None: gone), old name if renamed."""

    changes: list[tuple[str, _File | _Directory | None, str | None]] = field(default_factory=list)
    kept: int = 0

    def left(self, source: random.Random) -> dict[str, _File | _Directory]:
        names: dict[str, _File | _Directory] = {}
        for number, (name, meaning, old) in enumerate(self.changes):
            if number >= self.kept and source.random() < 0.5:
                continue
            if old is not None:
                names.pop(old, None)
            if meaning is None:
                names.pop(name, None)
            else:
                names[name] = meaning
        return names


class Cut(BaseException):
    """No power from here on."""


class Losing(Disk):
    """Does everything for real and keeps a second account, in which only what was synced is sure.

    :param root: what is above it exists and is safe.
    :param at: the number of the call at which the power goes.
    """

    def __init__(self, root: Path, at: int | None = None) -> None:
        self._root = _Directory()
        self._objects: dict[Path, _File | _Directory] = {root: self._root}
        self._open: dict[int, _File] = {}
        self._at = at
        self.calls = 0
        self.moments: list[int] = []  # the numbers of the calls before which a cut is worst

    def leave(self, target: Path, seed: int) -> None:
        """Write what is left into a directory: of what was not synced a part by chance, in order."""
        self._leave(self._root, target, random.Random(seed))

    def create(self, path: Path) -> int:
        self._tick()
        file = self._file(path)
        file.changes.append((0, None))
        fd = super().create(path)
        self._open[fd] = file
        return fd

    def open(self, path: Path) -> int:
        self._tick()
        file = self._file(path)
        fd = super().open(path)
        self._open[fd] = file
        return fd

    def write(self, fd: int, data: bytes, at: int) -> None:
        self._tick()
        for start in range(0, len(data), 512):  # a device keeps sectors, not writes
            self._open[fd].changes.append((at + start, data[start : start + 512]))
        super().write(fd, data, at)
        if len(data) > 512:  # the middle can be lost and the end not
            self.moments.append(self.calls)

    def truncate(self, fd: int, size: int) -> None:
        self._tick()
        self._open[fd].changes.append((size, None))
        super().truncate(fd, size)

    def sync(self, fd: int) -> None:
        self._tick()
        self._open[fd].kept = len(self._open[fd].changes)

    def sync_directory(self, path: Path) -> None:
        self._tick()
        if path in self._objects:
            directory = self._directory(path)
            directory.kept = len(directory.changes)

    def rename(self, source: Path, target: Path) -> None:
        self._tick()
        moved = self._objects.pop(source)
        self._objects[target] = moved
        self._directory(target.parent).changes.append((target.name, moved, source.name))
        super().rename(source, target)
        self.moments.append(self.calls)

    def unlink(self, path: Path) -> None:
        self._tick()
        super().unlink(path)
        del self._objects[path]
        self._directory(path.parent).changes.append((path.name, None, None))

    def mkdir(self, path: Path) -> None:
        self._tick()
        os.mkdir(path)
        self._objects[path] = made = _Directory()
        self._directory(path.parent).changes.append((path.name, made, None))

    def rmdir(self, path: Path) -> None:
        self._tick()
        super().rmdir(path)
        del self._objects[path]
        self._directory(path.parent).changes.append((path.name, None, None))

    def _tick(self) -> None:
        if self.calls == self._at:
            raise Cut
        self.calls += 1

    def _file(self, path: Path) -> _File:
        if path not in self._objects:
            self._objects[path] = made = _File()
            self._directory(path.parent).changes.append((path.name, made, None))
        file = self._objects[path]
        assert isinstance(file, _File)
        return file

    def _directory(self, path: Path) -> _Directory:
        directory = self._objects[path]
        assert isinstance(directory, _Directory)
        return directory

    def _leave(self, directory: _Directory, target: Path, source: random.Random) -> None:
        target.mkdir(exist_ok=True)
        for name, meaning in directory.left(source).items():
            if isinstance(meaning, _File):
                (target / name).write_bytes(meaning.left(source))
            else:
                self._leave(meaning, target / name, source)
