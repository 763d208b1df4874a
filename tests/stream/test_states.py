"""States and updates read back from a store: what a person's editor did to a file is told, with the place of it."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from operators.snapshot import dump as snapshot
from operators.state import PromptState
from operators.version import SNAPSHOT_EVERY, advance
from operators.wire import encode
from stream.exits import FAILED
from stream.promptstore import PromptStore
from stream.statefile import dump, load
from stream.states import entries, newest, state_at, update_of
from stream.store import Store
from stream.storeerrors import StoreDamaged
from tests.stream.crashing import Unsynced
from tests.stream.logs import Log
from tests.stream.replaying import replay
from tests.stream.running import tracecomb

PROMPT = "shop/0"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of three versions; not to be changed."""
    folder = tmp_path_factory.mktemp("states")
    replay(folder / "store", Log(count=24, prompts=1, bare=True).write(folder / "log"), 8)
    return folder / "store"


@pytest.fixture
def root(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "store"))


def directory(root: Path) -> Path:
    [found] = (root / "prompts").iterdir()
    return found


def edit(path: Path, old: bytes, new: bytes) -> None:
    """Replace it once, leaving the file as long as it was: a shorter log is told in another way."""
    data = path.read_bytes()
    assert old in data
    assert len(old) == len(new)
    path.write_bytes(data.replace(old, new, 1))


def edit_state(path: Path, old: bytes, new: bytes) -> None:
    """Replace it once, and make the checksum fit, as no slip of an editor does but a well-meaning script may."""
    saved = load(path)
    assert saved is not None
    assert old in saved.state
    path.write_bytes(dump(saved._replace(state=saved.state.replace(old, new, 1))))


def told(root: Path, what: Callable[[PromptStore], object], *, write: bool) -> str:
    """The error that reading ends in, which says where it is."""
    with Store.open(root, write=write) as store, pytest.raises(StoreDamaged) as caught:
        what(store.prompt(PROMPT))
    assert caught.value.path.is_relative_to(directory(root))
    assert str(directory(root)) in str(caught.value)
    assert "restore" in str(caught.value)
    return str(caught.value)


EDITS = [
    pytest.param(b'"kind":"window"', b'"kind":"wimdow"', "`$.kind`", id="no such kind"),
    pytest.param(b'"changed":true', b'"changed":1234', "`$.changed`", id="another type"),
    pytest.param(b'"base":0', b'"bsae":0', "`base`", id="a field is gone"),
    pytest.param(b"customer", b"custom\xffr", "UTF-8", id="no text"),
]


@pytest.mark.parametrize("write", [False, True])
@pytest.mark.parametrize(("old", "new", "why"), EDITS)
def test_an_update_that_was_edited_by_hand(root: Path, old: bytes, new: bytes, why: str, write: bool) -> None:
    edit(directory(root) / "versions/00000001.json", old, new)
    message = told(root, lambda prompt: update_of(prompt, 1), write=write)
    assert "00000001.json is damaged: the update of version 1 is not what was written" in message
    assert why in message
    with Store.open(root, write=False) as store:
        assert update_of(store.prompt(PROMPT), 2).version == 2, "the others can be read"


@pytest.mark.parametrize("write", [False, True])
@pytest.mark.parametrize(("old", "new", "why"), EDITS)
def test_a_log_that_was_edited_by_hand(root: Path, old: bytes, new: bytes, why: str, write: bool) -> None:
    edit(directory(root) / "log.jsonl", old, new)
    for what in (lambda prompt: list(entries(prompt)), lambda prompt: state_at(prompt, 2)):
        message = told(root, what, write=write)
        assert "log.jsonl is damaged" in message
        assert "is not what was written" in message
        assert why in message
    with Store.open(root, write=False) as store:
        assert newest(store.prompt(PROMPT)).now.version == 3, "the newest needs no log"


@pytest.mark.parametrize("write", [False, True])
@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        pytest.param(b'"prompt":', b'"promtp":', "`prompt`", id="a field is gone"),
        pytest.param(b'"standings":[', b'"standings":[3,', "`$.standings[0]`", id="another type"),
        pytest.param(b"customer", b"custom\xffr", "UTF-8", id="no text"),
        pytest.param(b'"standings":[', b'"standings":[],"was":[', "index", id="no standing"),
    ],
)
def test_a_state_that_was_edited_and_fits_its_checksum(
    root: Path, old: bytes, new: bytes, why: str, write: bool
) -> None:
    edit_state(directory(root) / "state.json", old, new)
    message = told(root, newest, write=write)
    assert "state.json is damaged: the state is not what was written" in message
    assert why in message
    with Store.open(root, write=False) as store:
        prompt = store.prompt(PROMPT)
        assert state_at(prompt, 3).now.bullets == update_of(prompt, 3).bullets, "log and updates can be read"


def test_commands_say_so_in_a_line_and_leave_the_store_alone(root: Path) -> None:
    edit(directory(root) / "versions/00000003.json", b'"kind":"window"', b'"kind":"wimdow"')
    edit(directory(root) / "log.jsonl", b'"kind":"window"', b'"kind":"wimdow"')
    before = {path: path.read_bytes() for path in directory(root).rglob("*.json*")}
    for command in (f"show {PROMPT}", f"history {PROMPT}", f"diff {PROMPT} 1 3", f"rollback {PROMPT} --to 1"):
        ran = tracecomb(*command.split(), "--at", root)
        assert ran.code == FAILED
        assert "is not what was written" in ran.err
        assert "Traceback" not in ran.err
    assert {path: path.read_bytes() for path in directory(root).rglob("*.json*")} == before


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
            assert encode(snapshot(state_at(prompt, entry.version))) == encode(snapshot(state)), entry.version
        assert encode(snapshot(newest(prompt))) == encode(snapshot(state))
        assert state_at(prompt, 0) == PromptState(name)
