"""The prompt store at its public seams: what it keeps, what it refuses, and what it says then."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from stream.atomic import Disk
from stream.names import directory_name
from stream.store import Store
from stream.storeerrors import (
    NotAStore,
    StoreDamaged,
    StoreError,
    StoreLocked,
    StoreReadOnly,
    StoreRefused,
    StoreTooNew,
    UnknownPrompt,
    UnknownVersion,
)
from tests.stream.crashing import NAMES, Commit, Script, Stopping, Unsynced, Untouchable, abandon, picture, traces


def writer(root: Path, disk: Disk | None = None) -> Store:
    return Store.open(root, write=True, create=True, disk=disk or Unsynced())


def reader(root: Path) -> Store:
    return Store.open(root, write=False, disk=Untouchable())


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "store"


@pytest.fixture
def one(root: Path) -> Path:
    """The directory of the prompt ``p``, which has three versions."""
    with writer(root) as store:
        for version in (1, 2, 3):
            Commit("p", version, traces(f"t{version}", 20)).write(store)
    return root / "prompts" / "p"


# What it keeps


def test_what_was_committed_is_there(root: Path) -> None:
    script = Script(names=NAMES, versions=3)
    with writer(root) as store:
        script.run(store)
        assert script.check(store) == dict.fromkeys(NAMES, 3)
    with reader(root) as store:
        assert script.check(store) == dict.fromkeys(NAMES, 3)
        assert store.prompts() == sorted(NAMES)


def test_nothing_is_outside_the_store_whatever_the_names(tmp_path: Path) -> None:
    with writer(tmp_path / "a" / "store") as store:
        Script(names=NAMES).run(store)
    assert os.listdir(tmp_path) == ["a"]
    assert os.listdir(tmp_path / "a") == ["store"]
    assert len(os.listdir(tmp_path / "a" / "store" / "prompts")) == len(NAMES)


def test_lineage_stays_and_is_each_stores_own(tmp_path: Path) -> None:
    lineages = set()
    for name in ("a", "b"):
        with writer(tmp_path / name) as store:
            lineages.add(store.lineage)
        with reader(tmp_path / name) as store:
            lineages.add(store.lineage)
    assert len(lineages) == 2
    assert all(len(lineage) == 32 for lineage in lineages)


def test_the_files_are_json_for_people(one: Path) -> None:
    state = json.loads((one / "state.json").read_bytes())
    assert (state["schema"], state["name"], state["version"]) == (1, "p", 3)
    assert state["state"] == json.loads(Commit("p", 3, []).state)
    assert state["log_bytes"] == (one / "log.jsonl").stat().st_size
    assert sorted(os.listdir(one / "versions")) == ["00000001.json", "00000002.json", "00000003.json"]
    assert json.loads((one.parent.parent / "store.json").read_bytes())["schema"] == 1


def test_versions_out_of_order_are_a_mistake(root: Path, one: Path) -> None:
    with writer(root) as store:
        for version in (3, 5):
            commit = Commit("p", version, [])
            with pytest.raises(ValueError, match=f"version {version} cannot follow version 3"):
                store.prompt("p").commit(version, b"{}", commit.entry, b"{}", [])


@pytest.mark.parametrize(
    ("entry", "given", "message"),
    [
        (b'{"version":1,\n"traces":[]}', [], "one line"),
        (b'{"version":2,"traces":[]}', [], "says version 2"),
        (b'{"version":1,"traces":[["a","00"]]}', [], "differ"),
        (b'{"version":1}', [("a", b"12345678")], "differ"),
        (b'{"version":1,"traces":[["a","00"]]}', [("a", b"\0")], "8 bytes"),
        (b'{"version":1', [], "Expecting"),
        (b"[]", [], "Expected `object`"),
    ],
)
def test_arguments_that_contradict_each_other_change_nothing(
    root: Path, entry: bytes, given: list[tuple[str, bytes]], message: str
) -> None:
    with writer(root) as store:
        with pytest.raises(ValueError, match=message):
            store.prompt("p").commit(1, b"{}", entry, b"{}", given)
        assert store.prompts() == []
        Commit("p", 1, traces("t", 2)).write(store)
        assert store.prompts() == ["p"]


def test_ids_and_entries_hold_what_javascript_writes(root: Path) -> None:
    entry = b'{"version":1,"traces":[["\\ud800","0000000000000001"],["\\u2028","0000000000000002"]],"x":NaN}'
    given = [("\ud800", bytes(7) + b"\1"), ("\u2028", bytes(7) + b"\2")]
    with writer(root) as store:
        store.prompt("p").commit(1, b"{}", entry, b'{"a":"\\ud800"}', given)
    (root / "prompts" / "p" / "ids.idx").unlink()
    with writer(root) as store:
        assert store.prompt("p").find(["\u2028", "\ud800", "\udc00"]) == [given[1][1], given[0][1], None]
        assert store.prompt("p").state() == b'{"a":"\\ud800"}'


def test_entries_after_a_version(root: Path, one: Path) -> None:
    with reader(root) as store:
        prompt = store.prompt("p")
        assert [json.loads(entry)["version"] for entry in prompt.entries(after=1)] == [2, 3]
        assert list(prompt.entries(after=3)) == []


def test_the_checkpoint(root: Path) -> None:
    with writer(root) as store:
        assert store.checkpoint() is None
        store.write_checkpoint(b'{"a":1}')
        store.write_checkpoint(b"{}")
    with reader(root) as store:
        assert store.checkpoint() == b"{}"
        with pytest.raises(StoreReadOnly):
            store.write_checkpoint(b"")


def test_many_prompts_need_few_files_open(root: Path) -> None:
    names = [f"prompt {number}" for number in range(300)]
    with writer(root) as store:
        for version in (1, 2):
            for name in names:
                Commit(name, version, traces(f"{name} {version}", 2)).write(store)
        opened = len(os.listdir("/proc/self/fd")) if sys.platform == "linux" else 0
        assert opened < 200
        assert store.prompts() == sorted(names)
        for name in names:
            assert store.prompt(name).find([f"{name} 1-0", f"{name} 2-1", "x"])[2] is None
            assert None not in store.prompt(name).find([f"{name} 1-0", f"{name} 2-1"])


# Reading while somebody writes


def test_a_reader_sees_one_version_while_a_writer_goes_on(root: Path) -> None:
    script = Script(names=("p", "q"), versions=4)
    first, *rest = script.commits()
    with writer(root) as store:
        first.write(store)
        with reader(root) as seen:
            snapshot = seen.prompt("p")
            for commit in rest:
                commit.write(store)
            assert snapshot.version == 1
            assert snapshot.state() == first.state
            assert list(snapshot.entries()) == [first.entry]
            assert snapshot.find([rest[1].traces[0][0], first.traces[0][0]]) == [None, first.traces[0][1]]
            with pytest.raises(UnknownVersion):
                snapshot.update(2)
            assert script.check(seen) == {"p": 4, "q": 4}


def test_a_reader_sees_nothing_of_an_unfinished_version(root: Path, one: Path) -> None:
    before = picture(root)
    with (one / "log.jsonl").open("ab") as log:
        log.write(b'{"version":4,"traces":[["new","0000000000000000"]]}\n{"vers')
    (one / "versions" / "00000004.json").write_bytes(b"{")
    (one / "state.json.tmp").write_bytes(b"{")
    (one / "ids.idx.tmp").write_bytes(b"x")
    with reader(root) as store:
        prompt = store.prompt("p")
        assert prompt.version == 3
        assert len(list(prompt.entries())) == 3
        assert prompt.find(["new"]) == [None]
        with pytest.raises(UnknownVersion, match="has versions 1 to 3, not 4"):
            prompt.update(4)
    (one / "versions" / "tmp.json.tmp").write_bytes(b"{")
    with writer(root) as store:
        assert store.prompt("p").version == 3
    assert picture(root) == before


def test_a_reader_changes_nothing_and_needs_no_lock(root: Path, one: Path) -> None:
    (one / "ids.idx").write_bytes(b"damaged")
    before = {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}
    with writer(root), reader(root) as store:
        assert store.prompt("p").find(["t1-0", "x"]) == [traces("t1", 1)[0][1], None]
        with pytest.raises(StoreReadOnly, match="opened for reading"):
            store.prompt("p").commit(4, b"{}", Commit("p", 4, []).entry, b"{}", [])
    assert {path: path.read_bytes() for path in root.rglob("*") if path.is_file()} == before


@contextmanager
def unprivileged() -> Iterator[None]:
    """As somebody whom the rights of files bind, which root is not."""
    before = os.geteuid()
    if before == 0:
        os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(before)


def test_a_directory_without_the_right_to_write_can_be_read() -> None:
    with tempfile.TemporaryDirectory() as place:
        root = Path(place) / "store"
        with writer(root) as store:
            Commit("p", 1, traces("t", 3)).write(store)
        paths = [Path(place), *root.rglob("*"), root]
        for path in paths:
            path.chmod(0o555 if path.is_dir() else 0o444)
        with unprivileged():
            with reader(root) as store:
                assert store.prompt("p").find(["t-0"]) == [traces("t", 1)[0][1]]
            with pytest.raises(StoreRefused, match="give this user the right"):
                Store.open(root, write=True)
        for path in reversed(paths):
            path.chmod(0o755)


# What it refuses


def test_a_second_writer_is_told_who_the_first_is(root: Path, one: Path) -> None:
    code = "import sys; from stream.store import Store; Store.open(sys.argv[1], write=True)"
    with writer(root):
        with pytest.raises(StoreLocked) as caught:
            writer(root)
        assert caught.value.pid == os.getpid()
        other = subprocess.run([sys.executable, "-c", code, str(root)], capture_output=True, text=True, check=False)
        assert other.returncode != 0
        assert f"is being written by process {os.getpid()}: wait" in other.stderr
    writer(root).close()


def test_unknown_prompts_and_versions(root: Path, one: Path) -> None:
    with reader(root) as store:
        with pytest.raises(UnknownPrompt, match="holds no prompt 'q"):
            store.prompt("q\ud800\x1b[31m")
        for version in (0, 4, -1):
            with pytest.raises(UnknownVersion):
                store.prompt("p").update(version)
    with writer(root) as store:
        assert store.prompt("q").version == 0
        assert store.prompt("q").state() is None
        assert store.prompt("q").find(["a"]) == [None]
        assert list(store.prompt("q").entries()) == []
        with pytest.raises(UnknownVersion, match="has no version yet"):
            store.prompt("q").update(1)
        assert store.prompts() == ["p"]


@pytest.mark.parametrize("write", [True, False])
def test_where_no_store_is(tmp_path: Path, write: bool) -> None:
    (tmp_path / "file").write_text("x")
    (tmp_path / "empty").mkdir()
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.tex").write_text("x")
    for name, message in [
        ("nothing", "there is nothing"),
        ("file", "it is not a directory"),
        ("empty", "it is empty"),
        ("other", "it holds other things"),
        ("file/below", "there is nothing"),
    ]:
        with pytest.raises(NotAStore, match=message):
            Store.open(tmp_path / name, write=write)
    assert os.listdir(tmp_path / "other") == ["thesis.tex"]
    assert os.listdir(tmp_path / "empty") == []


@pytest.mark.parametrize("content", ["thesis.tex", "prompts/mine.txt", "store.json"])
def test_no_store_is_made_among_other_things(root: Path, content: str) -> None:
    (root / content).parent.mkdir(parents=True)
    (root / content).write_text('{"name": "a shop"}')
    with pytest.raises(NotAStore):
        writer(root)
    assert not (root / "lock").exists()
    assert (root / content).read_text() == '{"name": "a shop"}'


def test_a_store_is_not_made_below_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(StoreError, match="file"):
        writer(tmp_path / "file" / "store")


def test_a_newer_store_is_left_alone(root: Path, one: Path) -> None:
    path = root / "store.json"
    path.write_bytes(path.read_bytes().replace(b'"schema":1', b'"schema":2'))
    for open_it in (writer, reader):
        with pytest.raises(StoreTooNew, match="use the tracecomb that wrote it"):
            open_it(root)


def test_a_newer_state_is_left_alone(root: Path, one: Path) -> None:
    (one / "state.json").write_bytes(b'{"schema":2,"all":"new"}\n')
    before = picture(root)
    for open_it in (writer, reader):
        with open_it(root) as store, pytest.raises(StoreTooNew):
            store.prompt("p")
    assert picture(root) == before


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: b"",
        lambda data: data[:-1],
        lambda data: data[: len(data) // 2],
        lambda data: data.replace(b'"version":3', b'"version":2'),
        lambda data: data.replace(b'"state": 3', b'"state": 4'),
        lambda data: bytes(len(data)),
        lambda data: b"[]",
        lambda data: b"[" * 100_000,
    ],
)
def test_a_damaged_state_is_told_and_left_alone(root: Path, one: Path, damage: Callable[[bytes], bytes]) -> None:
    path = one / "state.json"
    path.write_bytes(damage(path.read_bytes()))
    before = picture(root)
    for open_it in (writer, reader):
        with open_it(root) as store, pytest.raises(StoreDamaged, match=r"state\.json is damaged: .*; restore it"):
            store.prompt("p")
    assert picture(root) == before


def test_a_short_log_is_told_and_left_alone(root: Path, one: Path) -> None:
    (one / "log.jsonl").write_bytes((one / "log.jsonl").read_bytes()[:-10])
    before = picture(root)
    with writer(root) as store, pytest.raises(StoreDamaged, match=r"log\.jsonl is damaged: it has \d+ bytes where"):
        store.prompt("p")
    assert picture(root) == before


def test_a_log_that_is_not_ours_is_told(root: Path, one: Path) -> None:
    data = (one / "log.jsonl").read_bytes()
    (one / "log.jsonl").write_bytes(b"x" * 20 + data[20:])
    with reader(root) as store:
        with pytest.raises(StoreDamaged, match="a line cannot be read"):
            list(store.prompt("p").entries())
        with pytest.raises(StoreDamaged, match="a line cannot be read"):
            store.prompt("p").find(["a"])
    (one / "ids.idx").unlink()
    with writer(root) as store, pytest.raises(StoreDamaged, match="a line cannot be read"):
        store.prompt("p").find(["a"])


def test_a_damaged_version_is_told(root: Path, one: Path) -> None:
    (one / "versions" / "00000001.json").unlink()
    (one / "versions" / "00000002.json").write_bytes(b'{"version":')
    with reader(root) as store:
        with pytest.raises(StoreDamaged, match=r"00000001\.json is damaged: it is missing"):
            store.prompt("p").update(1)
        with pytest.raises(StoreDamaged, match=r"00000002\.json is damaged: it is not JSON"):
            store.prompt("p").update(2)
        assert store.prompt("p").update(3)


def test_files_and_directories_that_changed_places(root: Path, one: Path) -> None:
    (root / "prompts" / "q").write_text("x")
    (root / "prompts" / directory_name("r")).mkdir()
    (root / "prompts" / directory_name("r") / "state.json").mkdir()
    (root / "prompts" / ".DS_Store").write_text("x")
    (one / "ids.idx").unlink()
    (one / "ids.idx").mkdir()
    with writer(root) as store:
        assert "q" not in store.prompts()
        with pytest.raises(StoreDamaged, match="a file stands where a directory belongs"):
            store.prompt("q")
        with pytest.raises(StoreDamaged, match="a directory stands where a file belongs"):
            store.prompt("r")
        with pytest.raises(StoreDamaged, match="a directory stands where a file belongs"):
            store.prompt("p").find(["a"])


def test_a_prompt_in_the_place_of_another_is_told(root: Path, one: Path) -> None:
    one.rename(one.with_name("q"))
    with reader(root) as store, pytest.raises(StoreDamaged, match="it holds the prompt 'p', not 'q'"):
        store.prompt("q")


@pytest.mark.parametrize(
    ("error", "advice"),
    [
        (errno.ENOSPC, "free some space"),
        (errno.EROFS, "mounted read-only"),
        (errno.EACCES, "give this user the right"),
        (errno.EIO, "what was committed before is safe"),
    ],
)
def test_what_the_file_system_refuses_is_told_with_place_and_advice(root: Path, error: int, advice: str) -> None:
    disk = Stopping(error=error)
    with writer(root, disk) as store:
        Commit("p", 1, traces("t", 3)).write(store)
        disk.at = disk.calls + 3
        with pytest.raises(StoreRefused, match=advice) as caught:
            Commit("p", 2, traces("u", 3)).write(store)
        assert str(root) in str(caught.value)
        assert caught.value.errno == error
        assert store.prompt("p").version == 1
        assert store.prompt("p").find(["t-0", "u-0"]) == [traces("t", 1)[0][1], None]
        Commit("p", 2, traces("u", 3)).write(store)
        assert store.prompt("p").version == 2


@pytest.mark.parametrize("more", [0, 100])
def test_a_writer_that_gives_up_when_refused_leaves_one_version_or_the_other(tmp_path: Path, more: int) -> None:
    old, new = (Commit("p", version, traces(f"t{version}", 20)) for version in (1, 2))
    pictures = []
    for commits in ([old], [old, new]):
        with writer(tmp_path / f"undisturbed {len(commits)}") as store:
            for commit in commits:
                commit.write(store)
        pictures.append(picture(tmp_path / f"undisturbed {len(commits)}"))
    left = set()
    for after in range(100):
        root = tmp_path / str(after)
        disk = Stopping(error=errno.ENOSPC, more=more)
        store = writer(root, disk)
        old.write(store)
        disk.at = disk.calls + after
        try:
            new.write(store)
        except StoreRefused:
            store.close()
        else:
            break
        writer(root).close()
        left.add(pictures.index(picture(root)))
    assert left == {0, 1}


# The index of trace ids


@pytest.mark.parametrize("damage", ["missing", "empty", "zeros", "bit", "older", "another's", "header of another's"])
def test_the_index_is_built_anew_with_the_same_bytes(tmp_path: Path, damage: str) -> None:
    script = Script(names=("p", "q"), versions=3)
    undisturbed = script.picture(tmp_path / "undisturbed")
    root = tmp_path / "store"
    with writer(root) as store:
        older = b""
        for commit in script.commits():
            commit.write(store)
            older = older or (root / "prompts/p/ids.idx").read_bytes()
    index = root / "prompts" / "p" / "ids.idx"
    whole, another = index.read_bytes(), (root / "prompts/q/ids.idx").read_bytes()
    damaged = {
        "empty": b"",
        "zeros": bytes(len(whole)),
        "bit": whole[:1200] + bytes([whole[1200] ^ 1]) + whole[1201:],
        "older": older,
        "another's": another,
        "header of another's": another[:96] + whole[96:],
    }
    index.unlink()
    if damage != "missing":
        index.write_bytes(damaged[damage])
    with writer(root) as store:
        assert script.check(store) == {"p": 3, "q": 3}
    assert index.read_bytes() == undisturbed["prompts/p/ids.idx"]


def test_an_index_of_a_log_that_went_another_way_is_not_trusted(tmp_path: Path) -> None:
    roots = []
    for name in ("a", "b"):
        roots.append(tmp_path / name / "store")
        with writer(roots[-1]) as store:
            Commit("p", 1, traces("t", 20)).write(store)
            Commit("p", 2, traces(name, 20)).write(store)
    mine, others = (root / "prompts/p/ids.idx" for root in roots)
    whole = mine.read_bytes()
    mine.write_bytes(others.read_bytes())
    with writer(roots[0]) as store:
        assert store.prompt("p").find(["a-0", "b-0"]) == [traces("a", 1)[0][1], None]
    assert mine.read_bytes() == whole


def test_a_store_that_ended_badly_is_looked_through_when_it_is_opened(root: Path, one: Path) -> None:
    before = picture(root)
    store = writer(root)
    with (one / "log.jsonl").open("ab") as log:
        log.write(b'{"vers')
    (one / "ids.idx").unlink()
    (root / "prompts" / "new" / "versions").mkdir(parents=True)
    (root / "prompts" / "new" / "versions" / "00000001.json").write_bytes(b"{}")
    (root / "prompts" / f"{'x' * 80}={'0' * 32}").mkdir()
    (root / "checkpoint.json.tmp").write_bytes(b"{")
    abandon(store)
    writer(root).close()
    assert picture(root) == before


# A state that is not the prompt's newest


@pytest.mark.parametrize("clean", [True, False], ids=["clean end", "unclean end"])
def test_a_missing_state_deletes_nothing(root: Path, one: Path, clean: bool) -> None:
    (one / "state.json").unlink()
    if not clean:
        (root / "lock").write_text("1")
    before = picture(one)
    with pytest.raises(StoreDamaged, match="missing"), writer(root) as store:
        Commit("p", 1, traces("new", 3)).write(store)
    assert picture(one) == before


def test_an_older_state_deletes_nothing(root: Path, one: Path) -> None:
    old = (one / "state.json").read_bytes()
    with writer(root) as store:
        for version in (4, 5):
            Commit("p", version, traces(f"t{version}", 5)).write(store)
    (one / "state.json").write_bytes(old)
    before = picture(one)
    with pytest.raises(StoreDamaged, match="later versions"), writer(root) as store:
        store.prompt("p").find(["t1"])
    assert picture(one) == before


def test_a_state_of_another_store_deletes_nothing(root: Path, one: Path, tmp_path: Path) -> None:
    with writer(tmp_path / "other") as store:
        Commit("p", 1, traces("elsewhere", 7)).write(store)
    (one / "state.json").write_bytes((tmp_path / "other" / "prompts" / "p" / "state.json").read_bytes())
    before = picture(one)
    with pytest.raises(StoreDamaged), writer(root) as store:
        store.prompt("p").find(["t1"])
    assert picture(one) == before
