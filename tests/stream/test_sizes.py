"""Sizes of windows: what the controller chose is kept, given back after a crash, and can be repeated."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from operators.controller import BatchSizes
from operators.overload import Load
from operators.sizes import FixedSize
from operators.window import Cause
from stream.replay import recorded_sizes
from stream.sizes import AutoSizes, RecordedSizes, ResumedSizes
from stream.store import Store
from tests.stream.crashing import Stopping
from tests.stream.logs import Log, trace, write
from tests.stream.replaying import (
    Late,
    Overloaded,
    Versions,
    assert_same,
    crashes,
    erratic,
    learned,
    replay,
    versions,
)

QUICK = {"candidates": (2, 4, 8), "windows_per_size": 1}
LOAD = Load(8, 2, 2, 0, 2)


def sizes_in(root: Path) -> dict[str, list[int]]:
    with Store.open(root, write=False) as store:
        return recorded_sizes(store)


def test_auto_tells_the_controller_of_full_windows_only() -> None:
    controller = BatchSizes((2, 4, 8), windows_per_size=1)
    sizes = AutoSizes(controller)
    assert sizes.assign("p", 1) == 2
    sizes.closed("p", 1, 2, 2, "size", 0.5, LOAD)
    assert controller.export().samples == ((2, 0.5),)
    assert len(controller.overload("p").recent) == 1
    assert sizes.assign("p", 2) == 4
    causes: list[Cause] = ["drain", "bound"]
    for number, cause in enumerate(causes, 2):
        sizes.closed("p", number, 4, 1, cause, 0.5, LOAD)
    assert controller.export().samples == ((2, 0.5),)
    assert controller.export().missed == (0, 0, 0)
    assert len(controller.overload("p").recent) == 3


def test_auto_tells_the_controller_of_sizes_that_a_stream_is_too_slow_for() -> None:
    controller = BatchSizes((2, 4, 8), windows_per_size=1)
    sizes = AutoSizes(controller)
    dealt = []
    for number in range(1, 9):
        size = sizes.assign("p", number)
        dealt.append(size)
        sizes.closed("p", number, size, min(size, 3), "size" if size <= 3 else "time", 0.5, LOAD)
    assert controller.export().missed == (0, 2, 2)
    assert dealt == [2, 4, 4, 8, 8, 2, 2, 2], "each size that closes by time twice is left out"


def test_recorded_sizes_are_dealt_in_order_then_the_smallest() -> None:
    sizes = RecordedSizes({"p": [3, 1], "q": [7]}, 8)
    assert [sizes.assign("p", number) for number in (1, 2, 3)] == [3, 1, 8]
    assert [sizes.assign("q", 1), sizes.assign("r", 1)] == [7, 8]
    assert sizes.missing == 2


def test_windows_done_are_dealt_what_they_were() -> None:
    done = {1: 5, 2: 0, 3: 6}
    auto = ResumedSizes(AutoSizes(BatchSizes((2, 4, 8))), lambda _, number: done.get(number))
    assert [auto.assign("p", number) for number in (1, 2, 3, 4)] == [5, 0, 6, 2]
    fixed = ResumedSizes(FixedSize(9), lambda _, number: done.get(number))
    assert [fixed.assign("p", number) for number in (1, 2, 3, 4)] == [9, 0, 9, 9]
    recorded = ResumedSizes(RecordedSizes({"p": [5, 6, 7]}, 9), lambda _, number: done.get(number))
    assert [recorded.assign("p", number) for number in (1, 2, 3, 4, 5)] == [5, 0, 6, 7, 9]


@pytest.mark.parametrize("learning", [{}, {"open_traces": 9, "fold_every": 3}], ids=["", "bound"])
@pytest.mark.parametrize("late", [False, True])
def test_an_auto_run_that_is_stopped_again_and_again_can_be_repeated_at_once(
    tmp_path: Path, late: bool, learning: dict[str, int]
) -> None:
    log = Log(count=160, prompts=4, repeats=50, conflicts=30, bad=50)
    path = log.write(tmp_path / "log")
    for step in (1, 2, 5, 1000):
        root, again = tmp_path / f"auto-{step}", tmp_path / f"again-{step}"
        for number in count():
            method = Late(number) if late else None
            if not crashes(root, path, Versions(step), "auto", learning=learning, controller=QUICK, method=method):
                break
        assert learned(root) == log.ids()
        assert number == 0 or step < 1000
        replay(again, path, "auto", recorded=root, learning=learning, controller=QUICK, chunk=7)
        assert_same(root, again, stats=False)
        assert sizes_in(again) == sizes_in(root)


@given(
    log=st.builds(
        Log,
        count=st.integers(1, 50),
        seed=st.integers(0, 999),
        prompts=st.integers(1, 12),
        repeats=st.integers(0, 100),
        conflicts=st.integers(0, 50),
        bare=st.just(True),
    ),
    stops=st.lists(st.integers(1, 30), max_size=2),
    bound=st.integers(1, 30),
    seed=st.integers(0, 999),
)
@example(log=Log(count=78, seed=137, prompts=4, bare=True), stops=[7, 8, 16], bound=18, seed=137)
@example(log=Log(count=134, seed=23, prompts=3, bare=True), stops=[10, 14, 13, 17, 12], bound=5, seed=23)
def test_whatever_auto_chose_can_be_repeated(
    tmp_path_factory: pytest.TempPathFactory, log: Log, stops: list[int], bound: int, seed: int
) -> None:
    tmp_path = tmp_path_factory.mktemp("auto")
    path, auto, again = log.write(tmp_path / "log"), tmp_path / "auto", tmp_path / "again"
    options: dict[str, Any] = {
        "learning": {"open_traces": bound},
        "controller": {"candidates": (2, 8, 20), "windows_per_size": 1},
    }
    for number, most in enumerate([*stops, 10_000]):
        late, clock = Late(seed + number, longest=0), erratic(seed + number)
        chunk = (1, 16, 64)[number % 3]
        if not crashes(auto, path, Versions(most), "auto", method=late, clock=clock, chunk=chunk, **options):
            break
    assert learned(auto) == log.ids()
    replay(again, path, "auto", recorded=auto, **options)
    assert_same(auto, again, stats=False)


def test_sizes_vary_in_an_auto_run(tmp_path: Path) -> None:
    path = Log(count=300, prompts=2).write(tmp_path / "log")
    replay(tmp_path / "store", path, "auto", controller=QUICK)
    assert len({size for sizes in sizes_in(tmp_path / "store").values() for size in sizes[:-1]}) >= 3


@pytest.mark.parametrize(
    "kept",
    [
        b"",
        b"\xff",
        b"[]",
        b'{"prompts": {"\xff": {}}}',
        b'{"prompts": {"shop/0": {"clamp": -5}}}',
        b'{"prompts": {"shop/0": {"clamp": 3, "recent": [[1, 2, 3, 4, 5]], "settling": -1, "given": -9}}}',
        b'{"sizes": {"candidates": [2, 4, 8], "size": 1000000, "profiling": false}}',
        b'{"sizes": {"candidates": [2, 4, 8], "samples": [[4, -1.0], [3, 1.0]], "missed": [9], "profiling": true}}',
    ],
)
def test_whatever_is_kept_of_the_controller_sizes_stay_within_the_candidates(tmp_path: Path, kept: bytes) -> None:
    log = Log(count=100, prompts=2)
    path, root = log.write(tmp_path / "log"), tmp_path / "store"
    assert crashes(root, path, Versions(1), "auto", controller=QUICK)
    (root / "controller.json").write_bytes(kept)
    replay(root, path, "auto", controller=QUICK)
    assert learned(root) == log.ids()
    assert all(2 <= size <= 8 for sizes in sizes_in(root).values() for size in sizes[:-1])


def test_a_repeated_run_can_be_stopped_too(tmp_path: Path) -> None:
    path = Log(count=120, prompts=3, repeats=50).write(tmp_path / "log")
    auto = tmp_path / "auto"
    replay(auto, path, "auto", controller=QUICK, method=Overloaded())
    for number in range(1, versions(auto) + 1, 3):
        root = tmp_path / str(number)
        disk = Versions(number)
        assert crashes(root, path, disk, "auto", recorded=auto, controller=QUICK, method=Overloaded())
        replay(root, path, "auto", recorded=auto, controller=QUICK, method=Overloaded(), chunk=11)
        assert_same(root, auto, stats=False)


def test_an_auto_run_stopped_at_every_write(tmp_path: Path) -> None:
    log = Log(count=30, prompts=1, bad=100)
    path = log.write(tmp_path / "log")
    for at in count(step=3):
        root, again = tmp_path / f"auto-{at}", tmp_path / f"again-{at}"
        if not crashes(root, path, Stopping(at), "auto", controller=QUICK):
            break
        replay(root, path, "auto", controller=QUICK)
        replay(again, path, "auto", recorded=root, controller=QUICK)
        assert_same(root, again, stats=False)
    assert at > 60


def test_a_second_run_over_a_grown_log_can_be_repeated_as_a_second_run(tmp_path: Path) -> None:
    lines = list(Log(count=150, prompts=3).lines())
    path = tmp_path / "log"
    auto, again, once = tmp_path / "auto", tmp_path / "again", tmp_path / "once"
    for root in (auto, again):
        recorded = None if root is auto else auto
        path.write_bytes(b"\n".join(lines[:70]))
        replay(root, path, "auto", recorded=recorded, controller=QUICK)
        path.write_bytes(b"\n".join(lines))
        replay(root, path, "auto", recorded=recorded, controller=QUICK)
    assert_same(auto, again, stats=False)
    replay(once, path, "auto", recorded=auto, controller=QUICK)
    assert sizes_in(once) == sizes_in(auto)
    assert learned(once) == learned(auto)


# From run to run

# With a second a window T(n) falls as 1/n, so whatever the candidates the plateau is the first of them times √62.5.
PROFILED: dict[str, Any] = {"candidates": (2, 4, 10, 30), "windows_per_size": 1}
PLATEAU = 16


def steady(pace: float = 1.0) -> Callable[[], float]:
    """A clock that says so many seconds more whenever it is asked."""
    return partial(next, count(0.0, pace))


def auto(root: Path, run: int, pace: float = 1.0, **counts: int) -> dict[str, list[int]]:
    """Learn from so many new traces of each prompt; the sizes of the windows that this took."""
    before = sizes_in(root) if root.exists() else {}
    lines = [trace(f"{name}{run}-{at}", prompt=name) for name, each in counts.items() for at in range(each)]
    path = write(root.with_name(f"log-{run}"), *lines)
    replay(root, path, "auto", controller=PROFILED, clock=steady(pace))
    return {name: sizes[len(before.get(name, ())) :] for name, sizes in sizes_in(root).items()}


def kept(root: Path) -> Any:
    return json.loads((root / "controller.json").read_bytes())


def test_a_second_auto_run_starts_from_the_fit_of_the_first(tmp_path: Path) -> None:
    root = tmp_path / "store"
    assert auto(root, 1, a=120) == {"a": [2, 4, 10, 30, 16, 16, 16, 16, 10]}
    assert kept(root)["sizes"]["samples"] == [[2, 1.0], [4, 1.0], [10, 1.0], [30, 1.0]]
    # A prompt that is new has its smallest window first, as the reference of its overload, and is then at once there.
    assert auto(root, 2, a=70, b=50) == {"a": [16, 16, 16, 16, 6], "b": [2, 16, 16, 16]}
    assert kept(root)["sizes"]["size"] == PLATEAU
    assert "profiles" not in kept(root)["sizes"], "there was but one"


def test_a_fit_of_the_first_run_that_no_longer_predicts_is_made_anew(tmp_path: Path) -> None:
    root = tmp_path / "store"
    auto(root, 1, a=120)
    # Ten times as slow: once most of the last five windows say so, sizes are profiled again, to the same plateau.
    assert auto(root, 2, pace=10.0, a=200) == {"a": [16, 16, 16, 2, 4, 10, 30, 16, 16, 16, 16, 16, 16, 10]}
    assert kept(root)["sizes"]["samples"] == [[2, 10.0], [4, 10.0], [10, 10.0], [30, 10.0]]
    assert kept(root)["sizes"]["profiles"] == 2


def test_a_profile_that_the_first_run_did_not_end_goes_on_in_the_second(tmp_path: Path) -> None:
    root = tmp_path / "store"
    assert auto(root, 1, a=6) == {"a": [2, 4]}
    assert auto(root, 2, a=56) == {"a": [10, 30, 16]}


@pytest.mark.parametrize("damage", [None, b"", b"{", b"[]", b"\xff", b'{"sizes": 3}', b'{"prompts": {"a": {}}}'])
def test_without_what_was_kept_a_second_run_is_as_a_first(tmp_path: Path, damage: bytes | None) -> None:
    root = tmp_path / "store"
    auto(root, 1, a=120)
    whole = kept(root)
    if damage is None:
        (root / "controller.json").unlink()
    else:
        (root / "controller.json").write_bytes(damage)
    assert auto(root, 2, a=120) == {"a": [2, 4, 10, 30, 16, 16, 16, 16, 10]}
    assert kept(root) == whole, "and it keeps what it found anew"


def test_sizes_of_other_candidates_are_not_taken_up(tmp_path: Path) -> None:
    root = tmp_path / "store"
    auto(root, 1, a=120)
    path = write(tmp_path / "log", *(trace(f"x-{at}", prompt="b") for at in range(9)))
    replay(root, path, "auto", controller=QUICK, clock=steady())
    assert sizes_in(root)["b"] == [2, 4, 3]
    assert kept(root)["sizes"]["candidates"] == [2, 4, 8]


def test_a_clamp_stays_while_runs_do_not_meet_its_prompt(tmp_path: Path) -> None:
    root = tmp_path / "store"
    auto(root, 1, a=120, b=20)
    document = kept(root)
    document["prompts"]["a"] = {"clamp": 4, "settling": 3, "given": 50, "covered": 40}
    (root / "controller.json").write_text(json.dumps(document))
    auto(root, 2, b=40)
    auto(root, 3, b=40, c=20)
    assert len(kept(root)["prompts"]["b"]["recent"]) == 9, "of one that they do meet, all is kept that they saw"
    assert kept(root)["prompts"]["a"] == document["prompts"]["a"]
    assert list(kept(root)["prompts"]) == ["a", "b", "c"]
    assert auto(root, 4, a=10, b=16) == {"a": [4, 4, 2], "b": [16], "c": []}


def test_a_run_of_fixed_sizes_leaves_what_is_kept_alone(tmp_path: Path) -> None:
    root, path = tmp_path / "store", write(tmp_path / "log", *(trace(f"x{at}") for at in range(9)))
    replay(tmp_path / "fixed", path, 3)
    assert not (tmp_path / "fixed/controller.json").exists()
    auto(root, 1, a=120)
    before = (root / "controller.json").read_bytes()
    assert replay(root, path, 3, go_on=True).updates == 3
    assert (root / "controller.json").read_bytes() == before


def test_a_kill_costs_the_controller_no_more_than_its_last_fifty_versions(tmp_path: Path) -> None:
    path = write(tmp_path / "log", *(trace(f"{at}", prompt=f"p{at // 2}") for at in range(140)))
    for most, there in ((49, False), (59, True)):
        root = tmp_path / str(most)
        assert crashes(root, path, Versions(most), "auto", controller=PROFILED, clock=steady())
        assert (root / "controller.json").exists() == there
    assert len(kept(root)["prompts"]) >= 50
