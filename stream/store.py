"""A prompt store: a directory that holds what was learned, safe against a kill or a power cut at any instant.

    store.json        what makes the directory a store: schema and lineage; written last when a store is made
    lock              held by the one writer there may be (see lock.py); it names the writer's process
    prompts/NAME/     a directory a prompt (see promptstore.py, names.py)
    rejects.jsonl     lines that were no traces (see rejects.py), rejects.idx beside it
    checkpoint.json   how far the writer has come, as it says itself

Reading needs no lock and no right to write, and sees each prompt as of one version while a writer goes on.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec

from stream.atomic import TEMPORARY, Disk, make_directories, remove, replace, temporary
from stream.journal import Access
from stream.lock import StoreLock
from stream.names import canonical, directory_name, is_shortened, prompt_name
from stream.promptstore import PromptStore
from stream.rejects import Rejects
from stream.statefile import STATE, saved_name
from stream.storeerrors import NotAStore, StoreDamaged, StoreError, StoreTooNew, UnknownPrompt, refusals

SCHEMA = 1
_KIND = "tracecomb prompt store"
_STORE = "store.json"
_PROMPTS = "prompts"
_CHECKPOINT = "checkpoint.json"
_LOCK = "lock"


class _Identity(msgspec.Struct):
    kind: str
    schema: int
    lineage: str = ""


class Store:
    """An open store; a context manager. One thread uses it at a time."""

    def __init__(self, access: Access, lineage: str) -> None:
        self.path = access.root
        self.lineage = lineage
        self._access = access
        self._prompts: dict[str, PromptStore] = {}
        torn = access.lock is not None and not access.lock.clean
        if torn:
            self._look_through()
        self.rejects = Rejects(access, torn)

    @classmethod
    def open(cls, path: str | Path, *, write: bool, create: bool = False, disk: Disk | None = None) -> Store:
        """Open the store in a directory.

        After a writer that was killed, opening for writing looks through all prompts and mends what it left.

        :param write: take the lock; without it the store is only read.
        :param create: with ``write``, make the store if the directory is missing or empty.
        :raises NotAStore: when there is none, or something else.
        :raises StoreLocked: when another process writes to it.
        :raises StoreTooNew: when a newer tracecomb made it.
        """
        root = Path(path).absolute()
        disk = disk or Disk()
        with refusals(root):
            identity = _identity(root)
            if not write:
                if identity is None:
                    raise NotAStore(root, _what_is(root))
                return cls(Access(root, disk), identity.lineage)
            if identity is None:
                _check_makeable(root, create)
                make_directories(disk, root)
            lock = StoreLock.acquire(disk, root / _LOCK)
            access = Access(root, disk, lock)
            try:
                identity = _identity(root) or _make(disk, root)
                remove(disk, temporary(root / _CHECKPOINT))
                return cls(access, identity.lineage)
            except BaseException:
                access.indexes.close()
                lock.release(disk, clean=False)
                raise

    def prompts(self) -> list[str]:
        """The names of all prompts that have a version, sorted."""
        with refusals(self.path):
            names = (self._name_of(directory) for directory in self._directories())
            return sorted(name for name in names if name is not None)

    def prompt(self, name: str) -> PromptStore:
        """A prompt; in a store open for writing also one that has no version yet.

        :raises UnknownPrompt: when the store is open for reading and the prompt has no version.
        """
        known = self._prompts.get(name)
        if known is not None:
            return known
        name = canonical(name)
        directory = self.path / _PROMPTS / directory_name(name)
        if self._access.lock is None:
            prompt = PromptStore(self._access, name, directory)
            if prompt.version == 0:
                raise UnknownPrompt(self.path, name)
            return prompt
        if name not in self._prompts:
            self._prompts[name] = PromptStore(self._access, name, directory)
        return self._prompts[name]

    def checkpoint(self) -> bytes | None:
        """The checkpoint that was written last; None when there is none."""
        with refusals(self.path), suppress(FileNotFoundError):
            return (self.path / _CHECKPOINT).read_bytes()
        return None

    def write_checkpoint(self, data: bytes) -> None:
        """Replace the checkpoint, durably. Rejects are flushed first: a checkpoint must not be ahead of them."""
        self._access.check_writer()
        self.rejects.flush()
        with refusals(self.path):
            replace(self._access.disk, self.path / _CHECKPOINT, data)

    def close(self) -> None:
        """Flush the rejects and give the lock back."""
        lock = self._access.lock
        try:
            if lock is not None:
                self.rejects.flush()
        finally:
            self._access.indexes.close()
            if lock is not None:
                settled = self.rejects.settled and all(prompt.settled for prompt in self._prompts.values())
                lock.release(self._access.disk, clean=settled)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self.close()
            return
        with suppress(StoreError):  # the error under way is the one to tell
            self.close()

    def _directories(self) -> Iterator[Path]:
        """The directories of prompts, others' left out."""
        with suppress(FileNotFoundError):
            for entry in sorted(os.listdir(self.path / _PROMPTS)):
                if is_shortened(entry) or prompt_name(entry) is not None:
                    yield self.path / _PROMPTS / entry

    def _name_of(self, directory: Path) -> str | None:
        if is_shortened(directory.name):
            return saved_name(directory)
        return prompt_name(directory.name) if (directory / STATE).exists() else None

    def _look_through(self) -> None:
        """Bring every prompt to where an undisturbed writer would have left it."""
        for directory in self._directories():
            name = saved_name(directory) or prompt_name(directory.name) or ""
            PromptStore(self._access, name, directory).recover()


def _identity(root: Path) -> _Identity | None:
    """What ``store.json`` says; None when there is none."""
    path = root / _STORE
    try:
        data = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None
    try:
        identity = msgspec.json.decode(data, type=_Identity)
    except ValueError:
        raise NotAStore(root, f"its {_STORE} is not one of ours") from None
    if identity.kind != _KIND:
        raise NotAStore(root, f"its {_STORE} is not one of ours")
    if identity.schema > SCHEMA:
        raise StoreTooNew(path, identity.schema, SCHEMA)
    if not identity.lineage:
        raise StoreDamaged(path, "it has no lineage")
    return identity


def _check_makeable(root: Path, create: bool) -> None:
    """Refuse to make a store where something else is.

    :raises NotAStore: saying why.
    """
    if not create:
        raise NotAStore(root, _what_is(root))
    if root.exists() and not (root.is_dir() and _is_bare(root)):
        raise NotAStore(root, f"{_what_is(root)}; name a directory that is empty or does not exist")


def _what_is(root: Path) -> str:
    if not root.exists():
        return "there is nothing"
    if not root.is_dir():
        return "it is not a directory"
    return "it is empty" if _is_bare(root) else f"it holds other things, and no {_STORE}"


def _is_bare(root: Path) -> bool:
    """Whether a directory holds nothing but what the making of a store, broken off, leaves behind."""
    if set(os.listdir(root)) - {_LOCK, _PROMPTS, _STORE + TEMPORARY}:
        return False
    prompts = root / _PROMPTS
    return not prompts.exists() or (prompts.is_dir() and not os.listdir(prompts))


def _make(disk: Disk, root: Path) -> _Identity:
    """Make a store in a directory whose lock we hold; ``store.json`` comes last, so until then there is none."""
    make_directories(disk, root / _PROMPTS)
    identity = _Identity(_KIND, SCHEMA, secrets.token_hex(16))
    replace(disk, root / _STORE, msgspec.json.encode(identity) + b"\n")
    return identity
