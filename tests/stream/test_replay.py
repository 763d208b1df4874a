"""Replays that nobody interrupts: the same log, seed and settings give the same bytes; each trace has one fate."""

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
from operators.values import Bullet, Curation, Given, Reflection, Trace
from stream.replay import TooManyRejects
from stream.states import entries
from stream.store import Store
from tests.kill.soak import run
from tests.kill.worker import Job
from tests.stream.logs import Log
from tests.stream.replaying import (
    Late,
    Overloaded,
    Versions,
    assert_same,
    crashes,
    differing,
    learned,
    rejects,
    replay,
    store_bytes,
    texts,
    versions,
    votes,
)
from tests.stream.test_intake import trace, write

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


def test_a_second_replay_votes_on_the_bullets_of_the_first(tmp_path: Path) -> None:
    path, root = Log(count=100, prompts=2).write(tmp_path / "log"), tmp_path / "store"
    replay(root, path, 8)
    assert votes(root) == {}
    replay(root, Log(count=200, seed=1, prompts=2, named=NAMED).write(path), 8)
    assert len(votes(root)["shop/0"]) >= 5


def too_many(tmp_path: Path, lines: list[bytes], **limits: float) -> tuple[Path, str]:
    root = tmp_path / "store"
    with pytest.raises(TooManyRejects) as caught:
        replay(root, write(tmp_path / "log", *lines), 4, chunk=16, rejects=limits)
    return root, str(caught.value)


@pytest.mark.parametrize(
    ("before", "bad", "limits", "told"),
    [
        (600, 500, {"share": 0.9}, "500 bad lines in a row, the last at LOG:1100 "),
        (1100, 500, {}, "276 of 1376 lines are bad"),
        (28, 8, {"after": 36}, "8 of 36 lines are bad"),
        (100, 26, {"after": 100}, "26 of 126 lines are bad"),
        (100, 21, {"after": 1, "share": 0.1, "run": 50}, "12 of 112 lines are bad"),
        (100, 3, {"run": 3}, "3 bad lines in a row, the last at LOG:103 "),
    ],
)
def test_too_many_bad_lines_stop_the_run(
    tmp_path: Path, before: int, bad: int, limits: dict[str, float], told: str
) -> None:
    log = Log(count=before + 30, prompts=1, bare=True)
    good = [log.line(number) for number in range(before + 30)]
    lines = [*good[:before], *(b"not JSON %d" % number for number in range(bad)), *good[before:]]
    root, message = too_many(tmp_path, lines, **limits)
    assert told.replace("LOG", str(tmp_path / "log")) in message
    assert "rejects.jsonl" in message
    # What was learned before stays, in whole windows, and the bad lines that were read are there.
    had = learned(root)["shop/0"]
    assert had == [log.id(number) for number in range(len(had))]
    assert before - 20 < len(had) <= before
    assert 0 < len(rejects(root)) <= bad
    # Again under the same limits: the same, and nothing twice.
    again, message = too_many(tmp_path, lines, **limits)
    assert told.replace("LOG", str(tmp_path / "log")) in message
    assert learned(again)["shop/0"] == had
    # With higher limits it goes on where it stopped, to the bytes of a run that never did.
    raised = {"share": 1.0, "run": 10_000}
    replay(root, tmp_path / "log", 4, rejects=raised)
    replay(tmp_path / "whole", tmp_path / "log", 4, rejects=raised)
    assert_same(root, tmp_path / "whole")
    assert len(rejects(root)) == bad


def test_too_many_bad_lines_while_calls_are_under_way(tmp_path: Path) -> None:
    log = Log(count=60, prompts=3)
    lines = [*(log.line(number) for number in range(50)), b"bad", b"bad", b"bad"]
    path, root = write(tmp_path / "log", *lines, *(log.line(number) for number in range(50, 60))), tmp_path / "store"
    for number in range(3):
        with pytest.raises(TooManyRejects):
            replay(root, path, 4, chunk=8, method=Late(number), rejects={"run": 3})
    replay(root, path, 4, method=Late(4), rejects={"run": 4})
    replay(tmp_path / "whole", path, 4, rejects={"run": 4})
    assert_same(root, tmp_path / "whole")


def test_bad_lines_below_the_limits_do_not_stop_the_run(tmp_path: Path) -> None:
    log = Log(count=1000, prompts=1, bare=True)
    bad = [b"not JSON %d" % number for number in range(250)]
    # A fifth, and not more than a fifth; before the first 1,000 lines any share will do.
    lines = [log.line(0), *bad[:200], *(log.line(number) for number in range(1, 1000)), *bad[200:]]
    tally = replay(tmp_path / "store", write(tmp_path / "log", *lines), 50)
    assert (tally.learned, tally.rejected) == (1000, 250)


def test_a_good_line_ends_a_run_of_bad_ones(tmp_path: Path) -> None:
    log = Log(count=30, prompts=1)
    lines = [line for number in range(30) for line in (log.line(number), b"bad", b"bad")]
    tally = replay(tmp_path / "store", write(tmp_path / "log", *lines), 8, rejects={"run": 3})
    assert (tally.learned, tally.rejected) == (30, 60)


class Refusing(ModelFree):
    """Cannot reflect every seventh trace."""

    def reflect(self, trace: Trace, seen: Sequence[Bullet]) -> Reflection:
        if trace.id.endswith("7"):
            raise RuntimeError(f"no sense in {trace.id} \udc80")
        return super().reflect(trace, seen)


def sorted_rejects(root: Path) -> list[tuple[str, int, str]]:
    return sorted((each["file"], each["line"], each["reason"]) for each in rejects(root))


def assert_same_but_for_the_order_of_rejects(left: Path, right: Path) -> None:
    found = differing(store_bytes(left), store_bytes(right))
    assert set(found) <= {"rejects.jsonl", "rejects.idx"}
    assert sorted_rejects(left) == sorted_rejects(right)


@pytest.mark.parametrize("late", [False, True])
def test_a_trace_that_nobody_can_reflect_is_rejected_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, late: bool
) -> None:
    log = Log(count=60, prompts=3, **ODD)
    path, root = log.write(tmp_path / "log"), tmp_path / "store"
    monkeypatch.setattr("operators.learner.ModelFree", Refusing)
    tally = replay(root, path, 4, method=Refusing())
    refused = [f"t0-{number}" for number in range(7, 60, 10)]
    bad = [each for each in rejects(root) if "no sense" not in each["reason"]]
    told = [each for each in rejects(root) if "no sense" in each["reason"]]
    assert sorted(each["reason"] for each in told) == sorted(f"RuntimeError: no sense in {id} ?" for id in refused)
    assert all(f'"id":"{id}"' in "".join(each["raw"] for each in told) for id in refused)
    assert (tally.learned, tally.rejected) == (60 - len(refused), len(refused) + len(bad))
    assert learned(root) == log.ids()
    with Store.open(root, write=False) as store:
        noted = [id for name in store.prompts() for entry in entries(store.prompt(name)) for id, _ in entry.rejected]
    assert sorted(noted) == sorted(refused)
    # Stopped anywhere and taken up, at any speed: still once each.
    for number in range(1, versions(root) + 1):
        stopped = tmp_path / str(number)
        method = Late(number, Refusing()) if late else Refusing()
        assert crashes(stopped, path, Versions(number), 4, method=method, chunk=9)
        replay(stopped, path, 4, method=method)
        assert_same_but_for_the_order_of_rejects(stopped, root)
    assert replay(root, path, 4, method=Refusing()).updates == 0


def test_a_reflection_that_fails_falls_back_and_is_no_reject(tmp_path: Path) -> None:
    log = Log(count=60, prompts=3)
    path = log.write(tmp_path / "log")
    tally = replay(tmp_path / "store", path, 4, method=Refusing())
    assert (tally.learned, tally.rejected) == (60, 0)
    replay(tmp_path / "plain", path, 4)
    assert_same(tmp_path / "store", tmp_path / "plain")


class Broken(ModelFree):
    """Its curator always fails."""

    def curate(self, given: Sequence[Given], base: Sequence[Bullet]) -> Curation:
        raise RuntimeError("no curator")


def test_a_curator_that_fails_loses_no_lesson(tmp_path: Path) -> None:
    path = Log(count=60, prompts=3).write(tmp_path / "log")
    replay(tmp_path / "store", path, 8, method=Broken())
    replay(tmp_path / "plain", path, 8)
    assert texts(tmp_path / "store") == texts(tmp_path / "plain")


class Silent(ModelFree):
    """Its curator cites nothing."""

    def curate(self, given: Sequence[Given], base: Sequence[Bullet]) -> Curation:
        return Curation()


def test_what_no_curator_cited_enters_at_the_end(tmp_path: Path) -> None:
    path = Log(count=100, prompts=3).write(tmp_path / "log")
    replay(tmp_path / "store", path, 8, method=Silent())
    with Store.open(tmp_path / "store", write=False) as store:
        for name in store.prompts():
            *_, before, end = entries(store.prompt(name))
            assert before.carried
            assert (end.kind, end.traces, end.carried, end.window) == ("window", (), (), before.window + 1)


def test_what_json_can_hardly_hold_is_learned(tmp_path: Path) -> None:
    good = trace("a")
    lines = [
        trace("b", "lone \ud83d surrogate"),
        trace("c", "line\u2028separator \u0085 and \x1f"),
        good.replace(b'"a"', b'"d"').replace(b'"task": "a task"', b'"task": "bad \xff byte"'),
        good.replace(b'"a"', b'"e"').replace(b'"schema": 1', b'"usage": {"cost": NaN, "tokens": -Infinity}'),
        good.replace(b'"a"', b'"f"').replace(b'"schema": 1', b'"usage": {"tokens": ' + b"9" * 5000 + b"}"),
        trace("g", "x" * 3_000_000),
        trace("h \ud800", prompt="p \udc00"),
        trace("i", ended="9999-12-31T23:59:59.999999-14:00"),
        trace("j", ended="no time at all"),
        trace("k" * 10_000),
        b"\xef\xbb\xbf" + trace("l"),
        trace("m") + b"\r",
        trace("n\u0000"),
    ]
    path = write(tmp_path / "log", good, *lines)
    for name, chunk in (("one", 1), ("all", 512)):
        tally = replay(tmp_path / name, path, 4, chunk=chunk)
        assert (tally.learned, tally.rejected) == (len(lines) + 1, 0)
    assert_same(tmp_path / "one", tmp_path / "all")
    found = learned(tmp_path / "one")
    assert found["p \ufffd"] == ["h \ufffd"]
    assert found["default"] == ["a", "b", "c", "d", "e", "f", "g", "i", "j", "k" * 10_000, "l", "m", "n\u0000"]
    for number in range(1, versions(tmp_path / "one") + 1):
        root = tmp_path / str(number)
        assert crashes(root, path, Versions(number), 4)
        replay(root, path, 4, chunk=3)
        assert_same(root, tmp_path / "one")


def test_files_without_a_trace_are_skipped_and_counted(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    log = Log(count=20, prompts=1)
    log.write(tmp_path / "logs/b.jsonl")
    (tmp_path / "logs/a.txt").write_text("notes\n" * 2000)
    (tmp_path / "logs/c.png").write_bytes(b"\x89PNG" + bytes(100))
    tally = replay(tmp_path / "store", tmp_path / "logs", 8)
    assert [Path(file).name for file, _ in tally.skipped] == ["a.txt", "c.png"]
    assert (tally.learned, tally.rejected) == (20, 0)


def test_an_empty_log_is_a_whole_run(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"")
    tally = replay(tmp_path / "store", path, 8)
    assert (tally.learned, tally.updates, len(tally.skipped)) == (0, 0, 1)
    assert json.loads((tmp_path / "store/checkpoint.json").read_bytes())["finished"]


MANY = """
import resource, sys
from pathlib import Path
from tests.stream.replaying import replay
resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))  # what macOS gives
replay(Path(sys.argv[1]), Path(sys.argv[2]), 2)
"""


@pytest.mark.slow
@pytest.mark.timeout(180)
def test_ten_thousand_prompts_in_one_log(tmp_path: Path) -> None:
    path = tmp_path / "log"
    names = [f"p{number * 7919 % 10_000}" for number in range(20_000)]
    # Each comes back after all others, so no index of ids can stay open.
    write(path, *(pays(f"t{number}", prompt=name) for number, name in enumerate(names)))
    command = [sys.executable, "-c", MANY, str(tmp_path / "store"), str(path)]
    done = subprocess.run(command, check=False, cwd=ROOT, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    found = learned(tmp_path / "store")
    assert len(found) == 10_000
    assert all(len(ids) == 2 for ids in found.values())


@pytest.mark.slow
def test_memory_is_flat(tmp_path: Path) -> None:
    peaks = []
    for count in (6_000, 24_000):
        path = Log(count=count, prompts=5, bare=True).write(tmp_path / "log")
        peaks.append(run(Job(store=str(tmp_path / str(count)), logs=[str(path)])).memory)
    assert peaks[1] < 1.3 * peaks[0], peaks
