"""Runs: which replay goes on, which begins, and which is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from stream.replay import settings_of
from stream.runs import RunSettings, SettingsChanged, begin, finish, note
from stream.states import entries
from stream.store import Store
from tests.stream.crashing import Unsynced
from tests.stream.logs import Log
from tests.stream.replaying import Overloaded, Versions, config, crashes, learned, replay, versions


def settings(**changes: Any) -> RunSettings:
    given = {
        "seed": 0,
        "batch_size": "8",
        "method": "model-free",
        "max_staleness": 1,
        "copies": 2,
        "support_traces": 1,
        "support_sessions": 1,
        "token_budget": 80_000,
        "fan_in": 50,
        "fold_every": 50,
        "open_traces": 20_000,
        "counters": False,
    }
    return RunSettings(**{**given, **changes})


@pytest.fixture
def store(tmp_path: Path) -> Any:
    with Store.open(tmp_path / "store", write=True, create=True, disk=Unsynced()) as store:
        yield store


def test_a_run_is_taken_up_until_it_is_finished(store: Store) -> None:
    first, resumed = begin(store, settings(), go_on=False)
    assert (first.number, resumed) == (1, False)
    assert begin(store, settings(), go_on=False) == (first, True)
    assert begin(store, settings(), go_on=True) == (first, True)
    finish(store, first)
    over = store.checkpoint()
    second, resumed = begin(store, settings(), go_on=False)
    assert (second.number, resumed) == (2, False)
    assert store.checkpoint() == over, "a run that may learn nothing leaves the store as it is"
    note(store, second)
    assert begin(store, settings(), go_on=False) == (second, True)


@pytest.mark.parametrize("over", [False, True])
@pytest.mark.parametrize(
    "change",
    [
        {"seed": 1},
        {"batch_size": "auto"},
        {"method": "ace"},
        {"max_staleness": 0},
        {"copies": 1},
        {"support_traces": 2},
        {"support_sessions": 2},
        {"token_budget": 1_000},
        {"fan_in": 2},
        {"fold_every": 3},
        {"open_traces": 1},
        {"counters": True},
    ],
    ids=lambda change: next(iter(change)),
)
def test_other_settings_are_refused_and_named_unless_told_to_go_on(
    store: Store, change: dict[str, Any], over: bool
) -> None:
    first, _ = begin(store, settings(), go_on=False)
    if over:
        finish(store, first)
    before = store.checkpoint()
    with pytest.raises(SettingsChanged) as caught:
        begin(store, settings(**change), go_on=False)
    [(name, now)] = change.items()
    assert caught.value.changed == [(name, getattr(settings(), name), now)]
    assert f"{name} was {getattr(settings(), name)}, is now {now}" in str(caught.value)
    assert "--go-on" in str(caught.value)
    assert store.checkpoint() == before
    second, resumed = begin(store, settings(**change), go_on=True)
    assert (second.number, resumed, second.settings) == (2, False, settings(**change))
    assert begin(store, settings(**change), go_on=False) == (second, True)


def test_every_setting_that_a_replay_has_is_one_of_its_run() -> None:
    # What is set and not compared could change between two halves of a run, and its bytes with it.
    ours = set(msgspec.structs.asdict(settings_of(config())))
    held = set(RunSettings.__struct_fields__)
    assert ours - held == {"fold_after", "max_wait", "straggler_deadline", "in_flight"}
    assert held - ours == {"batch_size", "method"}


@pytest.mark.parametrize("change", [{"size": 5}, {"seed": 1}, {"method": "other"}], ids=["size", "seed", "method"])
def test_a_replay_with_other_settings_is_refused_then_goes_on(tmp_path: Path, change: dict[str, Any]) -> None:
    log = Log(count=60, prompts=3, repeats=50)
    path, root = log.write(tmp_path / "log"), tmp_path / "store"
    assert crashes(root, path, Versions(4), 8)
    options: dict[str, Any] = {"size": 8, **change}
    if "method" in options:
        options["method"] = Overloaded()
        options["method"].name = options["method"].__class__.__name__
    had = learned(root)
    with pytest.raises(SettingsChanged):
        replay(root, path, **options)
    assert learned(root) == had
    tally = replay(root, path, go_on=True, **options)
    assert learned(root) == log.ids()
    assert tally.learned == 60 - sum(map(len, had.values()))
    with pytest.raises(SettingsChanged):
        replay(root, path, 8)
    made = versions(root)
    assert replay(root, path, **options).updates == 0
    assert replay(root, path, 8, go_on=True).updates == 0
    assert versions(root) == made


def test_going_on_with_the_same_settings_takes_the_run_up(tmp_path: Path) -> None:
    log = Log(count=60, prompts=3)
    path, root = log.write(tmp_path / "log"), tmp_path / "store"
    assert crashes(root, path, Versions(4), 8)
    replay(root, path, 8, go_on=True)
    assert msgspec.json.decode((root / "checkpoint.json").read_bytes())["number"] == 1
    assert learned(root) == log.ids()


def test_killed_runs_with_ever_other_settings_lose_nothing(tmp_path: Path) -> None:
    log = Log(count=90, prompts=3, repeats=50)
    path, root = log.write(tmp_path / "log"), tmp_path / "store"
    for number, size in enumerate((3, 7, 2, 11)):
        assert crashes(root, path, Versions(3), size, seed=number, go_on=True, chunk=13)
    replay(root, path, 5, go_on=True)
    assert learned(root) == log.ids()


def test_a_store_without_its_checkpoint_gives_no_run_number_twice(tmp_path: Path) -> None:
    root = tmp_path / "store"
    for seed in (1, 2):
        replay(root, Log(count=40, prompts=2, seed=seed).write(tmp_path / f"log{seed}"), 8)
    (root / "checkpoint.json").unlink()
    replay(root, Log(count=40, prompts=2, seed=3).write(tmp_path / "log3"), 8)
    assert msgspec.json.decode((root / "checkpoint.json").read_bytes())["number"] == 3
    with Store.open(root, write=False) as store:
        runs = [entry.run for name in store.prompts() for entry in entries(store.prompt(name))]
    assert set(runs) == {1, 2, 3}
