"""Folding: old evidence and votes become counts, and bullets superseded long ago are dropped.

It keeps a prompt's size proportional to its bullets, and is a step of its own, outside the laws of the combine. It
changes nothing that is shown, and takes only facts that every base in flight has seen (those of ``anchor``): a removal
decided on such a base covers all that is folded of the bullets it names, and must not cover what it never saw.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container

from msgspec.structs import replace
from rpds import HashTrieMap

from operators.chunks import flat
from operators.combine import VOTE_TALLY
from operators.layers import Layers
from operators.playbook import (
    BLANK,
    HARMFUL,
    HELPFUL,
    NO_TALLY,
    SEEN,
    Facets,
    Folded,
    Pair,
    Playbook,
    Record,
    Successor,
    Tally,
    is_alive,
    open_folded,
)
from operators.view import roots, successor

SESSIONS_KEPT = 8


def fold(
    playbook: Playbook, anchor: Playbook, window: int, *, after: int = 50, carried: Container[str] = ()
) -> Playbook:
    """Fold what ``anchor``, an older state of ``playbook``, holds.

    :param window: the least window of a base still in flight; later removals than that cover what is folded now.
    :param after: a bullet superseded this many windows ago is dropped, its counts going where its chain ends.
    :param carried: traces with an insight that is still carried; what else they taught stays open till that is settled.
    """
    evidence = dict(flat(playbook.evidence))
    votes = _later_votes(flat(playbook.votes), flat(anchor.votes))
    left = rebuilt({}, votes).tallies
    folded = {bullet: kept for bullet, record in playbook.records.items() if (kept := open_folded(record)) is not None}
    taken: defaultdict[str, _Taken] = defaultdict(_Taken)
    for pair, old_facets in flat(anchor.evidence).items():
        if pair[1] not in carried:
            _take_evidence(pair, old_facets, evidence, taken)
    records: dict[str, Record] = {}
    for bullet, record in playbook.records.items():
        mine = taken[bullet]
        # There are many votes, so they are not counted one by one: what was taken is what was open and is no more.
        _, helpful, harmful = playbook.tallies.get(bullet) or NO_TALLY
        _, helpful_left, harmful_left = left.get(bullet) or NO_TALLY
        mine.helpful, mine.harmful = helpful - helpful_left, harmful - harmful_left
        if record.counts or record.covered_counts:
            record = _take_counts(record, anchor.records.get(bullet) or BLANK, mine)
        records[bullet] = replace(record, folded=mine.joined(folded.get(bullet), window), cover=-1)
    still_open = {pair[0] for pair in evidence} | {pair[0] for pair in votes}
    _drop_superseded(playbook, anchor, records, still_open, window - after)
    _forget_dead(anchor, records, evidence)
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
            return old
        if old is None:
            old = Folded(0, 0, 0, (), window)
        return Folded(
            old.traces + len(self.traces),
            old.helpful + self.helpful,
            old.harmful + self.harmful,
            tuple(sorted({*old.sessions, *self.sessions})[:SESSIONS_KEPT]),
            window,
        )


def _take_evidence(pair: Pair, old: Facets, evidence: dict[Pair, Facets], taken: defaultdict[str, _Taken]) -> None:
    """Take what one trace taught of one bullet, unless it has taught more since: one trace is to count once."""
    now = evidence.get(pair)
    if now is None or len(now) > len(old):  # an anchor kept under other settings may be older than the last fold
        return
    del evidence[pair]
    for _, session, bits in now:
        if bits == SEEN:
            mine = taken[pair[0]]
            mine.traces.add(pair[1])
            if session:
                mine.sessions.add(session)


def _later_votes(votes: dict[Pair, int], old: dict[Pair, int]) -> dict[Pair, int]:
    """The votes that stay open: those cast since, and those of traces that have voted otherwise since."""
    before = old.get
    return {
        pair: bits for pair, bits in votes.items() if bits & (HELPFUL | HARMFUL) & ~before(pair, 0) or pair not in old
    }


def _take_counts(record: Record, old: Record, taken: _Taken) -> Record:
    counts = record.counts & old.counts
    for count in counts - record.covered_counts:
        taken.helpful += count.helpful
        taken.harmful += count.harmful
    return replace(
        record,
        counts=record.counts - counts,
        covered_counts=record.covered_counts - counts - (old.covered_counts - record.counts),
    )


def _drop_superseded(
    playbook: Playbook, anchor: Playbook, records: dict[str, Record], still_open: set[str], oldest: int
) -> None:
    """Move each bullet superseded by ``oldest`` into its successor, and turn what pointed at it to where it went.

    A bullet goes to its direct successor, one that every base in flight knows to follow it, so that a removal which
    names the one names the other too. One with open facts waits: what is shown must not change.
    """
    dropped: dict[str, Successor] = {}
    for bullet in roots(playbook):
        record = records[bullet]
        edge = successor(record)
        if (
            edge is not None
            and edge.window <= oldest
            and record.person is None
            and not record.counts
            and bullet not in still_open
            and successor(anchor.records.get(bullet) or BLANK) == edge
        ):
            dropped[bullet] = edge
    if not dropped:
        return

    def led(edge: Successor) -> Successor:
        # As old as the newest passed on the way, or a circle would lose its newest and with it its end.
        while edge.by in dropped:
            onwards = dropped[edge.by]
            edge = max(edge, onwards)._replace(by=onwards.by)
        return edge

    for bullet, edge in dropped.items():
        gone, to = records.pop(bullet), led(edge).by
        theirs = records.get(to) or BLANK
        records[to] = replace(theirs, folded=_sum(theirs.folded, gone.folded))
    for bullet, record in records.items():
        if record.successor is not None and record.successor.by in dropped:
            edge = led(record.successor)
            records[bullet] = replace(record, successor=None if edge.by == bullet else edge)


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


def _forget_dead(anchor: Playbook, records: dict[str, Record], evidence: dict[Pair, Facets]) -> None:
    """Forget bullets that nothing keeps alive, that nobody decided about and that no supersession leads to or from.

    One that ``anchor`` may show waits: a base in flight shows it too, and may yet bring evidence for it.
    """
    witnessed = {pair[0] for pair in evidence}
    led_to = {
        record.successor.by
        for known in (records, anchor.records)
        for record in known.values()
        if record.successor is not None
    }
    for bullet in [
        bullet
        for bullet, record in records.items()
        if record.person is None
        and record.successor is None
        and bullet not in led_to
        and bullet not in witnessed
        and (record.folded is None or not record.folded.traces)
        and not record.counts
        and not is_alive(anchor, bullet)
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
        tallies=Layers(tallies),
    )
