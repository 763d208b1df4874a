"""The file that says which version of a prompt is the newest: one JSON object on one line, with a checksum.

It is put together and taken apart by hand: the state in it is long, and nobody here has to parse it.
"""

from __future__ import annotations

import json
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

from stream.storeerrors import StoreDamaged, StoreTooNew

STATE = "state.json"
SCHEMA = 1

_HEAD_ENDS = b',"checksum":"'
_STATE_BEGINS = b'","state":'
_ADVICE = "restore it from a copy (the updates in versions/ beside it are whole)"


class Saved(NamedTuple):
    """A prompt's name, its newest version, how much of its log belongs to that (bytes), and its state (JSON)."""

    name: str
    version: int
    log_bytes: int
    state: bytes


def dump(saved: Saved) -> bytes:
    """The content of the file."""
    fields = {"schema": SCHEMA, "name": saved.name, "version": saved.version, "log_bytes": saved.log_bytes}
    # In ASCII, whose escapes hold any name, lone surrogates too.
    head = json.dumps(fields, separators=(",", ":")).encode()[:-1]
    return b"".join((head, _HEAD_ENDS, _checksum(head, saved.state), _STATE_BEGINS, saved.state, b"}\n"))


def load(path: Path) -> Saved | None:
    """Read the file; None when there is none.

    :raises StoreDamaged: when it is not what ``dump`` made.
    :raises StoreTooNew: when a newer tracecomb wrote it.
    """
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return None
    head, _, rest = data.partition(_HEAD_ENDS)  # a name cannot hold it: quotes are escaped there
    checksum, _, rest = rest.partition(_STATE_BEGINS)
    state = rest[:-2]
    if rest.endswith(b"}\n") and checksum == _checksum(head, state):
        fields = json.loads(head + b"}")
        if fields["schema"] == SCHEMA:
            return Saved(fields["name"], fields["version"], fields["log_bytes"], state)
    raise _what_is_wrong(path, data)


def saved_name(directory: Path) -> str | None:
    """The name of the prompt that lives in a directory; None when it has no version."""
    saved = load(directory / STATE)
    return None if saved is None else saved.name


def _what_is_wrong(path: Path, data: bytes) -> StoreDamaged | StoreTooNew:
    try:
        schema = json.loads(data)["schema"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return StoreDamaged(path, "it is not the JSON that was written", _ADVICE)
    if isinstance(schema, int) and schema > SCHEMA:
        return StoreTooNew(path, schema, SCHEMA)
    return StoreDamaged(path, "its checksum does not fit its content", _ADVICE)


def _checksum(head: bytes, state: bytes) -> bytes:
    hasher = blake2b(head, digest_size=16)
    hasher.update(state)
    return hasher.hexdigest().encode()
