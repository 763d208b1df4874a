"""Writing so that a kill or a power cut leaves the old file or the new one, never a part.

``Disk`` holds the few system calls with which the store changes anything, so that a test can stop between any two.
"""

from __future__ import annotations

import errno
import fcntl
import os
from contextlib import suppress
from pathlib import Path

TEMPORARY = ".tmp"
"""Ends the names of files that are being written; what bears it after a kill was never part of the store."""

# What network file systems answer that cannot sync a directory; there is nothing more that one could do on them.
_NO_SUCH_SYNC = {errno.EINVAL, errno.ENOTSUP}


class Disk:
    """The system calls that change a store, one method each."""

    def create(self, path: Path) -> int:
        """Open ``path`` for reading and writing, empty; a descriptor."""
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o666)

    def open(self, path: Path) -> int:
        """Open ``path`` for reading and writing, as it is or empty; a descriptor."""
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)

    def write(self, fd: int, data: bytes, at: int) -> None:
        """Write all of ``data`` from byte ``at`` on."""
        done = os.pwrite(fd, data, at)
        if done < len(data):
            view = memoryview(data)
            while done < len(data):
                done += os.pwrite(fd, view[done:], at + done)

    def truncate(self, fd: int, size: int) -> None:
        """Make a file ``size`` bytes long."""
        os.ftruncate(fd, size)

    def sync(self, fd: int) -> None:
        """Return when a file's content is on the device."""
        if (full := getattr(fcntl, "F_FULLFSYNC", None)) is not None:  # macOS: fsync leaves data in the drive's cache
            with suppress(OSError):
                fcntl.fcntl(fd, full)
                return
        os.fsync(fd)

    def sync_directory(self, path: Path) -> None:
        """Return when the names in a directory are on the device."""
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            self.sync(fd)
        except OSError as error:
            if error.errno not in _NO_SUCH_SYNC:
                raise
        finally:
            os.close(fd)

    def rename(self, source: Path, target: Path) -> None:
        """Give a file another name, over the file that has it."""
        os.replace(source, target)

    def unlink(self, path: Path) -> None:
        """Remove a file."""
        os.unlink(path)

    def mkdir(self, path: Path) -> None:
        """Make a directory."""
        os.mkdir(path)

    def rmdir(self, path: Path) -> None:
        """Remove an empty directory."""
        os.rmdir(path)


def temporary(path: Path) -> Path:
    """Where the next content of ``path`` is written before it takes the name."""
    return path.with_name(path.name + TEMPORARY)


def replace(disk: Disk, path: Path, data: bytes) -> None:
    """Make ``data`` the whole content of ``path``, durably: at any instant the file is the old one or the new one."""
    draft = temporary(path)
    fd = disk.create(draft)
    try:
        disk.write(fd, data, 0)
        disk.sync(fd)
    finally:
        os.close(fd)
    disk.rename(draft, path)
    disk.sync_directory(path.parent)


def make_directories(disk: Disk, path: Path) -> None:
    """Make a directory and those above it that are missing, durably; one that is there is left alone."""
    if path.is_dir():
        return
    if path.parent != path:
        make_directories(disk, path.parent)
    with suppress(FileExistsError):
        disk.mkdir(path)
    disk.sync_directory(path.parent)


def remove(disk: Disk, path: Path) -> None:
    """Remove a file if it is there."""
    with suppress(FileNotFoundError):
        disk.unlink(path)
