"""Changing prompts by hand: ``rollback`` and ``import``."""

from __future__ import annotations

import sys
from argparse import Namespace
from datetime import UTC, datetime
from pathlib import Path

from msgspec.structs import asdict, replace

from operators.imports import import_delta, import_source, not_shown, proposed_ids, recognised
from operators.settings import Settings
from operators.version import publish_delta, publish_rollback
from stream.commands.merged import merged
from stream.config import Config
from stream.formats import FormatError, Imported, read
from stream.replay import settings_of
from stream.runs import last
from stream.states import commit, newest, state_at
from stream.store import Store
from stream.storeerrors import UnknownPrompt
from stream.terminal import counted, line, say

_DIGEST = bytes(8).hex()
_MOST_TOLD = 20


def rollback(options: Namespace, config: Config) -> int:
    """Make the lessons of an older version the newest version."""
    with Store.open(options.at, write=True) as store:
        settings = _settings(store, config, options.config)
        prompt = store.prompt(options.prompt)
        if prompt.version == 0:
            raise UnknownPrompt(store.path, options.prompt)
        published = publish_rollback(
            newest(prompt), state_at(prompt, options.to), settings, at=_now(), lineage=store.lineage
        )
        commit(prompt, published)
    update = published.update
    same = "" if update.changed else ", which are those it had"
    line(
        f"{options.prompt}: version {update.version} has the lessons of version {options.to}{same} "
        f"({counted(len(update.bullets), 'bullet')})"
    )
    return 0


def import_(options: Namespace, config: Config) -> int:
    """Merge a playbook file into a prompt."""
    imported = _read(options.file, options.format)
    source = import_source(imported.bullets)
    with Store.open(options.at, write=True, create=True) as store:
        settings = _settings(store, config, options.config)
        prompt = store.prompt(options.prompt)
        state = newest(prompt)
        if any(each.audit.get("source") == source for each in merged(prompt, prompt.version)):
            line(f"{options.prompt}: version {prompt.version} has all of it already, no new version")
            if gone := not_shown(imported.bullets, state.now):
                say(
                    f"{counted(gone, 'bullet')} of it are not shown any more: replaced by later lessons, removed, or "
                    "beyond the budget when they came"
                )
            return 0
        bullets = recognised(imported.bullets, state.now)
        published = publish_delta(
            state,
            import_delta(bullets),
            settings,
            kind="import",
            ids=proposed_ids(bullets),
            traces=[(import_source(bullets), _DIGEST)],
            at=_now(),
            lineage=store.lineage,
            audit={"source": source, "format": imported.format, "extra": imported.extra},
        )
        commit(prompt, published)
    update = published.update
    if evicted := published.entry.audit.get("evicted"):
        say(
            f"{counted(len(evicted), 'bullet')} beyond the budget of {settings.token_budget:,} tokens went, the least "
            "useful ones; token_budget under [learning] in the configuration sets it"
        )
    line(
        f"{options.prompt}: version {update.version} has {counted(len(update.bullets), 'bullet')}, "
        f"{counted(len(imported.bullets), 'bullet')} of {options.file} merged in"
    )
    return 0


def _settings(store: Store, config: Config, given: str | None) -> Settings:
    """The configuration's where one was given, else what the store was learned with.

    Windows to come are curated on bases as far back as the store's own, whatever the configuration says of that.
    """
    settings, run = settings_of(config), last(store)
    if run is None:
        return settings
    learned = asdict(run.settings)
    if given is not None:
        return replace(settings, max_staleness=run.settings.max_staleness)
    return replace(settings, **{name: learned[name] for name in settings.__struct_fields__ if name in learned})


def _read(file: str, format: str | None) -> Imported:
    """The bullets of a file; what was not understood in it is said.

    :raises FormatError: when there is none.
    """
    path = Path(file)
    data = sys.stdin.buffer.read() if file == "-" else path.read_bytes()
    try:
        imported = read(data, path.name, format)
    except FormatError as error:
        raise FormatError(f"{file}: {error}") from error
    troubles = [*imported.warnings, *(f"{each.where} left out: {each.reason}" for each in imported.refused)]
    for trouble in troubles[:_MOST_TOLD]:
        say(f"{file}: {trouble}")
    if len(troubles) > _MOST_TOLD:
        say(f"{file}: and so on, {len(troubles) - _MOST_TOLD:,} more")
    if not import_delta(imported.bullets).texts:
        raise FormatError(f"{file}: no bullet in it (read as {imported.format}), so nothing was imported")
    return imported


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
