"""Judging what a reader saw while everything failed: no version came twice, changed, or was gone in the end. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from tests.kafka.faults.history import History


class Sight(NamedTuple):
    """A record as a read_committed reader got it, in the order that it got them."""

    topic: str
    partition: int
    offset: int
    prompt: str
    version: int
    raw: bytes


def unsteady(history: History, sights: list[Sight]) -> Iterator[str]:
    """Say what a reader that ran all the time saw and is not so, and what it did not see.

    :param sights: of the updates, and of all records of ``prompt-deltas``; version 0 is none.
    """
    left = {
        "prompt-updates": {(each.partition, each.offset): each.raw for each in history.updates},
        "prompt-deltas": {(each.partition, each.offset): each.raw for each in history.deltas},
    }
    newest: dict[tuple[str, str], int] = {}
    for sight in sights:
        what = f"{sight.prompt or 'a record'} version {sight.version} at {sight.topic}/{sight.partition}@{sight.offset}"
        raw = left[sight.topic].pop((sight.partition, sight.offset), None)
        if raw is None:
            yield f"a reader saw {what}, and it is not there, or was seen twice"
        elif raw != sight.raw:
            yield f"a reader saw {what}, and it has other bytes now"
        if sight.version:
            before = newest.get((sight.topic, sight.prompt), 0)
            if sight.version != before + 1:
                yield f"a reader saw {what} after version {before}"
            newest[sight.topic, sight.prompt] = sight.version
    for topic, unseen in left.items():
        for partition, offset in sorted(unseen):
            yield f"a reader never saw {topic}/{partition}@{offset}"
