"""A cluster as the place where prompts live: read from its topics, and changed by asking the service that owns them.

Commands are synchronous, so the clients live in a thread of their own.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from types import TracebackType
from typing import Any, Self

import msgspec
import structlog
from anyio.from_thread import BlockingPortal, start_blocking_portal

from operators.entry import Entry
from operators.values import Update
from operators.wire import encode
from stream.config import Config
from stream.formats.imported import Imported
from stream.kafka.cluster import ClusterError, ControlDeclined, HistoryIncomplete
from stream.kafka.controls import Control
from stream.kafka.lookup import Lookup, Progress, Stretch, looking, name_of, versions_of
from stream.kafka.rebuilt import Chain, VersionsMissing
from stream.kafka.request import Sent, answer_to, send
from stream.merged import extra_of, merged
from stream.names import canonical
from stream.place import Amended, Asked, nothing
from stream.storeerrors import UnknownPrompt, UnknownVersion
from stream.terminal import listed

log = structlog.get_logger()

_updates = msgspec.json.Decoder(Update)


class ClusterPrompt:
    """A prompt of a cluster: its newest version from the updates, older ones rebuilt from the deltas.

    :param newest: its newest update, as it was published.
    """

    def __init__(self, place: ClusterPlace, name: str, newest: bytes) -> None:
        self._place = place
        self._name = name
        self._encoded = newest
        try:
            self._newest = _updates.decode(newest)
        except msgspec.MsgspecError as error:
            raise ClusterError(f"the newest update of {name!r} cannot be read: {error}") from error
        self._chain = self._begun()

    @property
    def version(self) -> int:
        """The newest version."""
        return self._newest.version

    def update(self, version: int) -> Update:
        """The update of a version.

        :raises HistoryIncomplete: when its deltas are not there.
        """
        if version == 0:
            return nothing(self._name)
        if not 1 <= version <= self.version:
            raise UnknownVersion(self._name, version, self.version)
        if version == self.version:
            return self._newest
        if version == self._chain.version:
            return self._chain.update()
        chain = Chain(self._name, self._newest.lineage)
        for value in self._place.chain(self._name, version):
            self._add(chain, value)
        if chain.version != version:
            raise self._incomplete(f"version {version} of {self._name!r} is not there")
        return chain.update()

    def encoded(self, version: int) -> bytes:
        """The update of a version as JSON, as it was published."""
        return self._encoded if version == self.version else encode(self.update(version))

    def entries(self) -> Iterator[Entry]:
        """What made each version, oldest first."""
        self._chain = self._begun()
        for value in self._values():
            yield self._add(self._chain, value)
        if self._chain.version != self.version:
            raise self._incomplete(f"versions of {self._name!r} end at {self._chain.version}, not at {self.version}")

    def extra(self, format: str, version: int) -> dict[str, Any]:
        """What the newest import of a format that a version holds brought besides bullets."""
        return extra_of(merged(self._values(), version), format)

    def _begun(self) -> Chain:
        return Chain(self._name, self._newest.lineage)

    def _values(self) -> Iterator[bytes]:
        """The entries of all versions up to the newest as it was, oldest first."""
        for version, value in self._place.values(self._name):
            if version > self.version:
                return
            yield value
            if version == self.version:
                return

    def _add(self, chain: Chain, value: bytes) -> Entry:
        try:
            return chain.add(value)
        except (VersionsMissing, msgspec.MsgspecError) as error:
            raise self._incomplete(str(error)) from error

    def _incomplete(self, why: str) -> HistoryIncomplete:
        return HistoryIncomplete(f"{self._place.deltas(self._name)}: {why}; no version before it can be rebuilt")


class ClusterPlace:
    """A cluster; connected as long as the context lasts.

    :param config: names the cluster and the topics.
    :param timeout: seconds to wait for a service's answer.
    """

    _portal: BlockingPortal
    _lookup: Lookup

    def __init__(self, config: Config, progress: Progress, timeout: float) -> None:
        self._config = config
        self._progress = progress
        self._timeout = timeout
        self._open = ExitStack()

    def prompt(self, name: str) -> ClusterPrompt:
        """A prompt to read."""
        name = canonical(name)
        updates = self._lookup.home(self._config.topics.updates, name)
        newest = self._portal.call(self._lookup.newest, updates, name)
        self._progress.hide()
        if newest.value is None:
            kafka = self._config.kafka
            has = f"has {listed(newest.others)}" if newest.others else "is empty"
            instead = f"its home by {kafka.partitioner} is partition {updates.partition}, which {has}"
            raise UnknownPrompt(f"{updates.topic} at {kafka.bootstrap}", name, instead)
        return ClusterPrompt(self, name, newest.value)

    def rollback(self, name: str, to: int, asked: Asked) -> Amended:
        """Have the lessons of an older version made the newest version."""
        prompt = self.prompt(name)
        if not 0 <= to <= prompt.version:
            raise UnknownVersion(name, to, prompt.version)
        return self._ask(Control(kind="rollback", prompt=canonical(name), to=to, who=asked.who, at=asked.at))

    def merge(self, name: str, imported: Imported, asked: Asked) -> Amended:
        """Have bullets merged into a prompt."""
        return self._ask(
            Control(
                kind="import",
                prompt=canonical(name),
                bullets=imported.bullets,
                format=imported.format,
                extra=imported.extra,
                who=asked.who,
                at=asked.at,
            )
        )

    def values(self, name: str) -> Iterator[tuple[int, bytes]]:
        """The entries of a prompt's versions with their numbers, oldest first, as they come in."""
        deltas = self._lookup.home(self._config.topics.deltas, name)
        stretch = Stretch(self._lookup, deltas, *self._portal.call(self._lookup.span, deltas))
        while records := self._portal.call(stretch.more):
            found = versions_of(records, name)
            if found:
                self._progress.hide()
            for head, value in found:
                yield head.version, value
        self._progress.hide()

    def chain(self, name: str, version: int) -> list[bytes]:
        """The entries that a version is rebuilt of."""
        deltas = self._lookup.home(self._config.topics.deltas, name)
        found: list[bytes] = self._portal.call(self._lookup.chain, deltas, name, version)
        self._progress.hide()
        return found

    def deltas(self, name: str) -> str:
        """Where the deltas of a prompt are, for a message."""
        return f"{name_of(self._lookup.home(self._config.topics.deltas, name))} at {self._config.kafka.bootstrap}"

    def _ask(self, control: Control) -> Amended:
        sent: Sent | None = None
        try:
            sent = self._portal.call(send, self._lookup, self._config, control)
            log.debug("a control was written", partition=name_of(sent.place), offset=sent.offset)
            answer, made = self._portal.call(answer_to, self._lookup, sent, self._timeout)
        except KeyboardInterrupt:
            maybe = (
                f"the control may be in {self._config.topics.controls} already, and is applied then when a service "
                "runs: look at the history before you ask again"
            )
            raise KeyboardInterrupt(f"interrupted; {sent or maybe}") from None
        self._progress.hide()
        if answer.held is not None:
            return Amended(answer.held, made=False)
        if answer.version is None or made is None:
            reason = answer.reason or "the service does not say why"
            raise ControlDeclined(f"{control.prompt}: no new version: {reason}")
        return Amended(
            answer.version,
            changed=made.changed,
            bullets=len(self.prompt(control.prompt).update(answer.version).bullets),
            evicted=len(made.audit.get("evicted", ())),
        )

    def __enter__(self) -> Self:
        with self._open as opening:
            self._portal = opening.enter_context(start_blocking_portal())
            connecting = looking(self._config, self._progress)
            self._lookup = opening.enter_context(self._portal.wrap_async_context_manager(connecting))
            self._open = opening.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.hide()
        self._open.__exit__(kind, error, trace)
