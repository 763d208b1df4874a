"""Facts, and deltas of them. A delta is a set of facts; merging is union, so no order or grouping can matter."""

from __future__ import annotations

from typing import Literal, NamedTuple

from msgspec import Struct

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


class Delta(Struct, frozen=True, omit_defaults=True):
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


def merge(left: Delta, right: Delta) -> Delta:
    """The union of two deltas: associative, commutative and idempotent, with :data:`EMPTY` as its identity."""
    if left is EMPTY:
        return right
    if right is EMPTY:
        return left
    return Delta(
        left.texts | right.texts,
        left.evidence | right.evidence,
        left.votes | right.votes,
        left.counts | right.counts,
        left.supersessions | right.supersessions,
        left.covered_evidence | right.covered_evidence,
        left.covered_votes | right.covered_votes,
        left.covered_counts | right.covered_counts,
        left.covered_folds | right.covered_folds,
        left.people | right.people,
    )
