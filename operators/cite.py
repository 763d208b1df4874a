"""Cited curation, one group: a curator's answer is checked against the insights it was given, and becomes facts.

This is our answer to context overload, beyond the paper: each insight is covered by an operation, dropped with a
reason, or uncited, and what is uncited is carried, so that an overloaded curator costs delay and polish but never a
lesson.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import IntEnum
from functools import lru_cache
from typing import get_args

from msgspec import Struct

from operators.facts import Delta, Evidence, Supersession, Text, merge
from operators.identity import identity, one_line
from operators.similar import Texts, is_same
from operators.state import Standing
from operators.values import Bullet, Curation, Drop, DropReason, Given, Operation
from operators.view import removal

REASONS: frozenset[str] = frozenset(get_args(DropReason))


class Status(IntEnum):
    """What became of an insight; of two copies the greater counts."""

    UNCITED = 0
    DROPPED = 1
    DUPLICATE = 2
    COVERED = 3


class Refused(Struct, frozen=True, omit_defaults=True, gc=False):
    """An operation that was not taken, and why."""

    operation: Operation
    why: str


class Checked(Struct, frozen=True, gc=False):
    """One group's answer as facts: the delta, the status of each insight given, and what the audit keeps.

    :param failed: (number, reason) of each drop of an insight given that does not hold.
    :param repeats: (number, the number it was said to repeat) of each drop as a duplicate that holds.
    """

    delta: Delta
    status: tuple[Status, ...]
    refused: tuple[Refused, ...] = ()
    drops: tuple[tuple[int, str], ...] = ()
    repeats: tuple[tuple[int, int], ...] = ()
    failed: tuple[tuple[int, str], ...] = ()


def check(given: Sequence[Given], curation: Curation, base: Standing) -> Checked:
    """Turn a curator's answer into facts.

    A number that was not given is ignored. An operation left without any citation gets those that text similarity
    finds, and is refused if there are none. Drops other than verified duplicates, beyond half of the group, count as
    uncited; so do drops for a reason that is not on the list.
    """
    added = None if curation.drops else _added(given, curation.operations)
    if added is not None:
        return added
    status = [Status.UNCITED] * len(given)
    refused: list[Refused] = []
    covering: dict[int, list[str]] = {}
    # Only operations that name bullets need to know them, and most windows have none.
    named = any(operation.bullets for operation in curation.operations)
    known = {bullet.bullet: bullet for bullet in base.bullets} if named else {}
    texts: Texts | None = None
    evidence: set[Evidence] = set()
    words: set[Text] = set()
    edges: set[Supersession] = set()
    removed: set[str] = set()
    dropped = 0
    for operation in curation.operations:
        cites = [n for n in dict.fromkeys(operation.cites) if 1 <= n <= len(given)]
        if not cites:
            texts = texts or Texts([each.insight.content for each in given])
            cites = [index + 1 for index in texts.covered_by(_said(operation, known))]
        target, why = _target(operation, known) if cites else (None, "covers nothing that was given")
        if not why and target is None:
            names = {bullet for bullet in operation.bullets if bullet in known}
            # A removal teaches nothing, so what it cites is as good as dropped: the same half bounds both.
            cites = [n for n in cites if status[n - 1] is not Status.COVERED][: max(len(given) // 2 - dropped, 0)]
            if len(names) > max(len(cites), 1):
                why = "removes more bullets than it cites insights"
            else:
                dropped += len(cites)
                removed |= names
        if why:
            refused.append(Refused(operation, why))
            continue
        for number in cites:
            status[number - 1] = Status.COVERED
        if target is None:
            continue
        words.add(target)
        for number in cites:
            if curation.drops:
                covering.setdefault(number, []).append(target.bullet)
            evidence.add(_evidence(target.bullet, given[number - 1]))
        if operation.type != "ADD":
            edges.update(
                Supersession(bullet, base.window, target.bullet)
                for bullet in operation.bullets
                if bullet in known and bullet != target.bullet
            )
    if not curation.drops and not edges and not removed:
        return Checked(Delta(frozenset(words), frozenset(evidence)), tuple(status), tuple(refused))
    repeats, drops, failed = _drop(given, curation.drops, status, dropped)
    copies = {number: of for number, of in repeats.items() if status[number - 1] is Status.DUPLICATE}
    for number in copies:
        original = _original(number, copies)
        evidence.update(_evidence(bullet, given[number - 1]) for bullet in covering.get(original, ()))
    delta = Delta(texts=frozenset(words), evidence=frozenset(evidence), supersessions=frozenset(edges))
    if removed:
        delta = merge(delta, removal(base.playbook, sorted(removed), base.window))
    return Checked(delta, tuple(status), tuple(refused), drops, tuple(repeats.items()), failed)


def _added(given: Sequence[Given], operations: Sequence[Operation]) -> Checked | None:
    """What plain additions come to, as all of a union are, and most of a curator's; None where one is not plain.

    A plain addition names no bullet, and cites insights that were given and no other numbers.
    """
    status, last = [Status.UNCITED] * len(given), len(given)
    words: list[Text] = []
    evidence: list[Evidence] = []
    for operation in operations:
        cites = operation.cites
        if operation.type != "ADD" or operation.bullets or not cites or min(cites) < 1 or max(cites) > last:
            return None
        text = _worded(operation.section, operation.content, operation.key)
        if not text.content:
            return None
        words.append(text)
        for number in cites:
            status[number - 1] = Status.COVERED
            one = given[number - 1]
            evidence.append(Evidence(text.bullet, one.trace, one.insight.number, one.session))
    return Checked(Delta(frozenset(words), frozenset(evidence)), tuple(status))


@lru_cache(1 << 13)  # one lesson is met many times: in both copies of its insight, in window after window
def _worded(section: str, content: str, key: str) -> Text:
    content, section = content.strip(), one_line(section) or "OTHERS"
    return Text(identity(section, content, key), False, content, section, key)


def _said(operation: Operation, known: Mapping[str, Bullet]) -> str:
    return operation.content or " ".join(known[bullet].content for bullet in operation.bullets if bullet in known)


def _target(operation: Operation, known: Mapping[str, Bullet]) -> tuple[Text | None, str]:
    """The bullet an operation writes (None for a removal), or why it is refused."""
    old = [known[bullet] for bullet in operation.bullets if bullet in known] if known else []
    if operation.type == "REMOVE":
        return None, "" if old else "names no bullet of the base"
    content = operation.content.strip()
    if not content:
        return None, "has no content"
    section = one_line(operation.section) or (old[0].section if old else "OTHERS")
    return Text(identity(section, content, operation.key), False, content, section, operation.key), ""


def _evidence(bullet: str, given: Given) -> Evidence:
    return Evidence(bullet, given.trace, given.insight.number, given.session)


def _drop(
    given: Sequence[Given], drops: Sequence[Drop], status: list[Status], others: int
) -> tuple[dict[int, int], tuple[tuple[int, str], ...], tuple[tuple[int, str], ...]]:
    """Mark what was dropped, in the order of the answer.

    :param others: how much of the half is used up already.
    :return: what each insight dropped as a duplicate is said to repeat; (number, reason) of each drop that holds; and
        of each that does not.
    """
    repeats: dict[int, int] = {}
    held: list[tuple[int, str]] = []
    failed: list[tuple[int, str]] = []
    for drop in drops:
        of = drop.of if drop.reason == "duplicate" and drop.of in range(1, len(given) + 1) else None
        for number in dict.fromkeys(drop.cites):
            if not 1 <= number <= len(given):
                continue
            circle = of is not None and _original(of, repeats) == number  # of repeats, in which one must stay
            if circle or status[number - 1] is not Status.UNCITED or drop.reason not in REASONS:
                failed.append((number, drop.reason))
                continue
            if of is not None and is_same(given[number - 1].insight.content, given[of - 1].insight.content):
                status[number - 1] = Status.DUPLICATE
            elif others < len(given) // 2:
                others += 1
                status[number - 1] = Status.DROPPED
            else:
                failed.append((number, drop.reason))
                continue
            if of is not None:
                repeats[number] = of
            held.append((number, drop.reason))
    return repeats, tuple(held), tuple(failed)


def _original(number: int, repeats: Mapping[int, int]) -> int:
    while number in repeats:
        number = repeats[number]
    return number
