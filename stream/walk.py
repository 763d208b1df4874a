"""Which files the given paths stand for, and in what order."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

STDIN = "-"

_PAIR = re.compile(r"(.+)\.(request|response)\.json(\.gz|\.zst)?")


class Entry(NamedTuple):
    """One thing to read, or (``reason``) one that cannot be.

    :param name: how people see it: the path as given or walked; bytes that are no UTF-8 show as U+FFFD.
    :param path: where it is; empty for stdin.
    :param response: the file with the response to the request in ``path``, where there is one.
    :param size: bytes of both; None for what has no size, as pipes.
    """

    name: str
    path: str
    size: int | None = None
    response: str = ""
    reason: str = ""

    @property
    def response_name(self) -> str:
        return _shown(self.response)


def walk(paths: Iterable[str | Path], exclude: Collection[str | Path] = ()) -> Iterator[Entry]:
    """Yield what to read: the paths in their order, a folder's files by path (compared name by name), recursively.

    Hidden files and folders are passed over, unless given. A link to a folder is followed, but no folder is entered
    twice. Of ``X.request.json`` and ``X.response.json`` in one folder (also packed) the two are one entry.

    :param exclude: folders that are not entered.
    :raises FileNotFoundError: when a given path does not exist.
    """
    entered = {_place(os.stat(folder)) for folder in exclude if os.path.exists(folder)}
    done: set[str] = set()
    for given in paths:
        path = os.fspath(given)
        if path == STDIN:
            yield Entry(STDIN, "")
            continue
        for entry in _entries(path, os.stat(path), entered):
            if entry.response or _PAIR.fullmatch(os.path.basename(entry.path)):
                # Both halves may have been given, or one and its folder.
                if entry.path in done:
                    continue
                done.add(entry.path)
            yield entry


def _entries(path: str, status: os.stat_result, entered: set[tuple[int, int]]) -> Iterator[Entry]:
    """The files at and below ``path``, depth first in the order of names, however deep they lie."""
    waiting: list[tuple[str, os.stat_result | None]] = [(path, status)]
    while waiting:
        here, found = waiting.pop()
        if found is None:
            try:
                found = os.stat(here)
            except OSError as error:
                yield _unreadable(here, error)
                continue
            if not (stat.S_ISREG(found.st_mode) or stat.S_ISDIR(found.st_mode)):
                # Opening a pipe that nobody writes to would wait for ever.
                yield Entry(_shown(here), here, reason="not a regular file")
                continue
        if not stat.S_ISDIR(found.st_mode):
            yield _file(here, found)
            continue
        if _place(found) in entered:
            continue
        entered.add(_place(found))
        try:
            names = sorted((name for name in os.listdir(here) if not name.startswith(".")), reverse=True)
        except OSError as error:
            yield _unreadable(here, error)
            continue
        waiting.extend((os.path.join(here, name), None) for name in names)


def _file(path: str, status: os.stat_result) -> Entry:
    size = status.st_size if stat.S_ISREG(status.st_mode) else None
    halves = _halves(path) if size is not None else None
    if halves is None:
        return Entry(_shown(path), path, size)
    request, response = halves
    return Entry(_shown(request), request, os.path.getsize(request) + os.path.getsize(response), response)


def _halves(path: str) -> tuple[str, str] | None:
    folder, name = os.path.split(path)
    match = _PAIR.fullmatch(name)
    if match is None:
        return None
    other = "response" if match[2] == "request" else "request"
    for packing in ("", ".gz", ".zst"):
        beside = os.path.join(folder, f"{match[1]}.{other}.json{packing}")
        if os.path.isfile(beside):
            return (path, beside) if other == "response" else (beside, path)
    return None


def _place(status: os.stat_result) -> tuple[int, int]:
    return status.st_dev, status.st_ino


def _unreadable(path: str, error: OSError) -> Entry:
    return Entry(_shown(path), path, reason=f"cannot be read: {error.strerror or error}")


def _shown(path: str) -> str:
    return os.fsencode(path).decode("utf-8", "replace")
