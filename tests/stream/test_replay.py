"""Replays that nobody interrupts: the same log, seed and settings give the same bytes."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from operators.modelfree import ModelFree
from operators.settings import Settings
from operators.values import Bullet, Curation, Given
from operators.version import publish_delta
from operators.view import removal
from stream.states import commit, newest
from stream.store import Store
from tests.stream.crashing import Unsynced
from tests.stream.logs import Log, trace, write
from tests.stream.replaying import (
    Late,
    Overloaded,
    Versions,
    assert_same,
    crashes,
    differing,
    learned,
    replay,
    store_bytes,
    texts,
    votes,
)

ROOT = Path(__file__).parents[2]
ODD: dict[str, Any] = {"repeats": 40, "conflicts": 30, "bad": 40}
NAMED = tuple(f"err-{number:05}" for number in range(1, 12))


@pytest.mark.parametrize("learning", [{"fold_every": 3}, {"open_traces": 11, "fold_every": 3}], ids=["", "bound"])
@pytest.mark.parametrize("method", [ModelFree, Overloaded])
@pytest.mark.parametrize("size", [1, 3, 8, 50])
def test_neither_chunks_nor_speed_change_anything(
    tmp_path: Path, size: int, method: Any, learning: dict[str, int]
) -> None:
    log = Log(count=60 if size == 1 else 150, prompts=5, **ODD, named=NAMED)
    path = log.write(tmp_path / "log")
    replay(tmp_path / "whole", path, size, method=method(), learning=learning)
    assert learned(tmp_path / "whole") == log.ids()
    for chunk in (1, 7, 64):
        replay(tmp_path / f"{chunk}", path, size, chunk=chunk, method=method(), learning=learning)
        assert_same(tmp_path / f"{chunk}", tmp_path / "whole")
        late = Late(chunk, method())
        replay(tmp_path / f"{chunk}-late", path, size, chunk=chunk, method=late, learning=learning)
        assert_same(tmp_path / f"{chunk}-late", tmp_path / "whole")


@given(
    log=st.builds(
        Log,
        count=st.integers(0, 40),
        seed=st.integers(0, 999),
        prompts=st.integers(1, 30),
        repeats=st.integers(0, 200),
        conflicts=st.integers(0, 100),
        bad=st.integers(0, 100),
        bare=st.just(True),
    ),
    size=st.integers(1, 6),
    bound=st.integers(1, 30),
    chunk=st.integers(2, 30),
)
def test_chunks_change_nothing(
    tmp_path_factory: pytest.TempPathFactory, log: Log, size: int, bound: int, chunk: int
) -> None:
    tmp_path = tmp_path_factory.mktemp("chunks")
    path = log.write(tmp_path / "log")
    for name, length in (("one", 1), ("more", chunk)):
        replay(tmp_path / name, path, size, chunk=length, learning={"open_traces": bound})
    assert_same(tmp_path / "one", tmp_path / "more")
    assert learned(tmp_path / "one") == log.ids()


def test_the_oldest_window_is_the_same_however_traces_are_chunked(tmp_path: Path) -> None:
    # b's window is older than a's second, though a has two traces more in the chunk.
    order = "abaacdee"
    lines = [trace(str(number), prompt=prompt) for number, prompt in enumerate(order)]
    path = write(tmp_path / "log", *lines)
    replay(tmp_path / "one", path, 2, chunk=1, learning={"open_traces": 4})
    for chunk in range(2, 9):
        replay(tmp_path / f"{chunk}", path, 2, chunk=chunk, learning={"open_traces": 4})
        assert_same(tmp_path / f"{chunk}", tmp_path / "one")


ELSEWHERE = """
import sys
from pathlib import Path
from tests.stream.replaying import Overloaded, replay
replay(Path(sys.argv[1]), Path(sys.argv[2]), 8, method=Overloaded(), learning={"fold_every": 3})
"""


def test_hash_seeds_change_nothing(tmp_path: Path) -> None:
    path = Log(count=150, prompts=2, named=NAMED).write(tmp_path / "log")
    for seed in ("1", "2", "3"):
        command = [sys.executable, "-c", ELSEWHERE, str(tmp_path / seed), str(path)]
        subprocess.run(command, check=True, cwd=ROOT, env={**os.environ, "PYTHONHASHSEED": seed})
    assert_same(tmp_path / "1", tmp_path / "2")
    assert_same(tmp_path / "1", tmp_path / "3")


class Watched(ModelFree):
    """Remembers which traces sat at a table together."""

    def __init__(self) -> None:
        self.tables: list[list[str]] = []

    def curate(self, given: Sequence[Given], base: Sequence[Bullet]) -> Curation:
        self.tables.append([one.trace for one in given])
        return super().curate(given, base)


def test_another_seed_deals_other_groups_of_the_same_lessons(tmp_path: Path) -> None:
    path = Log(count=200, prompts=2).write(tmp_path / "log")
    watched = [Watched(), Watched(), Watched()]
    for seed, method in zip((0, 0, 1), watched, strict=True):
        replay(tmp_path / f"{id(method)}", path, 50, seed=seed, method=method)
    first, same, other = (method.tables for method in watched)
    assert first == same
    assert first != other
    shown = [texts(tmp_path / f"{id(method)}") for method in watched]
    assert shown[0] == shown[1] == shown[2]
    assert sum(map(len, shown[0].values())) > 20


def test_a_log_that_has_grown_teaches_what_is_new(tmp_path: Path) -> None:
    log = Log(count=90, prompts=3, repeats=50)
    lines, path, root = list(log.lines()), tmp_path / "log", tmp_path / "store"
    path.write_bytes(b"\n".join(lines[:40]))
    first = replay(root, path, 8)
    path.write_bytes(b"\n".join(lines))
    had = learned(root)
    second = replay(root, path, 8)
    assert first.learned + second.learned == 90
    assert learned(root) == log.ids()
    assert {name: ids[: len(had[name])] for name, ids in learned(root).items()} == had
    before = store_bytes(root)
    third = replay(root, path, 8)
    assert (third.learned, third.updates, third.rejected, third.duplicates) == (0, 0, 0, len(lines))
    assert differing(store_bytes(root), before) == []


def test_the_same_log_once_more_teaches_nothing_under_auto(tmp_path: Path) -> None:
    path, root = Log(count=90, prompts=3, bad=40).write(tmp_path / "log"), tmp_path / "store"
    replay(root, path, "auto")
    before = store_bytes(root)
    tally = replay(root, path, "auto")
    assert (tally.learned, tally.updates, tally.duplicates) == (0, 0, 90)
    assert differing(store_bytes(root), before) == []


def pays(id: str, tool: str = "pay", **fields: Any) -> bytes:
    """A trace that teaches the one lesson that there is about a tool."""
    return trace(id, "card", **fields).replace(f" for {id}".encode(), b"").replace(b'"pay"', f'"{tool}"'.encode())


def test_traces_vote_on_what_was_known_when_the_run_began(tmp_path: Path) -> None:
    root, log = tmp_path / "store", tmp_path / "log"
    replay(root, write(log, pays("a"), pays("b", "wire")), 1)
    with Store.open(root, write=False) as store:
        ids = sorted(each["id"] for each in json.loads(store.prompt("default").update(2))["bullets"])
        lineage = store.lineage
    assert ids == ["err-00001", "err-00002"]  # of pay and of wire
    voters = [
        pays("v1", bullets=["err-00001"], lineage=lineage),
        pays("v2", bullets=["err-00001", "err-00002"]),
        pays("v3", bullets=["err-00001"], lineage="another store's"),
        pays("v4", "tip", bullets=["err-00001"]),
        pays("v0", "wire", bullets=["err-00001", "err-00002"]).replace(b'"error"', b'"content"'),
        pays("v5", version=2, lineage=lineage),
        pays("v6", version=2),
        # The run invents err-00003 in its own windows: what an agent had read before that cannot be meant.
        pays("v7", bullets=["err-00003"]),
        pays("v8", "tip", bullets=["err-00003"]),
        pays("v9", version=4, lineage=lineage),
    ]
    write(log, *voters)
    counts = []
    for number, (chunk, method) in enumerate([(1, None), (3, None), (9, None), (2, Late(1)), (9, Late(2))]):
        at = tmp_path / str(number)
        shutil.copytree(root, at)
        replay(at, log, 1, chunk=chunk, method=method)
        counts.append(votes(at))
        if number:
            assert_same(at, tmp_path / "0")
    for number in range(1, len(voters) + 1):
        at = tmp_path / f"stopped-{number}"
        shutil.copytree(root, at)
        assert crashes(at, log, Versions(number), 1)
        replay(at, log, 1, chunk=number)
        assert_same(at, tmp_path / "0")
    [found] = counts[0].values()
    pay, wire = (next(text for text in found if f"`{tool}`" in text) for tool in ("pay", "wire"))
    # The error came back for v1, v2 and v5, of whom v2 had read of wire too but did not use it; v0 used it in peace.
    assert found == {pay: (0, 3), wire: (1, 0)}


@pytest.mark.parametrize("size", [1, 2, 3])
def test_every_trace_votes_by_one_rule_also_where_nothing_was_shown_when_the_run_began(
    tmp_path: Path, size: int
) -> None:
    root, log = tmp_path / "store", tmp_path / "log"
    replay(root, write(log, pays("a")), size)
    with Store.open(root, write=True, disk=Unsynced()) as store:
        prompt = store.prompt("default")
        state = newest(prompt)
        [bullet] = state.now.bullets
        gone = removal(state.now.playbook, [bullet.bullet], state.now.window)
        commit(prompt, publish_delta(state, gone, Settings(), kind="edit"))
        assert newest(prompt).now.bullets == ()
    # The bullet is gone, but these agents had read it, and they teach it again: then all their votes on it count.
    voters = [pays(f"v{number}", bullets=[bullet.id]) for number in range(6)]
    write(log, *voters)
    whole = tmp_path / "whole"
    shutil.copytree(root, whole)
    replay(whole, log, size)
    assert votes(whole) == {"default": {bullet.content: (0, len(voters))}}
    for number in range(1, len(voters) // size + 1):
        at = tmp_path / str(number)
        shutil.copytree(root, at)
        assert crashes(at, log, Versions(number), size, chunk=1)
        replay(at, log, size, chunk=number)
        assert_same(at, whole)


def test_a_second_replay_votes_on_the_bullets_of_the_first(tmp_path: Path) -> None:
    path, root = Log(count=100, prompts=2).write(tmp_path / "log"), tmp_path / "store"
    replay(root, path, 8)
    assert votes(root) == {}
    replay(root, Log(count=200, seed=1, prompts=2, named=NAMED).write(path), 8)
    assert len(votes(root)["shop/0"]) >= 5
