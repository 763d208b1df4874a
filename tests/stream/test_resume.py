"""A replay that ends at any instant and is taken up again: the same bytes as one that never was interrupted."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from operators.entry import Entry
from operators.imports import import_delta
from operators.settings import Settings
from operators.state import PromptState
from operators.values import Bullet
from operators.version import publish_delta, publish_rollback
from stream.resume import Done
from stream.states import commit, entries, newest, state_at
from stream.store import Store
from tests.stream.crashing import Stopping, Unsynced
from tests.stream.logs import Log
from tests.stream.replaying import (
    Late,
    Overloaded,
    Versions,
    assert_same,
    crashes,
    learned,
    rejects,
    replay,
    versions,
)

SMALL = {"open_traces": 13, "fold_every": 3}
ODD: dict[str, Any] = {"repeats": 60, "conflicts": 40, "bad": 60}
NAMED = tuple(f"err-{number:05}" for number in range(1, 12))


def crash_after_each_version(
    tmp_path: Path,
    log: Path,
    size: int | str = 3,
    *,
    before: Path | None = None,
    method: Callable[[int], Any] = lambda _: None,
    step: int = 1,
    **options: Any,
) -> Path:
    """Compare a run that was stopped after its version number n, for every n, with one that was not.

    :param before: a log that the store has learned from already.
    """
    whole = tmp_path / "whole"
    if before is not None:
        replay(whole, before, size, **options)
    old = versions(whole) if before is not None else 0
    replay(whole, log, size, method=method(0), **options)
    made = versions(whole) - old
    assert made > 3
    for number in range(1, made + 1, step):
        root = tmp_path / str(number)
        if before is not None:
            replay(root, before, size, **options)
        assert crashes(root, log, Versions(number), size, method=method(number), **options)
        assert versions(root) == old + number
        replay(root, log, size, method=method(number + 1), chunk=1 + number % 40, **options)
        assert_same(root, whole)
    return whole


@pytest.mark.parametrize("size", [1, 3, 8, 50])
def test_stopped_after_each_version(tmp_path: Path, size: int) -> None:
    log = Log(count=40 if size == 1 else 90, prompts=4, **ODD, named=NAMED)
    whole = crash_after_each_version(tmp_path, log.write(tmp_path / "log"), size, learning={"fold_every": 3})
    assert learned(whole) == log.ids()


def test_stopped_while_the_bound_closes_windows(tmp_path: Path) -> None:
    log = Log(count=120, prompts=6, **ODD)
    whole = crash_after_each_version(tmp_path, log.write(tmp_path / "log"), 8, learning=SMALL)
    assert learned(whole) == log.ids()


def test_stopped_with_a_curator_that_leaves_insights_uncited(tmp_path: Path) -> None:
    log = Log(count=100, prompts=3, **ODD)
    crash_after_each_version(
        tmp_path, log.write(tmp_path / "log"), 8, method=lambda _: Overloaded(), learning={"fold_every": 3}
    )


def test_stopped_while_calls_are_under_way(tmp_path: Path) -> None:
    log = Log(count=100, prompts=4, **ODD)
    path = log.write(tmp_path / "log")
    crash_after_each_version(tmp_path, path, 8, method=lambda seed: Late(seed, Overloaded()), learning=SMALL)


def test_stopped_in_a_second_replay_over_a_log_that_has_grown(tmp_path: Path) -> None:
    lines = list(Log(count=120, prompts=3, **ODD, named=NAMED).lines())
    short, long = tmp_path / "short", tmp_path / "long"
    short.write_bytes(b"\n".join(lines[:60]) + b"\n")
    long.write_bytes(b"\n".join(lines) + b"\n")
    crash_after_each_version(tmp_path, long, 4, before=short, learning={"fold_every": 3})


def test_stopped_at_every_write(tmp_path: Path) -> None:
    log = Log(count=16, prompts=2, repeats=150, conflicts=100, bad=200)
    path = log.write(tmp_path / "log")
    whole = tmp_path / "whole"
    replay(whole, path, 4)
    for at in count():
        root = tmp_path / f"at-{at}"
        if not crashes(root, path, Stopping(at), 4, chunk=5):
            break
        replay(root, path, 4)
        assert_same(root, whole)
    assert at > 80
    assert learned(whole) == log.ids()
    assert len(rejects(whole)) == len({(each["file"], each["line"]) for each in rejects(whole)}) >= 2


@given(data=st.data())
def test_stopped_again_and_again(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    tmp_path = tmp_path_factory.mktemp("again")
    log = Log(
        count=data.draw(st.integers(1, 60)),
        seed=data.draw(st.integers(0, 99)),
        prompts=data.draw(st.integers(1, 8)),
        repeats=data.draw(st.integers(0, 300)),
        conflicts=data.draw(st.integers(0, 200)),
        bad=data.draw(st.integers(0, 150)),
    )
    path = log.write(tmp_path / "log")
    size = data.draw(st.integers(1, 9))
    methods: list[Callable[[int], Any]] = [
        lambda _: None,
        lambda _: Overloaded(),
        lambda seed: Late(seed, longest=0),
        lambda seed: Late(seed, Overloaded(), longest=0),
    ]
    method = data.draw(st.sampled_from(methods))
    learning = {"open_traces": data.draw(st.integers(1, 40)), "fold_every": data.draw(st.integers(3, 5))}
    replay(tmp_path / "whole", path, size, learning=learning, method=method(0))
    root = tmp_path / "stopped"
    for number in range(data.draw(st.integers(1, 4))):
        disk, chunk = Stopping(data.draw(st.integers(0, 300))), data.draw(st.integers(1, 64))
        if not crashes(root, path, disk, size, learning=learning, chunk=chunk, method=method(number)):
            break
    replay(root, path, size, learning=learning, chunk=data.draw(st.integers(1, 64)), method=method(9))
    assert_same(root, tmp_path / "whole")
    assert learned(root) == log.ids()


LOG = Log(count=60, prompts=4)
OTHER = Log(count=20, seed=1, prompts=4)
LINES, OTHERS = list(LOG.lines()), list(OTHER.lines())


@pytest.mark.parametrize("size", [1, 4, 50])
@pytest.mark.parametrize(
    "after",
    [
        pytest.param(LINES[20:], id="the beginning is gone"),
        pytest.param(LINES[:20], id="the end is gone"),
        pytest.param(LINES[:10] + LINES[30:], id="a part is gone"),
        pytest.param(LINES[::-1], id="reversed"),
        pytest.param(LINES[1::2] + LINES[::2], id="shuffled"),
        pytest.param(LINES[:5] + OTHERS + LINES[5:], id="others in it"),
        pytest.param(OTHERS + LINES, id="others before it"),
        pytest.param(OTHERS, id="others instead"),
        pytest.param([], id="empty"),
    ],
)
def test_the_log_is_another_after_the_crash(tmp_path: Path, size: int, after: list[bytes]) -> None:
    path = tmp_path / "log"
    for number in (1, 2, 5, 9):
        root = tmp_path / str(number)
        path.write_bytes(b"\n".join(LINES))
        if not crashes(root, path, Versions(number), size, learning=SMALL):
            continue
        had = learned(root)
        path.write_bytes(b"\n".join(after) + b"\n")
        replay(root, path, size, learning=SMALL)
        has = learned(root)
        for prompt, ids in has.items():
            assert len(set(ids)) == len(ids)
            assert ids[: len(had.get(prompt, ()))] == had.get(prompt, [])
        # All that was learned before, and all that is in the log now.
        now = {id for log, lines in ((LOG, LINES), (OTHER, OTHERS)) for id in held(log, lines, after)}
        assert {id for ids in has.values() for id in ids} == now | {id for ids in had.values() for id in ids}
        assert replay(root, path, size, learning=SMALL).updates == 0
        # What was gone comes back.
        path.write_bytes(b"\n".join(LINES))
        replay(root, path, size, learning=SMALL)
        for prompt, ids in learned(root).items():
            assert len(set(ids)) == len(ids)
            assert set(LOG.ids()[prompt]) <= set(ids)


def held(log: Log, lines: list[bytes], after: list[bytes]) -> set[str]:
    """The ids of a log's traces that are among ``after``."""
    there = set(after)
    return {log.id(number) for number, line in enumerate(lines) if line in there}


@pytest.mark.parametrize("kind", ["rollback", "import"])
def test_a_person_changes_a_prompt_between_crash_and_resumption(tmp_path: Path, kind: str) -> None:
    log = Log(count=80, prompts=3, **ODD)
    path = log.write(tmp_path / "log")
    for number in (1, 4, 9, 14):
        root = tmp_path / str(number)
        assert crashes(root, path, Versions(number), 4, learning=SMALL)
        with Store.open(root, write=True, disk=Unsynced()) as store:
            for name in store.prompts():
                state = newest(store.prompt(name))
                if kind == "rollback":
                    made = publish_rollback(state, PromptState(name), Settings(), at="2026-03-01T00:00:00Z")
                else:
                    bullets = (Bullet("x-00001", "OTHERS", "what a person knows"),)
                    made = publish_delta(state, import_delta(bullets), Settings(), kind="import")
                commit(store.prompt(name), made)
        replay(root, path, 4, learning=SMALL)
        assert learned(root) == log.ids()
        with Store.open(root, write=False) as store:
            for name in store.prompts():
                found = list(entries(store.prompt(name)))
                assert [each.version for each in found] == list(range(1, len(found) + 1))
                assert state_at(store.prompt(name), len(found)).now == newest(store.prompt(name)).now
        assert replay(root, path, 4, learning=SMALL).updates == 0


def entry(version: int, window: int, run: int, *ids: str) -> Entry:
    traces = tuple((id, "") for id in ids)
    return Entry("p", version, 0, "window", True, window, run=run, batch_size=len(ids), traces=traces)


def test_done_tells_whose_turn_it_is() -> None:
    done = Done([entry(1, 1, 1, "a", "b"), entry(2, 2, 2, "c", "d"), entry(3, 3, 2), entry(4, 4, 2, "e")], 2)
    assert (done.start_version, done.start_window) == (1, 1)
    assert [done.size(window) for window in range(1, 6)] == [None, 2, 0, 1, None]
    assert [done.is_next(id) for id in ("a", "d", "c", "c", "d")] == [False, False, True, False, True]
    assert done.is_next("e")
    assert not done.is_next("e")


def test_done_gives_up_for_good() -> None:
    done = Done([entry(1, 1, 1, "a", "b")], 1)
    assert done.is_next("a")
    assert done.give_up()
    assert not done.is_next("b")
    assert not done.give_up()
    assert not Done([entry(1, 1, 1, "a", "b")], 2).give_up()
