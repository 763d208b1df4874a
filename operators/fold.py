"""Folding: old evidence and votes become counts, and bullets superseded long ago are dropped.

It keeps a prompt's size proportional to its bullets, and is a step of its own, outside the laws of the combine. It takes
only facts that every base in flight has seen (those of ``anchor``): a removal decided on such a base covers all that is
folded of the bullets it names, and must not cover what it never saw.
"""

from __future__ import annotations

from msgspec.structs import replace
from rpds import HashTrieMap

from operators.chunks import flat
from operators.combine import VOTE_TALLY
from operators.playbook import (
    BLANK,
    NO_TALLY,
    SEEN,
    Facets,
    Folded,
    Pair,
    Playbook,
    Record,
    Successor,
    Tally,
    open_folded,
)
from operators.view import roots, successor

SESSIONS_KEPT = 8


def fold(playbook: Playbook, anchor: Playbook, window: int, *, after: int = 50) -> Playbook:
    """Fold what ``anchor``, an older state of ``playbook``, holds.

    :param window: the least window of a base still in flight; later removals than that cover what is folded now.
    :param after: a bullet superseded this many windows ago is dropped, its counts going where its chain ends.
    """
    evidence = dict(flat(playbook.evidence))
    votes = dict(flat(playbook.votes))
    folded = {bullet: kept for bullet, record in playbook.records.items() if (kept := open_folded(record)) is not None}
    taken: dict[str, _Taken] = {}
    for pair, old_facets in flat(anchor.evidence).items():
        _take_evidence(pair, old_facets, evidence, taken)
    for pair in flat(anchor.votes):
        gained = VOTE_TALLY[votes.pop(pair, 0)]
        mine = taken.setdefault(pair[0], _Taken())
        mine.helpful += gained[0]
        mine.harmful += gained[1]
    records: dict[str, Record] = {}
    for bullet, record in playbook.records.items():
        counts = record.counts & (anchor.records.get(bullet) or BLANK).counts
        mine = taken.setdefault(bullet, _Taken())
        for count in counts - record.covered_counts:
            mine.helpful += count.helpful
            mine.harmful += count.harmful
        records[bullet] = replace(
            record,
            counts=record.counts - counts,
            covered_counts=record.covered_counts - counts,
            folded=mine.joined(folded.get(bullet), window),
            cover=-1,
        )
    _drop_superseded(playbook, anchor, records, {pair[0] for pair in evidence}, window - after)
    _forget_dead(records, evidence)
    return _rebuilt(playbook, records, evidence, votes)


class _Taken:
    """What one fold takes of one bullet."""

    def __init__(self) -> None:
        self.traces: set[str] = set()
        self.sessions: set[str] = set()
        self.helpful = 0
        self.harmful = 0

    def joined(self, old: Folded | None, window: int) -> Folded | None:
        if not (self.traces or self.helpful or self.harmful):
            return None if old is None else old._replace(window=window)
        if old is None:
            old = Folded(0, 0, 0, (), window)
        return Folded(
            old.traces + len(self.traces),
            old.helpful + self.helpful,
            old.harmful + self.harmful,
            tuple(sorted({*old.sessions, *self.sessions})[:SESSIONS_KEPT]),
            window,
        )


def _take_evidence(pair: Pair, old: Facets, evidence: dict[Pair, Facets], taken: dict[str, _Taken]) -> None:
    old_keys = {facet[:2] for facet in old}
    now = evidence.pop(pair)
    mine = taken.setdefault(pair[0], _Taken())
    for facet in now:
        if facet[:2] in old_keys and facet[2] == SEEN:
            mine.traces.add(pair[1])
            if facet[1]:
                mine.sessions.add(facet[1])
    rest = tuple(facet for facet in now if facet[:2] not in old_keys)
    if rest:
        evidence[pair] = rest


def _drop_superseded(
    playbook: Playbook, anchor: Playbook, records: dict[str, Record], still_open: set[str], oldest: int
) -> None:
    """Move each bullet superseded by ``oldest`` into its successor, and turn what pointed at it to where it went.

    A bullet goes to its direct successor, one that every base in flight knows to follow it, so that a removal which
    names the one names the other too.
    """
    dropped: dict[str, str] = {}
    for bullet in roots(playbook):
        record = playbook.records[bullet]
        edge = successor(record)
        if (
            edge is not None
            and edge.window <= oldest
            and record.person is None
            and bullet not in still_open
            and successor(anchor.records.get(bullet) or BLANK) == edge
        ):
            dropped[bullet] = edge.by
    if not dropped:
        return

    def heir(bullet: str) -> str:
        while bullet in dropped:
            bullet = dropped[bullet]
        return bullet

    for bullet in dropped:
        gone, to = records.pop(bullet), heir(bullet)
        theirs = records.get(to) or BLANK
        records[to] = replace(theirs, folded=_sum(theirs.folded, gone.folded))
    for bullet, record in records.items():
        if record.successor is not None and record.successor.by in dropped:
            to = heir(record.successor.by)
            records[bullet] = replace(
                record, successor=None if to == bullet else Successor(record.successor.window, to)
            )


def _sum(left: Folded | None, right: Folded | None) -> Folded | None:
    if left is None or right is None:
        return left or right
    return Folded(
        left.traces + right.traces,
        left.helpful + right.helpful,
        left.harmful + right.harmful,
        tuple(sorted({*left.sessions, *right.sessions})[:SESSIONS_KEPT]),
        max(left.window, right.window),
    )


def _forget_dead(records: dict[str, Record], evidence: dict[Pair, Facets]) -> None:
    """Forget bullets that nothing keeps alive, that nobody decided about and that no supersession leads to or from."""
    witnessed = {pair[0] for pair in evidence}
    led_to = {record.successor.by for record in records.values() if record.successor is not None}
    for bullet in [
        bullet
        for bullet, record in records.items()
        if record.person is None
        and record.successor is None
        and bullet not in led_to
        and bullet not in witnessed
        and (record.folded is None or not record.folded.traces)
        and not record.counts
    ]:
        del records[bullet]


def _rebuilt(
    playbook: Playbook, records: dict[str, Record], evidence: dict[Pair, Facets], votes: dict[Pair, int]
) -> Playbook:
    evidence = {pair: facets for pair, facets in evidence.items() if pair[0] in records}
    votes = {pair: bits for pair, bits in votes.items() if pair[0] in records}
    return replace(rebuilt(evidence, votes), records=HashTrieMap(records), ids=playbook.ids)


def rebuilt(evidence: dict[Pair, Facets], votes: dict[Pair, int]) -> Playbook:
    """A playbook of just these open facts, tallied."""
    tallies: dict[str, Tally] = {}
    for (bullet, _), facets in evidence.items():
        traces, helpful, harmful = tallies.get(bullet) or NO_TALLY
        tallies[bullet] = (traces + any(facet[2] == SEEN for facet in facets), helpful, harmful)
    for (bullet, _), bits in votes.items():
        traces, helpful, harmful = tallies.get(bullet) or NO_TALLY
        gained = VOTE_TALLY[bits]
        tallies[bullet] = (traces, helpful + gained[0], harmful + gained[1])
    return Playbook(
        evidence=(evidence,) if evidence else (),
        votes=(votes,) if votes else (),
        tallies=HashTrieMap(tallies),
    )
