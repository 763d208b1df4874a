"""What a service must know of a prompt's older versions, which only people ask for.

``prompt-deltas`` has no index, so it is read through; no more of it is held than the answer needs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from aiokafka.structs import ConsumerRecord, TopicPartition

from operators.state import PromptState
from stream.kafka.lookup import versions_of
from stream.kafka.reading import read_through
from stream.kafka.rebuilt import Chain, Head, VersionsMissing, needed
from stream.kafka.takeover import Reads
from stream.merged import Merged, change_in, held

_SECONDS = 600.0


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
