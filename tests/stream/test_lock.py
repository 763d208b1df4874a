"""The lock of a store, held by processes that end in every way."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from stream.atomic import Disk
from stream.lock import StoreLock
from stream.storeerrors import StoreError, StoreLocked, StoreReadOnly

HOLDER = """
import sys
from pathlib import Path
from stream.atomic import Disk
from stream.lock import StoreLock
from stream.storeerrors import StoreLocked
try:
    lock = StoreLock.acquire(Disk(), Path(sys.argv[1]))
except StoreLocked as error:
    print("locked", error.pid, flush=True)
    raise SystemExit(1)
print("held", flush=True)
"""
WAIT = HOLDER + "sys.stdin.readline(); lock.release(Disk(), clean=True)"
FORK = (
    HOLDER
    + """
import os
child = os.fork()
if child == 0:
    sys.stdin.readline()
    os._exit(0)
print(child, flush=True)
os.waitpid(child, 0)
"""
)
CHILD_USES_IT = (
    HOLDER
    + """
import os
from stream.storeerrors import StoreReadOnly
child = os.fork()
if child == 0:
    try:
        lock.check()
    except StoreReadOnly as error:
        print("refused", error, flush=True)
    lock.release(Disk(), clean=True)
    try:
        StoreLock.acquire(Disk(), Path(sys.argv[1]))
    except StoreLocked as error:
        print("parent" if error.pid == os.getppid() else "?", flush=True)
    os._exit(0)
os.waitpid(child, 0)
lock.check()
print("mine", lock.clean, flush=True)
"""
)


@contextmanager
def process(code: str, path: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that runs ``code``; it is gone in the end."""
    made = subprocess.Popen(
        [sys.executable, "-c", code, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with made:
        try:
            yield made
        finally:
            made.kill()


def line(made: subprocess.Popen[str]) -> str:
    assert made.stdout is not None
    return made.stdout.readline().strip()


def acquire(path: Path) -> StoreLock:
    return StoreLock.acquire(Disk(), path)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "lock"


def test_the_second_process_is_told_the_pid_of_the_first(path: Path) -> None:
    with process(WAIT, path) as first:
        assert line(first) == "held"
        with pytest.raises(StoreLocked) as caught:
            acquire(path)
        assert caught.value.pid == first.pid
        assert f"process {first.pid}" in str(caught.value)
        with process(WAIT, path) as third:
            assert line(third) == f"locked {first.pid}"
        assert first.stdin is not None
        first.stdin.write("\n")
        first.stdin.flush()
        assert first.wait() == 0
    lock = acquire(path)
    assert lock.clean
    lock.release(Disk(), clean=True)


def test_a_killed_holder_leaves_no_lock_but_a_trace(path: Path) -> None:
    with process(WAIT, path) as holder:
        assert line(holder) == "held"
        holder.send_signal(signal.SIGKILL)
        holder.wait()
        lock = acquire(path)
        assert not lock.clean
        lock.release(Disk(), clean=True)
    again = acquire(path)
    assert again.clean
    again.release(Disk(), clean=True)


def test_the_lock_dies_with_its_process_while_a_child_lives(path: Path) -> None:
    with process(FORK, path) as holder:
        assert line(holder) == "held"
        child = int(line(holder))
        assert child > 1
        with pytest.raises(StoreLocked) as caught:
            acquire(path)
        assert caught.value.pid == holder.pid
        holder.send_signal(signal.SIGKILL)
        holder.wait()
        lock = acquire(path)
        os.kill(child, 0)  # it lives, and ends when its standard input does
        lock.release(Disk(), clean=True)


def test_a_forked_child_has_no_share_in_the_lock(path: Path) -> None:
    with process(CHILD_USES_IT, path) as holder:
        assert line(holder) == "held"
        assert line(holder).startswith("refused")
        assert line(holder) == "parent"
        assert line(holder) == "mine True"


def test_a_second_try_in_one_process_fails_and_leaves_the_first_lock_whole(path: Path) -> None:
    lock = acquire(path)
    for _ in range(2):
        with pytest.raises(StoreLocked) as caught:
            acquire(path)
        assert caught.value.pid == os.getpid()
    with process(WAIT, path) as other:
        assert line(other) == f"locked {os.getpid()}"
    lock.release(Disk(), clean=True)
    lock.release(Disk(), clean=True)
    acquire(path).release(Disk(), clean=True)


def test_what_stands_in_the_file_locks_nobody_out(path: Path) -> None:
    path.write_text("1\nand more, " * 20)
    lock = acquire(path)
    assert path.read_text() == f"{os.getpid()}\n"
    assert not lock.clean
    lock.release(Disk(), clean=False)
    assert path.read_text() == f"{os.getpid()}\n"


def test_the_holder_counts_not_the_pid_in_the_file(path: Path) -> None:
    with process(WAIT, path) as holder:
        assert line(holder) == "held"
        path.write_text("1\n")
        with pytest.raises(StoreLocked) as caught:
            acquire(path)
        assert caught.value.pid == holder.pid


def test_where_a_lock_cannot_be_the_error_says_where(tmp_path: Path) -> None:
    (tmp_path / "lock").mkdir()
    with pytest.raises(StoreError, match="a directory stands where a file belongs"):
        acquire(tmp_path / "lock")
    with pytest.raises(StoreError, match="missing"):
        acquire(tmp_path / "missing" / "lock")


@pytest.mark.parametrize("replaced", [False, True])
def test_who_lost_the_locks_file_writes_no_more(tmp_path: Path, replaced: bool) -> None:
    path = tmp_path / "lock"
    lock = StoreLock.acquire(Disk(), path)
    lock.check()
    path.unlink()
    if replaced:
        other = StoreLock.acquire(Disk(), path)
        other.check()
    with pytest.raises(StoreReadOnly, match="lock file was removed"):
        lock.check()
    lock.release(Disk(), clean=True)
    if replaced:
        other.check()
        other.release(Disk(), clean=True)
