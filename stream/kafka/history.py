"""What a service must know of a prompt's older versions, which people ask for and traces name.

``prompt-deltas`` has no index, so it is read through; no more of it is held than the answer needs.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import NamedTuple

import msgspec
import structlog
from aiokafka.structs import ConsumerRecord, TopicPartition

from operators.state import PromptState
from operators.values import Bullet
from stream.kafka.lookup import versions_of
from stream.kafka.reading import read_through
from stream.kafka.rebuilt import Chain, Head, VersionsMissing, needed
from stream.kafka.takeover import Reads
from stream.merged import Merged, change_in, held

log = structlog.get_logger()

_SECONDS = 600.0
_STRETCH = 2_000
_GROWTH = 8


class Then(NamedTuple):
    """A prompt as it was.

    :param newest: its newest version now; 0 when there is none.
    :param state: None when there is no version that was asked for.
    """

    newest: int
    state: PromptState | None


class Imports(NamedTuple):
    """The names (:func:`operators.imports.import_source`) of the imports that the newest version holds."""

    newest: int
    sources: frozenset[str]


async def state_at(reads: Reads, deltas: TopicPartition, prompt: str, version: int) -> Then:
    """The state as it was at one version.

    :raises VersionsMissing: when it cannot be rebuilt.
    :raises TimeoutError: when the partition could not be read in ten minutes.
    """
    kept: list[bytes] = []

    def take(head: Head, value: bytes) -> None:
        nonlocal kept
        if head.version <= version:
            kept = needed(kept, [(head, value)])

    newest = await _read(reads, deltas, prompt, take)
    if not 0 <= version <= newest:
        return Then(newest, None)
    chain = Chain(prompt)
    for value in kept:
        chain.add(value)
    if chain.version != version:
        raise VersionsMissing(f"version {version} of {prompt!r} is not in {deltas.topic}/{deltas.partition}")
    return Then(newest, chain.state())


async def bullets_of(
    reads: Reads, deltas: TopicPartition, wanted: Mapping[str, Collection[int]]
) -> dict[tuple[str, int], tuple[Bullet, ...]]:
    """The bullets of versions, by prompt and version; those that are not there are left out.

    Most that is asked for is near the end, so stretches from there are read, each longer than the last.

    :param wanted: versions by prompt.
    :raises TimeoutError: when the partition could not be read in ten minutes.
    """
    begin, end = (await reads.begins([deltas]))[deltas], (await reads.ends([deltas]))[deltas]
    count, length = sum(map(len, wanted.values())), _STRETCH
    while True:
        start = max(begin, end - length)
        finder = Finder(wanted)
        await read_through(reads.connection, {deltas: (start, end)}, finder.take, timeout=_SECONDS)
        if start == begin or len(finder.found) == count:
            return finder.found
        length *= _GROWTH


class Finder:
    """Finds the bullets of versions among the records of ``prompt-deltas``, taken in their order.

    Of each prompt it holds the entries since its last snapshot, and no more.
    """

    def __init__(self, wanted: Mapping[str, Collection[int]]) -> None:
        self._wanted = {prompt.encode(): (prompt, frozenset(versions)) for prompt, versions in wanted.items()}
        self._chains: dict[str, Chain] = {}
        self.found: dict[tuple[str, int], tuple[Bullet, ...]] = {}

    def take(self, record: ConsumerRecord) -> None:
        """Take the next record."""
        if record.key not in self._wanted:
            return
        prompt, versions = self._wanted[record.key]
        for head, value in versions_of([record], prompt):
            if head.begins:
                self._chains[prompt] = Chain(prompt)
            chain = self._chains.get(prompt)
            if chain is None:
                continue
            try:
                chain.add(value)
                if head.version in versions:
                    self.found[prompt, head.version] = chain.state().now.bullets
            except (VersionsMissing, msgspec.MsgspecError) as error:
                log.warning("an older version cannot be rebuilt", prompt=prompt, reason=str(error))
                del self._chains[prompt]


async def imports_held(reads: Reads, deltas: TopicPartition, prompt: str) -> Imports:
    """The imports that the newest version holds: those that a rollback went behind are not among them.

    :raises TimeoutError: when the partition could not be read in ten minutes.
    """
    changes: list[Merged] = []

    def take(head: Head, value: bytes) -> None:
        change = change_in(value)
        if change is not None:
            changes.append(change)

    newest = await _read(reads, deltas, prompt, take)
    return Imports(newest, frozenset(str(each.audit.get("source", "")) for each in held(changes, newest)))


async def _read(reads: Reads, deltas: TopicPartition, prompt: str, take: Callable[[Head, bytes], None]) -> int:
    """Hand every version of a prompt to ``take``, oldest first; return the newest."""
    newest = 0

    def one(record: ConsumerRecord) -> None:
        nonlocal newest
        for head, value in versions_of([record], prompt):
            newest = head.version
            take(head, value)

    end = (await reads.ends([deltas]))[deltas]
    await read_through(reads.connection, {deltas: (0, end)}, one, timeout=_SECONDS)
    return newest
