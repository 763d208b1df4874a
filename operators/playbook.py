"""A playbook: the facts known of one prompt, in persistent maps, so that keeping an old state costs nothing."""

from __future__ import annotations

from typing import Any, NamedTuple

from msgspec import Struct
from rpds import HashTrieMap

from operators.chunks import Chunks, flat
from operators.facts import Count, PersonFact, Text
from operators.layers import Layers

HELPFUL, HARMFUL, COVERED_HELPFUL, COVERED_HARMFUL = 1, 2, 4, 8
"""A vote's bits: which facts are known of one trace's vote on one bullet. Joining them is OR, whatever their order."""

SEEN, COVERED = 1, 2
"""An evidence fact's bits: known itself, and known to be covered by a removal."""

Pair = tuple[str, str]
"""(bullet, trace)."""
Facets = tuple[tuple[int, str, int], ...]
"""One pair's evidence: (insight number, session, bits), sorted."""
Tally = tuple[int, int, int]
"""What is open and not covered of one bullet: traces with evidence, helpful votes, harmful votes."""

NO_TALLY: Tally = (0, 0, 0)


class Folded(NamedTuple):
    """What folding made of a bullet's old facts; ``window`` is the last one whose facts are in it."""

    traces: int
    helpful: int
    harmful: int
    sessions: tuple[str, ...]
    window: int


class Successor(NamedTuple):
    """The newest supersession of a bullet; greater is newer, ties go by the identity that it ``named``.

    ``by`` is where it leads: elsewhere once folding has dropped the bullet named.
    """

    window: int
    named: str
    by: str


class Record(Struct, frozen=True):
    """What is known of one bullet but for open evidence and votes; ``cover`` is the newest removal of folded facts."""

    text: Text | None = None
    counts: frozenset[Count] = frozenset()
    covered_counts: frozenset[Count] = frozenset()
    successor: Successor | None = None
    folded: Folded | None = None
    cover: int = -1
    person: PersonFact | None = None


BLANK = Record()
"""The record of a bullet nothing is known of."""


class Playbook(Struct, frozen=True):
    """The facts of one prompt, and the display ids given so far (which are no facts)."""

    records: HashTrieMap[str, Record] = HashTrieMap()
    evidence: Chunks[Pair, Facets] = ()
    votes: Chunks[Pair, int] = ()
    tallies: Layers[str, Tally] = Layers()
    ids: HashTrieMap[str, str] = HashTrieMap()

    def __eq__(self, other: Any) -> bool:
        return (
            isinstance(other, Playbook)
            and self.records == other.records
            and self.tallies == other.tallies
            and flat(self.evidence) == flat(other.evidence)
            and flat(self.votes) == flat(other.votes)
        )

    def __hash__(self) -> int:
        return hash(len(self.records))


def open_folded(record: Record) -> Folded | None:
    """What is folded of a bullet, unless a removal covers it."""
    folded = record.folded
    return None if folded is None or record.cover >= folded.window else folded


def is_alive(playbook: Playbook, bullet: str) -> bool:
    """Whether the bullet itself has evidence that no removal covers."""
    tally = playbook.tallies.get(bullet)
    if tally is not None and tally[0]:
        return True
    record = playbook.records.get(bullet)
    folded = None if record is None else open_folded(record)
    return folded is not None and folded.traces > 0
