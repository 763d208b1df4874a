"""Duplicates over the groups of a window: what one curator calls a repeat, another may cover, or call the original."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from operators.cite import Checked, Status
from operators.facts import EMPTY, Delta, Evidence
from operators.values import Given

Key = tuple[str, int]
"""Which insight: its trace and its number there."""


def key_of(given: Given) -> Key:
    """The insight that a group was given."""
    return given.trace, given.insight.number


def settle_repeats(
    groups: Sequence[Sequence[Given]], checked: Sequence[Checked], fates: dict[Key, Status], delta: Delta
) -> Delta:
    """Keep one insight of each circle of repeats: two groups may call two insights each other's duplicate.

    :param fates: what became of each insight; the first of each circle becomes uncited.
    :param delta: what the groups learned.
    :return: evidence of verified duplicates for what covers their originals in other groups.
    """
    if not any(one.drops for one in checked):
        return EMPTY
    claimed: dict[Key, set[Key]] = {}
    verified: dict[Key, set[Key]] = {}
    refused: set[Key] = set()
    for group, one in zip(groups, checked, strict=True):
        of = dict(one.repeats)
        for number, _ in one.drops:
            key = key_of(group[number - 1])
            if number not in of:
                refused.add(key)
                continue
            original = key_of(group[of[number] - 1])
            claimed.setdefault(key, set()).add(original)
            if one.status[number - 1] is Status.DUPLICATE:
                verified.setdefault(key, set()).add(original)
    if not claimed:
        return EMPTY
    gone = (Status.DROPPED, Status.DUPLICATE)
    repeats = {key: of for key, of in claimed.items() if fates[key] in gone and key not in refused}
    for key in sorted(repeats):
        if not _originals(key, repeats):
            fates[key] = Status.UNCITED
            del repeats[key]
    copies = {key: of for key, of in verified.items() if fates[key] is Status.DUPLICATE}
    covering: dict[Key, set[str]] = {}
    for fact in delta.evidence:
        covering.setdefault((fact.trace, fact.number), set()).add(fact.bullet)
    sessions = {key_of(given): given.session for group in groups for given in group}
    return Delta(
        evidence=frozenset(
            Evidence(bullet, *key, sessions[key])
            for key in copies
            for original in _originals(key, copies)
            for bullet in covering.get(original, ())
        )
    )


def _originals(key: Key, repeats: Mapping[Key, set[Key]]) -> set[Key]:
    """What the chains of repeats from ``key`` end in; nothing where they only run in a circle."""
    found, waiting, ends = {key}, [key], set()
    while waiting:
        for of in repeats[waiting.pop()] - found:
            found.add(of)
            if of in repeats:
                waiting.append(of)
            else:
                ends.add(of)
    return ends
