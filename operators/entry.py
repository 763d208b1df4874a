"""The log of a prompt: one entry a version, from which any version can be rebuilt."""

from __future__ import annotations

from typing import Any

from msgspec import Struct, field

from operators.facts import EMPTY, Delta
from operators.snapshot import Snapshot
from operators.state import Carried, Quarantined
from operators.values import VersionKind


class Entry(Struct, frozen=True, omit_defaults=True):
    """What made one version.

    :param window: the last window the version holds.
    :param run: the replay that made it; 0 for what no replay made.
    :param batch_size: how many traces its window closed with.
    :param traces: [id, content digest in hex] of every trace of its window, in order of arrival.
    :param rejected: [id, reason] of those of them that could not be reflected.
    :param refused: why nothing was learned from the others; empty where it was.
    :param ids: display ids given, as (identity, id).
    :param folded: whether old facts were folded after the delta was applied.
    :param max_staleness: and ``fold_after``: the settings it was made with, for a version is rebuilt as it was made.
    :param counters: whether the update's text shows counts.
    :param snapshot: the whole state after this version, now and then, and where the delta alone cannot say it.
    """

    prompt: str
    version: int
    base: int
    kind: VersionKind
    changed: bool
    window: int
    schema: int = 1
    run: int = 0
    at: str | None = None
    batch_size: int = 0
    traces: tuple[tuple[str, str], ...] = ()
    rejected: tuple[tuple[str, str], ...] = ()
    refused: str = ""
    delta: Delta = EMPTY
    ids: tuple[tuple[str, str], ...] = ()
    carried: tuple[Carried, ...] = ()
    pending: Delta = EMPTY
    quarantined: tuple[Quarantined, ...] = ()
    folded: bool = False
    max_staleness: int = 1
    fold_after: int = 50
    counters: bool = False
    audit: dict[str, Any] = field(default_factory=dict)
    snapshot: Snapshot | None = None
    stats: dict[str, Any] = field(default_factory=dict)
