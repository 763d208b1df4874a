"""A store against a dictionary, through every order of writes, crashes, refusals, damage and reopening."""

from __future__ import annotations

import errno
import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from stream.rejects import RejectRecord
from stream.store import Store
from stream.storeerrors import StoreRefused
from tests.stream.crashing import NAMES, Commit, Crash, Stopping, Unsynced, abandon, picture, reject, traces

pytestmark = pytest.mark.timeout(600)  # many small files; slow only where disks are

names = st.sampled_from(NAMES)


class StoreMachine(RuleBasedStateMachine):
    """``commits`` is what must be there: the versions of each prompt, oldest first."""

    def __init__(self) -> None:
        super().__init__()
        self.place = Path(tempfile.mkdtemp(prefix="store-machine-"))
        self.root = self.place / "store"
        self.disk = Stopping()
        self.store: Store | None = None
        self.commits: dict[str, list[Commit]] = {}
        self.rejects: list[RejectRecord] = []  # in the order they must have in the file
        self.sure = 0  # so many of them are flushed
        self.checkpoint: bytes | None = None
        self.made = 0
        self.touched: set[str] = set()

    def teardown(self) -> None:
        if self.store is not None:
            self.store.close()
            Store.open(self.root, write=True, disk=Unsynced()).close()  # mends what a refusal left
            self.check_bytes()
        shutil.rmtree(self.place)

    @initialize()
    def start(self) -> None:
        self.reopen(None)

    def reopen(self, at: int | None) -> None:
        self.disk = Stopping(at)
        self.store = Store.open(self.root, write=True, create=True, disk=self.disk)

    def next_commit(self, name: str, count: int, known: int) -> Commit:
        """A version with new traces, and some that are known with another digest."""
        self.made += 1
        self.touched.add(name)
        before = [id for commit in self.commits.get(name, []) for id, _ in commit.traces][:known]
        own = traces(f"{self.made}", count)
        return Commit(name, len(self.commits.get(name, [])) + 1, own + [(id, b"another!") for id in before])

    def opened(self) -> Store:
        assert self.store is not None
        return self.store

    @rule(name=names, count=st.integers(0, 40), known=st.integers(0, 3))
    def commit(self, name: str, count: int, known: int) -> None:
        made = self.next_commit(name, count, known)
        made.write(self.opened())
        self.commits.setdefault(name, []).append(made)

    @rule(name=names, count=st.integers(0, 40), after=st.integers(0, 30), again=st.integers(0, 30))
    def crash_in_a_commit_and_perhaps_in_mending(self, name: str, count: int, after: int, again: int) -> None:
        made = self.next_commit(name, count, 1)
        self.disk.at, self.disk.error = self.disk.calls + after, None
        try:
            made.write(self.opened())
            returned = True
        except Crash:
            returned = False
        abandon(self.opened())
        self.rejects = self.rejects[: self.sure]
        try:
            self.reopen(again)
            abandon(self.opened())
        except Crash:
            pass
        self.reopen(None)
        version = self.opened().prompt(name).version
        assert version == made.version or (version == made.version - 1 and not returned)
        if version == made.version:
            self.commits.setdefault(name, []).append(made)

    @rule(name=names, count=st.integers(0, 40), after=st.integers(0, 30), more=st.integers(0, 3))
    def refuse_in_a_commit(self, name: str, count: int, after: int, more: int) -> None:
        made = self.next_commit(name, count, 1)
        self.disk.at, self.disk.error, self.disk.more = self.disk.calls + after, errno.ENOSPC, more
        try:
            made.write(self.opened())
            returned = True
        except StoreRefused:
            returned = False
        self.disk.at = None
        version = self.opened().prompt(name).version
        assert version == made.version or (version == made.version - 1 and not returned)
        if version == made.version:
            self.commits.setdefault(name, []).append(made)

    @rule()
    def close_and_open(self) -> None:
        self.opened().close()
        self.sure = len(self.rejects)
        self.reopen(None)
        self.touched |= self.commits.keys()

    @rule(number=st.integers(0, 20))
    def add_reject(self, number: int) -> None:
        record = reject(number)
        assert self.opened().rejects.add(record) == (record not in self.rejects)
        if record not in self.rejects:
            self.rejects.append(record)

    @rule(data=st.binary(max_size=20))
    def write_checkpoint(self, data: bytes) -> None:
        self.opened().write_checkpoint(data)
        self.checkpoint = data
        self.sure = len(self.rejects)

    @precondition(lambda self: self.commits)
    @rule(data=st.data(), at=st.floats(0, 1, exclude_max=True), how=st.sampled_from(["flip", "cut", "remove"]))
    def damage_an_index(self, data: st.DataObject, at: float, how: str) -> None:
        paths = sorted(self.root.glob("prompts/*/ids.idx"))
        path = data.draw(st.sampled_from(paths))
        self.opened().close()
        self.sure = len(self.rejects)
        content = bytearray(path.read_bytes())
        where = int(at * len(content))
        if how == "remove":
            path.unlink()
        elif how == "cut":
            path.write_bytes(content[:where])
        elif not 80 <= where < 96:
            content[where] ^= 16
            path.write_bytes(content)
        self.reopen(None)
        self.touched |= self.commits.keys()

    @invariant()
    def all_is_there(self) -> None:
        if self.store is None:
            return
        with Store.open(self.root, write=False) as reader:
            for store in (self.store, reader):
                assert store.prompts() == sorted(self.commits)
                assert store.checkpoint() == self.checkpoint
                for name in self.touched & self.commits.keys():
                    self.check_prompt(store, name, self.commits[name])
        self.touched.clear()
        assert self.store.rejects.count == len(self.rejects)

    def check_prompt(self, store: Store, name: str, commits: list[Commit]) -> None:
        prompt = store.prompt(name)
        assert prompt.version == len(commits)
        assert prompt.state() == commits[-1].state
        assert list(prompt.entries()) == [commit.entry for commit in commits]
        assert prompt.update(len(commits)) == commits[-1].update
        known: dict[str, bytes] = {}
        for commit in commits:
            for id, digest in commit.traces:
                known.setdefault(id, digest)
        assert prompt.find(["nobody", *known]) == [None, *known.values()]

    def check_bytes(self) -> None:
        """The store has the bytes of one in which nothing went wrong."""
        with Store.open(self.place / "undisturbed", write=True, create=True, disk=Unsynced()) as store:
            for record in self.rejects:
                store.rejects.add(record)
            for commits in self.commits.values():
                for commit in commits:
                    commit.write(store)
            if self.checkpoint is not None:
                store.write_checkpoint(self.checkpoint)
        assert picture(self.root) == picture(self.place / "undisturbed")
        shutil.rmtree(self.place / "undisturbed")


TestStoreMachine = StoreMachine.TestCase
TestStoreMachine.settings = settings(stateful_step_count=20)
