"""The combine: joining deltas into a playbook.

``apply(apply(P, a), b) == apply(P, merge(a, b))`` in everything but display ids, because each kind of fact joins by an
associative, commutative, idempotent operation of its own: a minimum of texts, an OR of bits, a maximum of supersessions
and of people's facts, a union of counts. One apply costs O(facts in the delta), whatever the playbook's size.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable
from operator import itemgetter, or_
from typing import TypeVar

from msgspec.structs import replace
from rpds import HashTrieMap

from operators.chunks import are_new, join, push
from operators.facts import Count, Delta, Evidence, FoldCover, PersonFact, Supersession, Text, Vote
from operators.playbook import (
    BLANK,
    COVERED,
    COVERED_HARMFUL,
    COVERED_HELPFUL,
    HARMFUL,
    HELPFUL,
    NO_TALLY,
    SEEN,
    Facets,
    Pair,
    Playbook,
    Record,
    Successor,
    Tally,
)

F = TypeVar("F", Text, Count, Supersession, FoldCover, PersonFact)

_BULLET, _PAIR = itemgetter(0), itemgetter(0, 1)

# What a trace's vote bits add to (helpful, harmful): an uncovered harmful vote beats a helpful one.
VOTE_TALLY = tuple(
    (0, 1) if bits & HARMFUL and not bits & COVERED_HARMFUL else (int(bits & (HELPFUL | COVERED_HELPFUL) == HELPFUL), 0)
    for bits in range(16)
)


def apply(playbook: Playbook, delta: Delta) -> Playbook:
    """Join the facts of ``delta`` into ``playbook``; the very same object when it knew them all."""
    return joined(playbook, delta)[0]


def joined(playbook: Playbook, delta: Delta) -> tuple[Playbook, dict[str, Tally]]:
    """Do as :func:`apply` does, and tell the tallies of the bullets whose open facts differ from before."""
    tallies: dict[str, Tally] = {}
    known = playbook.tallies.get
    evidence, votes, records = playbook.evidence, playbook.votes, playbook.records
    if delta.evidence or delta.covered_evidence:
        evidence, moves = join(evidence, _facets(delta.evidence, delta.covered_evidence), _join_facets)
        for (bullet, _), before, after in moves:
            traces, helpful, harmful = tallies.get(bullet) or known(bullet) or NO_TALLY
            tallies[bullet] = (traces + _is_open(after) - _is_open(before), helpful, harmful)
    if delta.votes or delta.covered_votes:
        bits = _bits(delta.votes, delta.covered_votes)
        if max(bits.values()) == HELPFUL and are_new(votes, bits):  # nearly always: then counting is all there is to do
            votes = push(votes, bits)
            for bullet, count in Counter(map(_BULLET, bits)).items():
                traces, helpful, harmful = tallies.get(bullet) or known(bullet) or NO_TALLY
                tallies[bullet] = (traces, helpful + count, harmful)
        else:
            votes, cast = join(votes, bits, or_)
            for (bullet, _), was, now in cast:
                traces, helpful, harmful = tallies.get(bullet) or known(bullet) or NO_TALLY
                gained, lost = VOTE_TALLY[now], VOTE_TALLY[was or 0]
                tallies[bullet] = (traces, helpful + gained[0] - lost[0], harmful + gained[1] - lost[1])
    changed = _joined_records(records, delta)
    if evidence is playbook.evidence and votes is playbook.votes and not changed:
        return playbook, tallies
    new = Playbook(
        records.update(changed) if changed else records,
        evidence,
        votes,
        playbook.tallies.update(tallies) if tallies else playbook.tallies,
        playbook.ids,
    )
    return new, tallies


def _facets(seen: Iterable[Evidence], covered: Iterable[Evidence]) -> dict[Pair, Facets]:
    facets: dict[Pair, Facets] = {}
    for facts, bit in ((seen, SEEN), (covered, COVERED)):
        for bullet, trace, number, session in facts:
            facet = ((number, session, bit),)
            known = facets.get((bullet, trace))
            facets[bullet, trace] = facet if known is None else _join_facets(known, facet)
    return facets


def _join_facets(left: Facets, right: Facets) -> Facets:
    bits = {facet[:2]: facet[2] for facet in left}
    for number, session, bit in right:
        bits[number, session] = bits.get((number, session), 0) | bit
    return tuple(sorted((*key, bit) for key, bit in bits.items()))


def _is_open(facets: Facets | None) -> bool:
    return facets is not None and any(facet[2] == SEEN for facet in facets)


def _bits(votes: Collection[Vote], covered: Collection[Vote]) -> dict[Pair, int]:
    harmful_votes = [vote for vote in votes if vote[2]]
    if harmful_votes:
        bits = dict.fromkeys([(bullet, trace) for bullet, trace, harmful in votes if not harmful], HELPFUL)
        for bullet, trace, _ in harmful_votes:
            bits[bullet, trace] = bits.get((bullet, trace), 0) | HARMFUL
    else:
        bits = dict.fromkeys(map(_PAIR, votes), HELPFUL)
    for bullet, trace, harmful in covered:
        pair = (bullet, trace)
        bits[pair] = bits.get(pair, 0) | (COVERED_HARMFUL if harmful else COVERED_HELPFUL)
    return bits


def _joined_records(records: HashTrieMap[str, Record], delta: Delta) -> dict[str, Record]:
    changed: dict[str, Record] = {}

    def join_all(facts: Iterable[F], joined: Callable[[Record, F], Record]) -> None:
        for fact in facts:
            old = changed.get(fact[0]) or records.get(fact[0]) or BLANK
            new = joined(old, fact)
            if new is not old:
                changed[fact[0]] = new

    if delta.texts:
        join_all(delta.texts, _with_text)
    if delta.counts or delta.supersessions or delta.covered_counts or delta.covered_folds or delta.people:
        join_all(delta.counts, _with_count)
        join_all(delta.covered_counts, _with_covered_count)
        join_all(delta.supersessions, _with_supersession)
        join_all(delta.covered_folds, _with_cover)
        join_all(delta.people, _with_person)
    return changed


def _with_text(record: Record, text: Text) -> Record:
    return replace(record, text=text) if record.text is None or text < record.text else record


def _with_count(record: Record, count: Count) -> Record:
    return record if count in record.counts else replace(record, counts=record.counts | {count})


def _with_covered_count(record: Record, count: Count) -> Record:
    if count in record.covered_counts:
        return record
    return replace(record, covered_counts=record.covered_counts | {count})


def _with_supersession(record: Record, fact: Supersession) -> Record:
    if fact.bullet == fact.by or (record.successor is not None and (fact.window, fact.by) <= record.successor[:2]):
        return record
    return replace(record, successor=Successor(fact.window, fact.by, fact.by))


def _with_cover(record: Record, fact: FoldCover) -> Record:
    return replace(record, cover=fact.window) if fact.window > record.cover else record


def _with_person(record: Record, fact: PersonFact) -> Record:
    return replace(record, person=fact) if record.person is None or fact[1:] > record.person[1:] else record
