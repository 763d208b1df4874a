"""Prompt states in a store: the newest, and any older one rebuilt from the log."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

import msgspec

from operators.entry import Entry
from operators.snapshot import Snapshot, dump, load
from operators.state import PromptState
from operators.values import Update
from operators.version import SNAPSHOT_EVERY, Published, advance
from operators.wire import encode, message
from stream.place import nothing
from stream.promptstore import PromptStore
from stream.storeerrors import StoreDamaged, UnknownVersion

T = TypeVar("T")

_snapshots = msgspec.json.Decoder(Snapshot)
_updates = msgspec.json.Decoder(Update)
_entries = msgspec.json.Decoder(Entry)


def _decoded(file: Path, decoder: msgspec.json.Decoder[T], data: bytes, what: str) -> T:
    try:
        return decoder.decode(data)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise StoreDamaged(file, f"{what} is not what was written ({error})") from error


def newest(prompt: PromptStore) -> PromptState:
    """The state that the prompt's next version starts from."""
    data = prompt.state()
    if data is None:
        return PromptState(prompt.name)
    file = prompt.directory / "state.json"
    try:
        return load(_decoded(file, _snapshots, data, "the state"))
    except LookupError as error:
        raise StoreDamaged(file, f"the state is not what was written ({error})") from error


def update_of(prompt: PromptStore, version: int) -> Update:
    """The update of one version; version 0 shows nothing."""
    if version == 0:
        return nothing(prompt.name)
    return _decoded(prompt.version_file(version), _updates, prompt.update(version), f"the update of version {version}")


def entries(prompt: PromptStore, after: int = 0) -> Iterator[Entry]:
    """The log of the prompt, oldest first."""
    for line in prompt.entries(after):
        yield _decoded(prompt.directory / "log.jsonl", _entries, line, "an entry")


def state_at(prompt: PromptStore, version: int) -> PromptState:
    """The state as it was at one version, rebuilt from its log: deltas, and the snapshots among them.

    :raises UnknownVersion: when there is no such version.
    """
    if not 0 <= version <= prompt.version:
        raise UnknownVersion(prompt.name, version, prompt.version)
    state = PromptState(prompt.name)
    for entry in entries(prompt, max(version // SNAPSHOT_EVERY * SNAPSHOT_EVERY - 1, 0)):
        if entry.version > version:
            break
        state = advance(state, entry)
    return state


def commit(prompt: PromptStore, published: Published) -> None:
    """Make a version durable."""
    entry = published.entry
    prompt.commit(
        published.update.version,
        encode(published.update),
        message(entry),
        message(dump(published.state)),
        [(id, bytes.fromhex(digest)) for id, digest in entry.traces],
    )
