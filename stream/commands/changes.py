"""Changing prompts by hand: ``rollback`` and ``import``."""

from __future__ import annotations

import sys
from argparse import Namespace
from datetime import UTC, datetime
from pathlib import Path

from operators.combine import apply
from operators.imports import import_delta, import_source, proposed_ids
from operators.state import PromptState
from operators.values import Bullet
from operators.version import publish_delta, publish_rollback
from stream.config import Config
from stream.formats import FormatError, read
from stream.promptstore import PromptStore
from stream.replay import settings_of
from stream.states import commit, newest, state_at
from stream.store import Store
from stream.storeerrors import UnknownPrompt, UnknownVersion

_DIGEST = bytes(8).hex()


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def rollback(options: Namespace, config: Config) -> int:
    """Make the lessons of an older version the newest version."""
    settings = settings_of(config)
    with Store.open(options.at, write=True) as store:
        prompt = store.prompt(options.prompt)
        if prompt.version == 0:
            raise UnknownPrompt(store.path, options.prompt)
        if not 0 <= options.to <= prompt.version:
            raise UnknownVersion(options.prompt, options.to, prompt.version)
        published = publish_rollback(
            newest(prompt), state_at(prompt, options.to, settings), settings, at=_now(), lineage=store.lineage
        )
        commit(prompt, published)
    update = published.update
    what = f"the lessons of version {options.to}" if update.changed else f"as version {options.to}, and as before"
    print(f"{options.prompt}: version {update.version} has {what} ({len(update.bullets)} bullets)")
    return 0


def import_(options: Namespace, config: Config) -> int:
    """Merge a playbook file into a prompt."""
    path = Path(options.file)
    data = sys.stdin.buffer.read() if options.file == "-" else path.read_bytes()
    imported = read(data, path.name, options.format)
    for warning in imported.warnings:
        print(f"tracecomb: {options.file}: {warning}", file=sys.stderr)
    for refused in imported.refused:
        print(f"tracecomb: {options.file}: {refused.where} left out: {refused.reason}", file=sys.stderr)
    if not imported.bullets:
        raise FormatError(f"{options.file}: no bullet in it ({imported.format}); nothing was imported")
    settings = settings_of(config)
    delta = import_delta(imported.bullets)
    source = import_source(imported.bullets)
    with Store.open(options.at, write=True, create=True) as store:
        prompt = store.prompt(options.prompt)
        state = newest(prompt)
        if _has(prompt, state, source, imported.bullets) or apply(state.now.playbook, delta) is state.now.playbook:
            print(f"{options.prompt}: all of it is in version {prompt.version} already, no version made")
            return 0
        audit = {"source": source, "format": imported.format}
        published = publish_delta(
            state,
            delta,
            settings,
            kind="import",
            ids=proposed_ids(imported.bullets),
            traces=[(source, _DIGEST)],
            at=_now(),
            lineage=store.lineage,
            audit={**audit, "extra": imported.extra} if imported.extra else audit,
        )
        commit(prompt, published)
    update = published.update
    print(
        f"{options.prompt}: version {update.version} has {len(update.bullets)} bullets, {len(imported.bullets)} of them read"
    )
    return 0


def _has(prompt: PromptStore, state: PromptState, source: str, bullets: tuple[Bullet, ...]) -> bool:
    """Whether this very import was made before and all of it still shows; its counts may have been folded since."""
    if prompt.find([source])[0] is None:
        return False
    kept = {fact.bullet for fact in import_delta(bullets).texts}
    return kept <= {bullet.bullet for bullet in state.now.bullets}
