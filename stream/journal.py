"""A file of lines that are only ever appended, with an index of the ids in them that is kept in step.

Where the journal ends is its owner's business: what lies beyond ``length`` was never accepted, and is cut off when a
writer opens it. The index follows the file: what it lacks is read from there, and what fails its checks is built anew
with the same bytes.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path

from stream.atomic import Disk, remove, temporary
from stream.index import IdIndex, IndexPool
from stream.lock import StoreLock
from stream.storeerrors import StoreDamaged, StoreReadOnly

Pairs = Sequence[tuple[bytes, bytes]]
"""Keys of ids (16 bytes) with the digests of their content (8 bytes)."""

_TAIL = 4096
_BLOCK = 1 << 18
_BATCH = 20_000  # ids inserted at once when an index is built


@dataclass(frozen=True)
class Access:
    """How a store's files are reached: through which system calls, with which open indexes, under which lock."""

    root: Path
    disk: Disk = field(default_factory=Disk)
    lock: StoreLock | None = None
    indexes: IndexPool = field(default_factory=IndexPool)

    def check_writer(self) -> None:
        """Refuse a write that no lock covers.

        :raises StoreReadOnly: when the store was opened for reading, or in another process.
        """
        if self.lock is None:
            raise StoreReadOnly(self.root, "it was opened for reading")
        self.lock.check()


class Journal:
    """The lines of one file up to ``length`` (bytes), and the index beside it.

    :param pairs: the ids in a line; raises ValueError for a line that is not one of ours.
    """

    __slots__ = ("_access", "_checked", "_index", "_pairs", "_path", "length")

    def __init__(self, access: Access, path: Path, index: Path, pairs: Callable[[bytes], Pairs]) -> None:
        self.length = 0
        self._access = access
        self._path = path
        self._index = index
        self._pairs = pairs
        self._checked = False  # whether this process has compared the index with its header

    def append(self, lines: bytes) -> None:
        """Write whole lines behind the end, durably; ``accept`` makes them part of the journal."""
        disk = self._access.disk
        fd = disk.open(self._path)
        try:
            disk.write(fd, lines, self.length)
            disk.sync(fd)
        finally:
            os.close(fd)

    def accept(self, lines: bytes, pairs: Pairs) -> None:
        """Take over the lines that were appended, and index their ids."""
        self.length += len(lines)
        index = self._access.indexes.get(self._index)
        if index is None or index.covered != self.length - len(lines):
            self._ready()
            return
        try:
            index.insert(pairs, self.length, _anchor(lines[lines.rfind(b"\n", 0, -1) + 1 : -1]))
        except BaseException:
            self._distrust()
            raise

    def around(self, length: int) -> tuple[bytes | None, int]:
        """The last line before ``length`` (None when there is none, or the file is shorter), and how many begin after.

        Lines after are counted to two: an append that nobody accepted leaves one at most.
        """
        if self._size() < length:
            return None, 0
        with suppress(FileNotFoundError), self._path.open("rb") as file:
            file.seek(length)
            rest, beyond = file.read(_BLOCK), 0
            while rest and beyond < 2:
                beyond += rest.count(b"\n")
                rest = file.read(_BLOCK)
            line, start = b"", length
            while start > 0 and line.count(b"\n", 0, max(len(line) - 1, 0)) == 0:
                step = min(_BLOCK, start)
                start -= step
                file.seek(start)
                line = file.read(step) + line
            if not length:
                return None, beyond
            return (line[:-1].rpartition(b"\n")[2] if line.endswith(b"\n") else b""), beyond
        return None, 0

    def cut(self, length: int) -> None:
        """Drop what lies beyond ``length``, which nobody accepted.

        :raises StoreDamaged: when the file is shorter.
        """
        self._access.check_writer()
        self._distrust()
        remove(self._access.disk, temporary(self._index))
        size = self._size()
        if size < length:
            raise StoreDamaged(self._path, f"it has {size} bytes where {length} were written")
        if size > length:
            fd = self._access.disk.open(self._path)
            try:
                self._access.disk.truncate(fd, length)
            finally:
                os.close(fd)
        self.length = length

    def catch_up(self) -> None:
        """Bring the index in step with the file, building it anew when it fails its checks."""
        if self.length:
            self._ready()

    def settle(self, torn: bool) -> None:
        """Find the end of a journal that nothing else tells where it ends, and drop what is no whole line.

        :param torn: whether a write may have been broken off: then lines from the first bad one on are its remains.
        :raises StoreDamaged: for a bad line in a journal that is not torn.
        """
        if self._access.lock is None:
            self.length = self._size()  # `lines` leaves out one that is being written
            return
        end = 0
        if (index := self._opened(self._size())) is not None:
            end = index.covered
            index.close()
        for line in self.lines(end, self._size()):
            try:
                self._pairs(line)
            except (ValueError, RecursionError) as error:
                if not torn:
                    raise StoreDamaged(self._path, f"the line at byte {end} cannot be read ({error})") from error
                break
            end += len(line) + 1
        self.cut(end)
        self.catch_up()

    def count(self) -> int:
        """How many ids there are."""
        if self._access.lock is None:
            return sum(len(self._read(line)) for line in self.lines())
        return self._ready().count if self.length else 0

    def lines(self, start: int = 0, end: int | None = None) -> Iterator[bytes]:
        """The lines between two offsets, without their ends; a last one that has none is not a line."""
        left = (self.length if end is None else end) - start
        if left <= 0:
            return
        with self._path.open("rb") as file:
            file.seek(start)
            for line in file:
                left -= len(line)
                if left < 0 or not line.endswith(b"\n"):
                    return
                yield line[:-1]

    def find(self, keys: Iterable[bytes]) -> list[bytes | None]:
        """The digest of each key that is in the journal, else None, in the order asked."""
        if self._access.lock is not None:
            return self._ready().find(keys) if self.length else [None for _ in keys]
        # A reader may neither mend the index nor rely on it while a writer changes it: it looks through the lines.
        wanted = list(keys)
        found: dict[bytes, bytes | None] = dict.fromkeys(wanted)
        for line in self.lines():
            for key, digest in self._read(line):
                if found.get(key, b"") is None:
                    found[key] = digest
        return [found[key] for key in wanted]

    def _ready(self) -> IdIndex:
        """The index, open and in step."""
        access = self._access
        access.check_writer()
        index = access.indexes.get(self._index)
        if index is None:
            index = self._opened(self.length) or IdIndex.create(access.disk, self._index)
            access.indexes.put(self._index, index)
        if index.covered != self.length:
            try:
                self._follow(index)
            except BaseException:
                self._distrust()
                raise
        self._checked = True
        return index

    def _opened(self, length: int) -> IdIndex | None:
        """The index as it is on disk, if it is right as far as it goes."""
        index = IdIndex.open(self._access.disk, self._index)
        if index is None:
            return None
        if index.covered <= length and (self._checked or (index.sound() and self._anchored(index))):
            return index
        index.close()
        return None

    def _follow(self, index: IdIndex) -> None:
        """Insert what the index lacks."""
        end, last = index.covered, b""
        batch: list[tuple[bytes, bytes]] = []
        for line in self.lines(index.covered):
            batch.extend(self._read(line))
            end, last = end + len(line) + 1, line
            if len(batch) >= _BATCH:
                index.insert(batch, end, _anchor(last))
                batch.clear()
        if end != self.length:
            raise StoreDamaged(self._path, f"its lines end at byte {end}, not at {self.length}")
        index.insert(batch, end, _anchor(last))

    def _read(self, line: bytes) -> Pairs:
        try:
            return self._pairs(line)
        except (ValueError, RecursionError) as error:
            raise StoreDamaged(self._path, f"a line cannot be read ({error})") from error

    def _anchored(self, index: IdIndex) -> bool:
        """Whether the journal's line up to which the index goes is the one the index was made from."""
        if index.covered == 0:
            return index.count == 0
        with self._path.open("rb") as file:
            start = max(0, index.covered - _TAIL - 2)
            file.seek(start)
            tail = file.read(index.covered - start)
        return tail.endswith(b"\n") and index.anchor == _anchor(tail[tail.rfind(b"\n", 0, -1) + 1 : -1])

    def _distrust(self) -> None:
        self._checked = False
        self._access.indexes.drop(self._index)

    def _size(self) -> int:
        with suppress(FileNotFoundError):
            return self._path.stat().st_size
        return 0


def _anchor(line: bytes) -> bytes:
    return blake2b(line[-_TAIL:], digest_size=16).digest()
