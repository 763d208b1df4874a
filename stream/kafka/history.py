"""Old versions of a prompt, from ``prompt-deltas``: read through, for it has no index, and asked for by people only."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec
from aiokafka.structs import TopicPartition

from operators.state import PromptState
from operators.version import advance
from stream.kafka.messages import Made, decode_delta
from stream.kafka.reading import read_through
from stream.kafka.takeover import Reads

_SECONDS = 600.0


async def entries(reads: Reads, deltas: TopicPartition, prompt: str) -> list[Made]:
    """All versions of a prompt that are committed, oldest first.

    :raises TimeoutError: when its partition could not be read in ten minutes.
    """
    key, found = prompt.encode(), []
    end = (await reads.ends([deltas]))[deltas]

    def take(record: Any) -> None:
        if record.key != key or record.value is None:
            return
        try:
            delta = decode_delta(record.value)
        except msgspec.MsgspecError:
            return  # not ours: whatever it is, it is no version
        if isinstance(delta, Made):
            found.append(delta)

    await read_through(reads.connection, {deltas: (0, end)}, take, timeout=_SECONDS)
    return found


def state_at(prompt: str, made: Iterable[Made], version: int) -> PromptState | None:
    """The state as it was at one version, from the entries up to it; None when that version is not among them."""
    state = PromptState(prompt)
    for entry in made:
        if entry.version > version:
            break
        state = advance(state, entry)
    return state if state.now.version == version else None


def sources_held(made: Iterable[Made]) -> tuple[str, ...]:
    """The names of the imports that the newest version holds: those a rollback went behind are not among them."""
    held: list[tuple[int, tuple[str, ...]]] = [(0, ())]
    for entry in made:
        if entry.kind == "import":
            held.append((entry.version, (*held[-1][1], str(entry.audit.get("source", "")))))
        elif entry.kind == "rollback":
            held.append((entry.version, next(names for at, names in reversed(held) if at <= entry.audit["to"])))
    return held[-1][1]
