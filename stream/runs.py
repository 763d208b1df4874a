"""Runs: a replay that was killed goes on as the same run, under the same settings, or not at all."""

from __future__ import annotations

import msgspec
from msgspec import Struct
from msgspec.structs import asdict

from operators.wire import encode
from stream.states import entries
from stream.store import Store
from stream.storeerrors import StoreDamaged

SCHEMA = 1


class SettingsChanged(Exception):
    """The store was learned with other settings; learning on with these would not be the same learning.

    :param changed: (setting, then, now) of each.
    """

    def __init__(self, changed: list[tuple[str, object, object]]) -> None:
        self.changed = changed
        told = "; ".join(f"{name} was {then}, is now {now}" for name, then, now in changed)
        super().__init__(
            f"this store was learned with other settings: {told}. Give the same settings, "
            "or --go-on to learn on with the new ones, or --at another directory for a store of its own"
        )


class RunSettings(Struct, frozen=True, kw_only=True):
    """What decides, besides the traces, which bytes a replay makes."""

    seed: int
    batch_size: str
    method: str
    max_staleness: int
    copies: int
    support_traces: int
    support_sessions: int
    token_budget: int
    fan_in: int
    fold_every: int
    open_traces: int
    counters: bool


class Run(Struct, frozen=True):
    """One replay, killed and resumed as often as it takes. ``number`` counts from 1."""

    number: int
    finished: bool
    settings: RunSettings
    schema: int = SCHEMA


_runs = msgspec.json.Decoder(Run)


def last(store: Store) -> Run | None:
    """The run that the store's checkpoint tells of; None before the first.

    :raises StoreDamaged: when the checkpoint cannot be read.
    """
    data = store.checkpoint()
    if data is None:
        return None
    try:
        return _runs.decode(data)
    except msgspec.MsgspecError as error:
        raise StoreDamaged(store.path / "checkpoint.json", f"it is none ({error})") from error


def begin(store: Store, settings: RunSettings, *, go_on: bool) -> tuple[Run, bool]:
    """Take up the store's unfinished run, or begin its next.

    One that follows a finished run of the same settings is noted only when it learns something (:func:`note`): the same
    log once more leaves the store as it was, also for a run that was killed just as it had finished.

    :param go_on: learn on with other settings than before; an unfinished run is closed as it stands.
    :return: the run, and whether it was begun before.
    :raises SettingsChanged: when the settings are others and ``go_on`` is not set.
    """
    before = last(store)
    if before is not None:
        then, now = asdict(before.settings), asdict(settings)
        changed = [(name, then[name], now[name]) for name in now if then[name] != now[name]]
        if changed and not go_on:
            raise SettingsChanged(changed)
        if not before.finished and not changed:
            return before, True
        if not changed:
            return Run(before.number + 1, False, settings), False
    run = Run((_newest_run(store) if before is None else before.number) + 1, False, settings)
    note(store, run)
    return run, False


def _newest_run(store: Store) -> int:
    """The newest run that the logs tell of, for a store whose checkpoint is gone: no number may come twice."""
    return max((entry.run for name in store.prompts() for entry in entries(store.prompt(name))), default=0)


def note(store: Store, run: Run) -> None:
    """Note that the run is under way, before its first version."""
    store.write_checkpoint(encode(run))


def finish(store: Store, run: Run) -> None:
    """Note that the run has come to the end of its input."""
    store.write_checkpoint(encode(Run(run.number, True, run.settings)))
