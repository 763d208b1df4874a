"""How much may be under way, and which partitions to pause for it. Pure.

A partition may hold as much as is still free of what all may hold together, so it never takes the last of it from the
others: one alone gets half, k that are full a (k + 1)th each, and whoever comes later finds room. (A. K. Choudhury,
E. L. Hahne, "Dynamic queue length thresholds for shared-memory packet switches", 1998.)
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Generic, NamedTuple, TypeVar

Key = TypeVar("Key")


class Load(NamedTuple):
    """What is under way of a partition, or may be of all.

    :param traces: delivered and not done.
    :param bytes: of those.
    :param span: offsets from the oldest of them to the newest delivery, both included; a partition's own affair.
    """

    traces: int
    bytes: int
    span: int


class Decision(NamedTuple, Generic[Key]):
    """Which partitions to stop reading and which to read again, each in the order they were given.

    :param relieve: paused, and what they wait for are their traces or bytes alone: an open window that waits for more
        traces would wait for ever.
    """

    pause: list[Key]
    resume: list[Key]
    relieve: list[Key]


def decide(loads: Mapping[Key, Load], paused: Collection[Key], bounds: Load) -> Decision[Key]:
    """What to do now, with partitions of which these are paused.

    One that holds nothing is never paused, so none can starve another; one that is resumes when it holds half of what
    it may, for a pause discards what was prefetched.

    :param loads: of every partition that may be read; a pause is forgotten at a rebalance, so ``paused`` is told anew.
    """
    free_traces = bounds.traces - sum(load.traces for load in loads.values())
    free_bytes = bounds.bytes - sum(load.bytes for load in loads.values())
    limits = Load(free_traces, free_bytes, bounds.span)
    pause: list[Key] = []
    resume: list[Key] = []
    relieve: list[Key] = []
    for key, load in loads.items():
        half = _twice(load)
        if key in paused and not _reaches(half, limits):
            resume.append(key)
        elif key in paused or _reaches(load, limits):
            if key not in paused:
                pause.append(key)
            if half.span < limits.span:  # past that, closed windows hold it up; those that are open never span as much
                relieve.append(key)
    return Decision(pause, resume, relieve)


def _reaches(load: Load, limits: Load) -> bool:
    return load.traces > 0 and any(mine >= limit for mine, limit in zip(load, limits, strict=True))


def _twice(load: Load) -> Load:
    return Load(2 * load.traces - 1, 2 * load.bytes - 1, 2 * load.span - 1)  # at half itself it resumes
