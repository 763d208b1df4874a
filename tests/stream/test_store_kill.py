"""A writer that ends between any two system calls: what is there then, and where a resumed run ends."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stream.store import Store
from stream.storeerrors import NotAStore, StoreRefused
from tests.stream.crashing import Crash, Script, Stopping, Unsynced, abandon, picture, spread

pytestmark = pytest.mark.timeout(600)  # many small files; slow only where disks are

SCRIPT = Script()  # its indexes grow once


def crash(root: Path, at: int | None) -> bool:
    """Run the script until it crashes at a call; whether it did."""
    disk = Stopping(at)
    try:
        store = Store.open(root, write=True, create=True, disk=disk)
    except Crash:
        return True
    try:
        SCRIPT.run(store)
        store.close()
    except Crash:
        abandon(store)
        return True
    return False


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    return SCRIPT.picture(tmp_path_factory.mktemp("undisturbed") / "store")


def check_reader(root: Path) -> dict[str, int]:
    try:
        with Store.open(root, write=False) as store:
            return SCRIPT.check(store)
    except NotAStore:
        return {}


def test_killed_at_every_call(tmp_path: Path, undisturbed: dict[str, bytes]) -> None:
    before: dict[str, int] = {}
    for at in range(10_000):
        root = tmp_path / str(at)
        if not crash(root, at):
            break
        seen = check_reader(root)
        assert all(seen.get(name, 0) - version in (0, 1) for name, version in before.items())
        before = seen
        assert not crash(root, None)
        assert picture(root) == undisturbed, at
    assert at > 150
    assert before == dict.fromkeys(SCRIPT.names, SCRIPT.versions)


@settings(deadline=None)
@given(points=st.lists(st.integers(0, 400), min_size=2, max_size=6))
def test_killed_again_and_again(
    tmp_path_factory: pytest.TempPathFactory, undisturbed: dict[str, bytes], points: list[int]
) -> None:
    root = tmp_path_factory.mktemp("again") / "store"
    before: dict[str, int] = {}
    for at in points:
        crash(root, at)
        seen = check_reader(root)
        assert all(seen[name] >= version for name, version in before.items())
        before = seen
    assert not crash(root, None)
    assert picture(root) == undisturbed


@pytest.mark.parametrize("more", [0, 1, 1000])
def test_no_space_at_every_call_then_on_in_the_same_process(
    tmp_path: Path, undisturbed: dict[str, bytes], more: int
) -> None:
    for at in range(0, 10_000, 1 if more == 0 else 7):
        root = tmp_path / str(at)
        disk = Stopping(at, errno.ENOSPC, more)
        errors: list[StoreRefused] = []
        store = None
        while True:
            try:
                store = store or Store.open(root, write=True, create=True, disk=disk)
                SCRIPT.run(store)
                store.close()
                break
            except StoreRefused as error:
                errors.append(error)
                check_reader(root)
                if len(errors) == 3:  # somebody made room
                    disk.at = None
        if not errors:
            break
        assert {error.errno for error in errors} == {errno.ENOSPC}
        assert all("free some space" in str(error) for error in errors)
        with Store.open(root, write=True) as again:
            for name in SCRIPT.names:
                again.prompt(name).find(["anything"])
        assert picture(root) == undisturbed, at
    assert at > 150


WRITER = """
import sys
from stream.store import Store
from tests.stream.crashing import Script
with Store.open(sys.argv[1], write=True, create=True) as store:
    print("open", flush=True)
    Script(versions=40).run(store, lambda: print("done", flush=True) or 0)
"""


def test_a_process_killed_thirty_times(tmp_path: Path) -> None:
    script = Script(versions=40)
    expected = script.picture(tmp_path / "undisturbed")
    root = tmp_path / "store"
    waits = spread(seed=3, most=5)
    rounds = 0
    while True:
        with subprocess.Popen([sys.executable, "-c", WRITER, str(root)], stdout=subprocess.PIPE) as writer:
            assert writer.stdout is not None
            for _ in range(1 + next(waits)):
                writer.stdout.readline()
            time.sleep(next(waits) / 4000)
            if rounds < 30:
                os.kill(writer.pid, signal.SIGKILL)
            writer.stdout.read()
            ended = writer.wait()
        if ended == 0:
            break
        assert ended == -signal.SIGKILL
        rounds += 1
        with Store.open(root, write=False) as store:
            script.check(store)
    assert rounds >= 20
    assert picture(root) == expected
    with Store.open(root, write=True, disk=Unsynced()) as store:
        assert script.check(store) == dict.fromkeys(script.names, 40)
