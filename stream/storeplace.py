"""A prompt store as the place where prompts live."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from types import TracebackType
from typing import Any, Self

from msgspec.structs import asdict, replace

from operators.entry import Entry
from operators.imports import import_source, not_shown, publish_import
from operators.settings import Settings
from operators.values import Update
from operators.version import Published, publish_rollback
from operators.wire import encode
from stream.config import Config
from stream.formats.imported import Imported
from stream.merged import extra_of, merged
from stream.place import Amended, Asked
from stream.promptstore import PromptStore
from stream.replay import settings_of
from stream.runs import last
from stream.states import commit, entries, newest, state_at, update_of
from stream.store import Store
from stream.storeerrors import UnknownPrompt


class StorePrompt:
    """A prompt of a store."""

    def __init__(self, prompt: PromptStore) -> None:
        self._prompt = prompt

    @property
    def version(self) -> int:
        """The newest version."""
        return self._prompt.version

    def update(self, version: int) -> Update:
        """The update of a version, from its file."""
        return update_of(self._prompt, version)

    def encoded(self, version: int) -> bytes:
        """The bytes of its file."""
        return self._prompt.update(version) if version else encode(self.update(0))

    def entries(self) -> Iterator[Entry]:
        """The log, oldest first."""
        return entries(self._prompt)

    def extra(self, format: str, version: int) -> dict[str, Any]:
        """What the newest import of a format that a version holds brought besides bullets."""
        return extra_of(merged(self._prompt.entries(), version), format)


class StorePlace:
    """A store in a directory; opened when something is asked of it, for no longer than that takes to write.

    :param path: the directory.
    :param given: whether the configuration was asked for; else a store's own settings go before it.
    """

    def __init__(self, path: str, config: Config, *, given: bool = False) -> None:
        self._path = path
        self._config = config
        self._given = given
        self._open = ExitStack()

    def prompt(self, name: str) -> StorePrompt:
        """A prompt to read."""
        return StorePrompt(self._open.enter_context(Store.open(self._path, write=False)).prompt(name))

    def rollback(self, name: str, to: int, asked: Asked) -> Amended:
        """Make the lessons of an older version the newest version."""
        with Store.open(self._path, write=True) as store:
            settings = _settings(store, self._config, self._given)
            prompt = store.prompt(name)
            if prompt.version == 0:
                raise UnknownPrompt(store.path, name)
            published = publish_rollback(
                newest(prompt), state_at(prompt, to), settings, at=asked.at, lineage=store.lineage
            )
            commit(prompt, published)
        return _amended(published, settings)

    def merge(self, name: str, imported: Imported, asked: Asked) -> Amended:
        """Merge bullets into a prompt, in a store that is made if there is none."""
        source = import_source(imported.bullets)
        with Store.open(self._path, write=True, create=True) as store:
            settings = _settings(store, self._config, self._given)
            prompt = store.prompt(name)
            if any(each.audit.get("source") == source for each in merged(prompt.entries(), prompt.version)):
                return Amended(prompt.version, made=False, hidden=not_shown(imported.bullets, newest(prompt).now))
            published = publish_import(
                newest(prompt),
                imported.bullets,
                settings,
                format=imported.format,
                extra=imported.extra,
                at=asked.at,
                lineage=store.lineage,
            )
            commit(prompt, published)
        return _amended(published, settings)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._open.__exit__(kind, error, trace)


def _amended(published: Published, settings: Settings) -> Amended:
    update, audit = published.update, published.entry.audit
    return Amended(
        update.version,
        changed=update.changed,
        bullets=len(update.bullets),
        evicted=len(audit.get("evicted", ())),
        budget=settings.token_budget,
    )


def _settings(store: Store, config: Config, given: bool) -> Settings:
    """The configuration's where one was given, else what the store was learned with.

    Windows to come are curated on bases as far back as the store's own, whatever the configuration says of that.
    """
    settings, run = settings_of(config), last(store)
    if run is None:
        return settings
    if given:
        return replace(settings, max_staleness=run.settings.max_staleness)
    learned = asdict(run.settings)
    return replace(settings, **{name: learned[name] for name in settings.__struct_fields__ if name in learned})
