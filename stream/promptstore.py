"""One prompt in a store: a file a version, its state, an append-only log and an index of trace ids.

A version exists once ``state.json`` names it; renaming that file is the commit. What belongs to the version is durable
before that, so a kill or a power cut leaves the version before or the new one, and opening the prompt for writing
removes what a version that was not finished left behind.

    versions/00000001.json    the update, as it was given
    log.jsonl                 an entry a version; what lies beyond the state's log_bytes does not count
    state.json                the newest version, the length of the log, a checksum, and the state as it was given
    ids.idx                   derived from the log (see index.py)
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from stream.atomic import TEMPORARY, make_directories, remove, replace, temporary
from stream.index import DIGEST, key
from stream.journal import Access, Journal, Pairs
from stream.names import canonical
from stream.statefile import STATE, Saved, dump, load
from stream.storeerrors import StoreDamaged, UnknownVersion, refusals

_VERSIONS = "versions"


class Entry(msgspec.Struct):
    """What the store itself reads in a log entry: its version, and [id, digest in hex] of each of its traces."""

    version: int
    traces: list[tuple[str, str]] = []


_entries = msgspec.json.Decoder(Entry)


class PromptStore:
    """The versions of one prompt; made by ``Store.prompt``.

    Opened for writing it is the only writer there is. Opened for reading it is a snapshot: what a writer adds later
    does not show.
    """

    __slots__ = ("_access", "_directory", "_log", "_settled", "_snapshot", "_version", "name")

    def __init__(self, access: Access, name: str, directory: Path) -> None:
        self.name = canonical(name)
        self._version = 0
        self._access = access
        self._directory = directory
        self._log = Journal(access, directory / "log.jsonl", directory / "ids.idx", _pairs)
        self._snapshot: bytes | None = None
        self._settled = False
        with refusals(directory):
            self._settle()

    @property
    def settled(self) -> bool:
        """Whether the files are known to be those of ``version``; not so after a write that failed half way."""
        return self._settled

    @property
    def version(self) -> int:
        """The newest version; 0 when there is none."""
        if not self._settled:
            with refusals(self._directory):
                self._settle()
        return self._version

    @property
    def directory(self) -> Path:
        """Where the prompt lies."""
        return self._directory

    def state(self) -> bytes | None:
        """The newest version's state; None when there is no version.

        :raises StoreDamaged: when it is not what was written.
        """
        if self._access.lock is None:
            return self._snapshot
        with refusals(self._directory):
            self._settle()
            saved = load(self._directory / STATE)
        return None if saved is None else saved.state

    def update(self, version: int) -> bytes:
        """The update that a version was committed with.

        :raises UnknownVersion: when there is no such version; version 0 has no update.
        """
        if not 1 <= version <= self.version:
            raise UnknownVersion(self.name, version, self.version)
        path = self.version_file(version)
        with refusals(path):
            try:
                data = path.read_bytes()
            except FileNotFoundError as error:
                raise StoreDamaged(path, "it is missing") from error
        try:
            msgspec.json.decode(data, type=msgspec.Raw)
        except (ValueError, RecursionError) as error:
            raise StoreDamaged(path, f"it is not JSON ({error})") from error
        return data

    def entries(self, after: int = 0) -> Iterator[bytes]:
        """The log entries of the versions later than ``after``, oldest first, without line ends."""
        with refusals(self._directory):
            self._settle()
            for line in self._log.lines():
                try:
                    later = _entry(line).version > after
                except (ValueError, RecursionError) as error:
                    raise StoreDamaged(self._directory / "log.jsonl", f"a line cannot be read ({error})") from error
                if later:
                    yield line

    def find(self, ids: Sequence[str]) -> list[bytes | None]:
        """The digest of each trace that some version was learned from, else None, in the order asked.

        Much faster in a store that is open for writing: a reader looks through the log.
        """
        with refusals(self._directory):
            self._settle()
            return self._log.find([key(id) for id in ids])

    def commit(
        self, version: int, update: bytes, entry: bytes, state: bytes, traces: Sequence[tuple[str, bytes]]
    ) -> None:
        """Add a version, durably and whole.

        After an error the version exists or does not, as ``version`` says; either way the prompt can be used on.

        :param version: the one after the newest.
        :param update: JSON, kept as it is.
        :param entry: a JSON object on one line; ``version`` and ``traces`` ([id, digest in hex] pairs) stand in it.
        :param state: JSON, kept as it is.
        :param traces: id and digest (8 bytes) of each trace; a trace that is known keeps its first digest.
        :raises ValueError: when the arguments contradict each other.
        :raises StoreReadOnly: when the store is not open for writing here.
        :raises StoreRefused: when the file system refuses.
        """
        self._access.check_writer()
        with refusals(self._directory):
            self._settle()
            if version != self._version + 1:
                raise ValueError(f"version {version} cannot follow version {self._version}")
            _check(version, entry, traces)
            self._settled = False  # and so it stays after an error: whoever comes next mends what is half done
            self._write(version, update, entry + b"\n", state, [(key(id), digest) for id, digest in traces])
            self._settled = True

    def recover(self) -> None:
        """Bring the index in step too, as an undisturbed writer leaves it."""
        with refusals(self._directory):
            self._settle()
            self._log.catch_up()

    def _write(self, version: int, update: bytes, line: bytes, state: bytes, pairs: Pairs) -> None:
        disk, directory = self._access.disk, self._directory
        make_directories(disk, directory / _VERSIONS)
        replace(disk, self.version_file(version), update)
        self._log.append(line)
        if version == 1:
            disk.sync_directory(directory)  # the log's name must not come to the device later than the state's
        saved = Saved(self.name, version, self._log.length + len(line), state)
        replace(disk, directory / STATE, dump(saved))
        self._version = version
        self._log.accept(line, pairs)

    def _settle(self) -> None:
        """Know the newest version; a writer also removes what an unfinished one left."""
        if self._settled:
            return
        saved = load(self._directory / STATE)
        if saved is not None and saved.name != self.name:
            raise StoreDamaged(
                self._directory, f"it holds the prompt {saved.name!r}, not {self.name!r}", "move it away"
            )
        self._version, length = (saved.version, saved.log_bytes) if saved is not None else (0, 0)
        if self._access.lock is None:
            self._log.length = length
            self._snapshot = saved.state if saved is not None else None
        elif self._directory.exists():
            self._access.check_writer()
            self._check_beyond(length)
            self._clean(length)
        self._settled = True

    def _check_beyond(self, length: int) -> None:
        """See that what cleaning would remove is one unfinished version, and not what another state had committed.

        :raises StoreDamaged: when the state is missing, is an older one, or belongs to another log.
        """
        advice = "put the prompt's own newest state.json back, or move the directory away"
        last, beyond = self._log.around(length)
        if last is not None:
            try:
                fits = _entry(last).version == self._version
            except ValueError:
                fits = False
            if not fits:
                raise StoreDamaged(self._directory / STATE, "it does not belong to the log beside it", advice)
        versions = self._directory / _VERSIONS
        later = [
            entry
            for entry in (os.listdir(versions) if versions.exists() else ())
            if re.fullmatch(r"\d+\.json", entry) and int(entry[:-5]) > self._version + 1
        ]
        if beyond > 1 or later:
            what = "is missing" if self._version == 0 else f"says version {self._version}"
            raise StoreDamaged(self._directory / STATE, f"it {what}, though later versions are there", advice)

    def _clean(self, length: int) -> None:
        disk, directory = self._access.disk, self._directory
        remove(disk, temporary(directory / STATE))
        self._log.cut(length)
        versions = directory / _VERSIONS
        if versions.exists():
            for entry in sorted(os.listdir(versions)):
                if entry.endswith(TEMPORARY) or (re.fullmatch(r"\d+\.json", entry) and int(entry[:-5]) > self._version):
                    remove(disk, versions / entry)
        if self._version == 0:
            for name in ("log.jsonl", "ids.idx"):
                remove(disk, directory / name)
            for path in (versions, directory):
                with suppress(OSError):  # a file of somebody's is in it: no harm
                    disk.rmdir(path)

    def version_file(self, version: int) -> Path:
        return self._directory / _VERSIONS / f"{version:08}.json"


def _entry(line: bytes) -> Entry:
    try:
        return _entries.decode(line)
    except msgspec.DecodeError:
        # The standard library takes what JavaScript writes: lone surrogates, NaN.
        return msgspec.convert(json.loads(line), Entry)


def _pairs(line: bytes) -> Pairs:
    return [(key(id), bytes.fromhex(digest)) for id, digest in _entry(line).traces]


def _check(version: int, entry: bytes, traces: Sequence[tuple[str, bytes]]) -> None:
    """The index can be built anew from the log only if the entry says what the caller says."""
    if b"\n" in entry:
        raise ValueError("a log entry is one line")
    said = _entry(entry)
    if said.version != version:
        raise ValueError(f"the log entry of version {version} says version {said.version}")
    if said.traces != [(id, digest.hex()) for id, digest in traces]:
        raise ValueError("the log entry and the traces given differ")
    if any(len(digest) != DIGEST for _, digest in traces):
        raise ValueError(f"a digest has {DIGEST} bytes")
