"""Any version of a prompt is rebuilt from its log, from the snapshot before it on."""

from __future__ import annotations

from pathlib import Path

from operators.snapshot import dump
from operators.state import PromptState
from operators.version import SNAPSHOT_EVERY, advance
from operators.wire import encode
from stream.states import entries, newest, state_at
from stream.store import Store
from tests.stream.crashing import Unsynced
from tests.stream.logs import Log
from tests.stream.replaying import replay


def test_a_version_is_what_all_entries_before_it_make(tmp_path: Path) -> None:
    root = tmp_path / "store"
    replay(root, Log(count=2 * (2 * SNAPSHOT_EVERY + 7), prompts=1, bare=True).write(tmp_path / "log"), 2)
    with Store.open(root, write=False, disk=Unsynced()) as store:
        [name] = store.prompts()
        prompt = store.prompt(name)
        assert prompt.version > 2 * SNAPSHOT_EVERY
        state = PromptState(name)
        for entry in entries(prompt):
            state = advance(state, entry)
            assert encode(dump(state_at(prompt, entry.version))) == encode(dump(state)), entry.version
        assert encode(dump(newest(prompt))) == encode(dump(state))
        assert state_at(prompt, 0) == PromptState(name)
