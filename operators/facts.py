"""Facts, and deltas of them. A delta is a set of facts; merging is union, so no order or grouping can matter."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, TypeVar

from msgspec import Struct

F = TypeVar("F")

PersonKind = Literal["edit", "pin", "unpin", "remove"]


class Text(NamedTuple):
    """``bullet`` can be worded so. Of several texts the curated go before the raw, then the smallest is shown."""

    bullet: str
    raw: bool
    content: str
    section: str
    key: str


class Evidence(NamedTuple):
    """Insight ``number`` of ``trace`` taught ``bullet``: what keeps it alive."""

    bullet: str
    trace: str
    number: int
    session: str


class Vote(NamedTuple):
    """``trace`` found ``bullet`` helpful or harmful; of both, harmful counts."""

    bullet: str
    trace: str
    harmful: bool


class Count(NamedTuple):
    """Counts that came with an import, keyed by the hash of what was imported (``source``)."""

    bullet: str
    source: str
    helpful: int
    harmful: int


class Supersession(NamedTuple):
    """``by`` replaces ``bullet``, decided on a base that held windows up to ``window``; the newest is followed."""

    bullet: str
    window: int
    by: str


class FoldCover(NamedTuple):
    """A removal, decided on a base that held windows up to ``window``, covers all that was folded of ``bullet``."""

    bullet: str
    window: int


class PersonFact(NamedTuple):
    """What a person decided about a bullet; the control with the greatest ``offset`` wins."""

    bullet: str
    offset: int
    kind: PersonKind
    content: str = ""
    section: str = ""


class Delta(Struct, frozen=True, omit_defaults=True, gc=False):
    """A set of facts about one playbook, by kind. Fields that start with ``covered`` are a removal's."""

    texts: frozenset[Text] = frozenset()
    evidence: frozenset[Evidence] = frozenset()
    votes: frozenset[Vote] = frozenset()
    counts: frozenset[Count] = frozenset()
    supersessions: frozenset[Supersession] = frozenset()
    covered_evidence: frozenset[Evidence] = frozenset()
    covered_votes: frozenset[Vote] = frozenset()
    covered_counts: frozenset[Count] = frozenset()
    covered_folds: frozenset[FoldCover] = frozenset()
    people: frozenset[PersonFact] = frozenset()

    def __bool__(self) -> bool:
        return self != EMPTY


EMPTY = Delta()
"""The identity of merge."""

# Defaults are left out when a delta is written, and an empty set is one only as the very object: what a merge made has
# always been written with all its kinds, so that it must not hold it.
_NONE: frozenset[Any] = frozenset() | frozenset()


def merge(left: Delta, right: Delta) -> Delta:
    """The union of two deltas: associative, commutative and idempotent, with :data:`EMPTY` as its identity."""
    if left is EMPTY:
        return right
    if right is EMPTY:
        return left
    return Delta(
        _union(left.texts, right.texts),
        _union(left.evidence, right.evidence),
        _union(left.votes, right.votes),
        _union(left.counts, right.counts),
        _union(left.supersessions, right.supersessions),
        _union(left.covered_evidence, right.covered_evidence),
        _union(left.covered_votes, right.covered_votes),
        _union(left.covered_counts, right.covered_counts),
        _union(left.covered_folds, right.covered_folds),
        _union(left.people, right.people),
    )


def _union(one: frozenset[F], other: frozenset[F]) -> frozenset[F]:
    # Python copies even where one side is empty, and one side often holds a whole window's facts.
    if not other:
        return one or _NONE
    return one | other if one else other
