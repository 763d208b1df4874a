"""Trace files: paths in, chunks of traces out, with whatever in them was none."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import BinaryIO

from stream.blocks import BrokenStream, blocks
from stream.decode import BadJson, decode
from stream.frames import MAX_VALUE
from stream.records import Bad, Found, Record, Skipped
from stream.sift import Sift
from stream.walk import Entry, walk

__all__ = ["Bad", "Found", "Record", "Skipped", "TraceFiles"]

_CHUNK_BYTES = 8 << 20
"""Plain bytes after which a chunk is handed on, full or not: traces may be megabytes."""


class TraceFiles:
    """The traces of files, folders (recursively, in the order of their paths) and stdin (``-``); plain, gzip or zstd.

    Iterate once, for chunks of at most ``chunk`` records: each trace, bad line and file without a trace, in order. A
    chunk from stdin is what has arrived. Whatever is in the files, nothing is raised for it, and memory stays flat.

    :param stdin: what ``-`` stands for; the process's own when not given.
    :param exclude: folders that are not entered, as the store that is written to.
    :raises FileNotFoundError: when a path does not exist.
    """

    def __init__(
        self,
        paths: Sequence[str | Path],
        *,
        stdin: BinaryIO | None = None,
        chunk: int = 512,
        exclude: Collection[str | Path] = (),
    ) -> None:
        self._entries = list(walk(paths, exclude))
        self.files = len(self._entries)
        """How many files there are to read."""
        self._stdin = stdin
        self._chunk = chunk
        self._plain = 0
        self.bytes_read = 0
        """Bytes read so far, before unpacking."""
        sizes = [0 if entry.reason else entry.size for entry in self._entries]
        self.bytes_total: int | None = None if None in sizes else sum(filter(None, sizes))
        """Bytes of all files, before unpacking; None when there are pipes among them."""

    def __iter__(self) -> Iterator[list[Record]]:
        entries, self._entries = self._entries, []
        pending: list[Record] = []
        for entry in entries:
            for records in self._records(entry):
                pending += records
                while len(pending) >= self._chunk:
                    yield pending[: self._chunk]
                    del pending[: self._chunk]
                if pending and (entry.size is None or self._plain >= _CHUNK_BYTES):
                    yield pending
                    pending = []
                    self._plain = 0
        if pending:
            yield pending

    def _records(self, entry: Entry) -> Iterator[list[Record]]:
        if entry.reason:
            yield [Skipped(entry.name, entry.reason)]
            return
        if not entry.response:
            yield from self._file(entry.name, entry.path)
        elif records := Sift(entry.name).pair(_whole(entry.path), _whole(entry.response)):
            self.bytes_read += entry.size or 0
            yield records
        else:
            yield from self._file(entry.name, entry.path)
            yield from self._file(entry.response_name, entry.response)

    def _file(self, name: str, path: str) -> Iterator[list[Record]]:
        with ExitStack() as stack:
            try:
                source = stack.enter_context(open(path, "rb", buffering=0)) if path else self._standard()
            except OSError as error:
                yield [Skipped(name, f"cannot be read: {error.strerror or error}")]
                return
            yield from Sift(name).read(self._blocks(source))

    def _blocks(self, source: BinaryIO) -> Iterator[bytes]:
        for block in blocks(source, self._count):
            self._plain += len(block)
            yield block

    def _count(self, size: int) -> None:
        self.bytes_read += size

    def _standard(self) -> BinaryIO:
        return self._stdin if self._stdin is not None else sys.stdin.buffer


def _whole(path: str) -> object:
    """The one JSON value of a file; None where that cannot be had, and the file is then read like any other."""
    data = bytearray()
    try:
        with open(path, "rb", buffering=0) as source:
            for block in blocks(source, lambda size: None):
                data += block
                if len(data) > MAX_VALUE:
                    return None
        return decode(bytes(data)).value
    except (OSError, BrokenStream, BadJson):
        return None
