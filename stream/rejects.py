"""Lines that are no traces, each kept once however often a run is killed and reads them again.

``rejects.jsonl`` has one JSON object a line; what tells two apart is file, line number and the bytes of the line, of
which an index beside it knows all. There is no time in a record: a replay gives the same bytes whenever it runs.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Iterator
from hashlib import blake2b
from typing import Any

import msgspec

from stream.index import DIGEST, key
from stream.journal import Access, Journal, Pairs
from stream.names import canonical
from stream.storeerrors import StoreDamaged, refusals

SCHEMA = 1
_FLUSH_BYTES = 1 << 20
_FLUSH_RECORDS = 1000


class RejectRecord(msgspec.Struct, frozen=True):
    """A line that is no trace: where it stood, why it was refused, and its bytes."""

    file: str
    line: int
    reason: str
    raw: bytes


class Reject(msgspec.Struct):
    """A record as it stands in the file; ``encoding`` is base64 where ``raw`` is not UTF-8."""

    file: str
    line: int
    reason: str
    digest: str
    raw: str
    encoding: str = "utf-8"
    schema: int = SCHEMA


_written = msgspec.json.Decoder(Reject)


class Rejects:
    """The rejects of a store; made by ``Store.open``."""

    def __init__(self, access: Access, torn: bool) -> None:
        self._access = access
        self.path = access.root / "rejects.jsonl"
        self._journal = Journal(access, self.path, access.root / "rejects.idx", _pairs)
        self._torn = torn
        self._pending: dict[bytes, tuple[bytes, bytes]] = {}
        self._pending_bytes = 0
        self._settled = False
        with refusals(self.path):
            self._settle()

    @property
    def settled(self) -> bool:
        """Whether all that was added is in the file."""
        return self._settled and not self._pending

    @property
    def count(self) -> int:
        """How many there are, those of earlier runs and those not yet flushed included."""
        with refusals(self.path):
            return self._journal.count() + len(self._pending)

    def add(self, record: RejectRecord) -> bool:
        """Keep a record, durably with the next ``flush``; False when it is there already.

        :raises StoreReadOnly: when the store is not open for writing here.
        """
        self._access.check_writer()
        digest = blake2b(record.raw, digest_size=16).digest()
        identity = _identity(record.file, record.line, digest.hex())
        with refusals(self.path):
            self._settle()
            if identity in self._pending or self._journal.find([identity])[0] is not None:
                return False
            line = _encoded(record, digest)
            self._pending[identity] = (digest[:DIGEST], line)
            self._pending_bytes += len(line)
            if self._pending_bytes >= _FLUSH_BYTES or len(self._pending) >= _FLUSH_RECORDS:
                self.flush()
        return True

    def flush(self) -> None:
        """Make durable what was added.

        :raises StoreRefused: when the file system refuses; what was added is still pending then.
        """
        if not self._pending:
            return
        self._access.check_writer()
        with refusals(self.path):
            self._settle()
            self._settled = False
            self._write()
            self._settled = True

    def records(self) -> Iterator[RejectRecord]:
        """All that is in the file, oldest first."""
        with refusals(self.path):
            for line in self._journal.lines():
                try:
                    found = _decoded(line)
                    raw = b64decode(found.raw) if found.encoding == "base64" else found.raw.encode()
                except ValueError as error:
                    raise StoreDamaged(self.path, f"a line cannot be read ({error})") from error
                yield RejectRecord(file=found.file, line=found.line, reason=found.reason, raw=raw)

    def _write(self) -> None:
        lines = b"".join(line for _, line in self._pending.values())
        self._journal.append(lines)
        if self._journal.length == 0:
            self._access.disk.sync_directory(self._access.root)  # the file is new
        pairs = [(identity, digest) for identity, (digest, _) in self._pending.items()]
        self._pending.clear()
        self._pending_bytes = 0
        self._journal.accept(lines, pairs)

    def _settle(self) -> None:
        """Know where the file ends; a writer cuts off a line that was not finished."""
        if self._settled:
            return
        self._journal.settle(self._torn)
        for identity in list(self._pending):  # a flush that failed may have written some
            if self._journal.find([identity])[0] is not None:
                self._pending_bytes -= len(self._pending.pop(identity)[1])
        self._settled = True


def _encoded(record: RejectRecord, digest: bytes) -> bytes:
    fields: dict[str, Any] = {
        "schema": SCHEMA,
        "file": record.file,
        "line": record.line,
        "reason": record.reason,
        "digest": digest.hex(),
    }
    try:
        fields["raw"] = record.raw.decode()
    except UnicodeDecodeError:
        fields |= {"raw": b64encode(record.raw).decode(), "encoding": "base64"}
    try:
        return msgspec.json.encode(fields) + b"\n"
    except UnicodeEncodeError:  # a lone surrogate, as in the name of a file that is not UTF-8
        return json.dumps(fields, separators=(",", ":")).encode() + b"\n"


def _decoded(line: bytes) -> Reject:
    try:
        return _written.decode(line)
    except msgspec.DecodeError:
        return msgspec.convert(json.loads(line), Reject)


def _identity(file: str, line: int, digest: str) -> bytes:
    return key(f"{canonical(file)}\0{line}\0{digest}")


def _pairs(line: bytes) -> Pairs:
    found = _decoded(line)
    digest = bytes.fromhex(found.digest)[:DIGEST]
    return [(_identity(found.file, found.line, found.digest), digest)]
