"""Each trace and each line has one fate: learned, known already, or rejected, whatever it is and whatever fails."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from operators.modelfree import ModelFree
from operators.values import Bullet, Curation, Given, Reflection, Trace
from stream.replay import TooManyRejects
from stream.states import entries
from stream.store import Store
from tests.stream.logs import Log, trace, write
from tests.stream.replaying import (
    Late,
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
)

ODD: dict[str, Any] = {"repeats": 40, "conflicts": 30, "bad": 40}


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


def test_a_run_that_is_stopped_promises_no_more_than_is_kept(tmp_path: Path) -> None:
    log = Log(count=18, prompts=1, bare=True)
    root, message = too_many(tmp_path, [*log.lines(), b"bad", b"bad"], run=2)
    # Eighteen traces were read, and the last two had made no version yet.
    assert learned(root) == {"shop/0": [log.id(number) for number in range(16)]}
    assert "Versions made so far are kept" in message
    assert len(rejects(root)) == 2
    assert f"the bad lines are in {root / 'rejects.jsonl'}" in message
    assert "[rejects]" in message


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
