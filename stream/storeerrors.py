"""What can be wrong with a prompt store, each error saying what, where and what to do.

StoreError
 ├─ NotAStore        nothing is there, or something that is not a store
 ├─ StoreTooNew      written by a newer tracecomb
 ├─ StoreLocked      another process writes to it
 ├─ StoreReadOnly    it was opened for reading
 ├─ StoreDamaged     a file of it fails its checks
 ├─ StoreRefused     the file system said no: full, read-only, not permitted, broken
 ├─ UnknownPrompt    it holds no such prompt
 └─ UnknownVersion   the prompt has no such version
"""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class StoreError(Exception):
    """Base of everything that a prompt store raises on purpose."""


class NotAStore(StoreError):
    """There is no store at ``path``, or something else is."""

    def __init__(self, path: Path, what: str) -> None:
        super().__init__(f"{_shown(path)} is not a prompt store: {what}")
        self.path = path


class StoreTooNew(StoreError):
    """``path`` has a schema that this version does not know."""

    def __init__(self, path: Path, schema: object, known: int) -> None:
        super().__init__(
            f"{_shown(path)} has schema {_shown(schema)}, newer than this tracecomb knows ({known}): "
            "use the tracecomb that wrote it"
        )
        self.path = path


class StoreLocked(StoreError):
    """Another process writes to the store; ``pid`` is its process id, None where the system does not tell."""

    def __init__(self, path: Path, pid: int | None) -> None:
        who = "another process" if pid is None else f"process {pid}"
        super().__init__(f"{_shown(path)} is being written by {who}: wait for it to end, or stop it")
        self.path = path
        self.pid = pid


class StoreReadOnly(StoreError):
    """A write through a store that was opened for reading, by a forked child, or after the lock's file was removed."""

    def __init__(self, path: Path, why: str) -> None:
        super().__init__(f"{_shown(path)} cannot be written here: {why}")
        self.path = path


class StoreDamaged(StoreError):
    """A file of the store is not what was written to it."""

    def __init__(self, path: Path, what: str, advice: str = "restore the store from a copy") -> None:
        super().__init__(f"{_shown(path)} is damaged: {what}; {advice}")
        self.path = path


class StoreRefused(StoreError):
    """The file system refused an operation; what was committed before it stays. ``errno`` is the system's number."""

    def __init__(self, path: Path, error: OSError) -> None:
        advice = _ADVICE.get(error.errno or 0, "what was committed before is safe")
        super().__init__(f"{_shown(path)}: {error.strerror or error}; {advice}")
        self.path = path
        self.errno = error.errno


class UnknownPrompt(StoreError):
    """What is at ``where``, a store or a topic, holds no version of the prompt ``name``.

    :param instead: what there is instead, where that is known already.
    """

    def __init__(self, where: Path | str, name: str, instead: str = "") -> None:
        super().__init__(f"{_shown(where)} holds no prompt {_shown(repr(name))}")
        self.where = where
        self.name = name
        self.instead = instead


class UnknownVersion(StoreError):
    """The prompt ``name`` has versions 1 to ``newest``, not ``version``."""

    def __init__(self, name: str, version: int, newest: int) -> None:
        has = f"has versions 1 to {newest}" if newest else "has no version yet"
        super().__init__(f"prompt {_shown(repr(name))} {has}, not {version}")
        self.name = name
        self.version = version
        self.newest = newest


_ADVICE = {
    errno.ENOSPC: "free some space and run again; what was committed before is safe",
    errno.EDQUOT: "raise the quota or free some space and run again; what was committed before is safe",
    errno.EROFS: "the file system is mounted read-only; keep the store elsewhere, or mount it for writing",
    errno.EACCES: "give this user the right to it",
    errno.EPERM: "give this user the right to it",
    errno.EMFILE: "raise the limit on open files (ulimit -n)",
}

_WRONG_KIND = {
    errno.ENOTDIR: "a file stands where a directory belongs",
    errno.EISDIR: "a directory stands where a file belongs",
}


@contextmanager
def refusals(path: Path) -> Iterator[None]:
    """Turn what the operating system raises about ``path``, or about a file below it, into a StoreError."""
    try:
        yield
    except OSError as error:
        place = Path(error.filename) if isinstance(error.filename, str) else path
        if error.errno in _WRONG_KIND:
            raise StoreDamaged(place, _WRONG_KIND[error.errno], "move it away") from error
        raise StoreRefused(place, error) from error


def _shown(value: object) -> str:
    """Text that any terminal and log takes, also where a path or a name holds lone surrogates or control characters."""
    text = str(value).encode("utf-8", "backslashreplace").decode("utf-8")
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode("ascii") for char in text)
