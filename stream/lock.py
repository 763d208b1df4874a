"""One writer at a time: a lock that names its holder, dies with it, and remembers whether it ended well.

A POSIX record lock belongs to a process: children do not inherit it, and the system drops it with the process, however
that ends. The price is that closing *any* descriptor of the file drops it too, so a process must never open a lock file
that it holds; ``_held`` sees to that.
"""

from __future__ import annotations

import fcntl
import os
import struct
import sys
import threading
from pathlib import Path

from stream.atomic import Disk
from stream.storeerrors import StoreLocked, StoreReadOnly, refusals

_guard = threading.Lock()
_held: dict[tuple[int, int], int] = {}  # (device, inode) of each lock file to the process that holds it

# struct flock, up to the pid, where it is known; elsewhere the pid is what the holder wrote into the file.
_FLOCK = {"linux": "hhqqi", "darwin": "qqihh"}.get(sys.platform)
_TRIES = 10


class StoreLock:
    """The right to write to a store, held from ``acquire`` to ``release``.

    ``clean`` tells whether the holder before ended by a clean ``release`` (or there was none): if not, it may have been
    stopped between any two system calls, and the store has to be looked through.
    """

    def __init__(self, path: Path, fd: int, clean: bool) -> None:
        self.clean = clean
        self._path = path
        self._fd = fd
        self._pid = os.getpid()
        self._inode = _inode(os.fstat(fd))

    @classmethod
    def acquire(cls, disk: Disk, path: Path) -> StoreLock:
        """Take the lock, at once or not at all.

        :raises StoreLocked: when another process holds it, or another place in this one.
        """
        with refusals(path), _guard:
            if path.exists() and _held.get(_inode(os.stat(path))) == os.getpid():
                raise StoreLocked(path.parent, os.getpid())
            fd = disk.open(path)
            try:
                _lock(path, fd)
                clean = not os.pread(fd, 1, 0)
                # Not clean from here on. Synced, so that a power cut cannot make an interrupted run look like none.
                disk.write(fd, f"{os.getpid()}\n".encode(), 0)
                disk.truncate(fd, len(f"{os.getpid()}\n"))
                disk.sync(fd)
            except BaseException:
                os.close(fd)
                raise
            _held[_inode(os.fstat(fd))] = os.getpid()
            return cls(path, fd, clean)

    def check(self) -> None:
        """Refuse to go on in a forked child, which has the store's memory but not its lock, or without a lock file.

        :raises StoreReadOnly: when this process is not the one that took the lock, or somebody removed the lock's file
            and another process may have taken the one that stands there now.
        """
        if os.getpid() != self._pid:
            raise StoreReadOnly(self._path.parent, f"process {self._pid} holds its lock; a child must open it itself")
        try:
            found = _inode(os.stat(self._path))
        except OSError:
            found = None
        if found != self._inode:
            raise StoreReadOnly(self._path.parent, "its lock file was removed, so another process may be writing to it")

    def release(self, disk: Disk, clean: bool) -> None:
        """Give the lock back; ``clean`` when the store needs no looking through. A second time does nothing."""
        if self._fd < 0:
            return
        fd, self._fd = self._fd, -1
        with refusals(self._path), _guard:
            try:
                if clean and os.getpid() == self._pid:
                    disk.truncate(fd, 0)
            finally:
                if os.getpid() == self._pid:
                    _held.pop(_inode(os.fstat(fd)), None)
                os.close(fd)


def _lock(path: Path, fd: int) -> None:
    for _ in range(_TRIES):
        try:
            fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (BlockingIOError, PermissionError):  # EAGAIN or EACCES, as the system likes
            pid = _holder(fd)
            if pid != 0:
                raise StoreLocked(path.parent, pid) from None
        else:
            return
    raise StoreLocked(path.parent, None)


def _holder(fd: int) -> int | None:
    """The process that holds the lock; 0 when it has just let go, None when nobody can tell."""
    if _FLOCK is not None:
        asked = {"type": fcntl.F_WRLCK, "whence": os.SEEK_SET, "start": 0, "length": 0, "pid": 0}
        order = ("type", "whence", "start", "length", "pid")
        if sys.platform == "darwin":
            order = ("start", "length", "pid", "type", "whence")
        packed = struct.pack(_FLOCK, *(asked[field] for field in order))
        answer = dict(zip(order, struct.unpack(_FLOCK, fcntl.fcntl(fd, fcntl.F_GETLK, packed)), strict=True))
        if answer["type"] == fcntl.F_UNLCK:
            return 0
        if answer["pid"] > 0:  # else it lives in another container or on another machine
            return int(answer["pid"])
    text = os.pread(fd, 32, 0).strip()
    return int(text) if text.isdigit() else None


def _inode(stat: os.stat_result) -> tuple[int, int]:
    return stat.st_dev, stat.st_ino
