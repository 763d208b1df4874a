"""What a playbook shows, derived from its facts: which bullets are live, their text, their counts.

Deriving is O(playbook), like writing a version out; only joining facts must cost the change alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from operators.chunks import flat
from operators.facts import Count, Delta, Evidence, FoldCover, Text, Vote
from operators.playbook import (
    BLANK,
    COVERED_HARMFUL,
    COVERED_HELPFUL,
    HARMFUL,
    HELPFUL,
    NO_TALLY,
    SEEN,
    Playbook,
    Record,
    Successor,
    is_alive,
    open_folded,
)
from operators.values import Bullet


def is_fixed(record: Record) -> bool:
    """Whether a person's edit or pin holds: nothing the learner does changes such a bullet."""
    return record.person is not None and record.person.kind in ("edit", "pin")


def successor(record: Record) -> Successor | None:
    """The supersession a bullet follows, if any."""
    return None if record.successor is None or is_fixed(record) else record.successor


def roots(playbook: Playbook) -> dict[str, str]:
    """Where the chain of supersessions of each superseded bullet ends; a bullet that is not superseded is not in it."""
    edges = {bullet: edge for bullet, record in playbook.records.items() if (edge := successor(record)) is not None}
    ends: dict[str, str] = {}
    for start in edges:
        path: dict[str, Successor] = {}
        here = start
        while here not in ends and here not in path and here in edges:
            path[here] = edges[here]
            here = edges[here].by
        end = _circle_end(here, path) if here in path else ends.get(here, here)
        for bullet in path:
            ends[bullet] = end
    return {bullet: end for bullet, end in ends.items() if bullet != end}


def _circle_end(entry: str, path: Mapping[str, Successor]) -> str:
    circle = [entry]
    while (following := path[circle[-1]].by) != entry:
        circle.append(following)
    return max(path[bullet] for bullet in circle).by


def root(playbook: Playbook, bullet: str) -> str:
    """Where one bullet's chain of supersessions ends; itself when it is not superseded."""
    path: dict[str, Successor] = {}
    while bullet not in path:
        record = playbook.records.get(bullet)
        edge = None if record is None else successor(record)
        if edge is None:
            return bullet
        path[bullet] = edge
        bullet = edge.by
    return _circle_end(bullet, path)


def recounted(
    bullets: Sequence[Bullet], old: Playbook, new: Playbook, touched: Iterable[str]
) -> tuple[Bullet, ...] | None:
    """What ``new`` shows, where it is what ``old`` showed with other counts; None where it may be more than that.

    The usual window casts votes on bullets that are known; for it, this spares deriving everything anew.

    :param bullets: what ``old`` shows.
    :param touched: the bullets whose open facts differ.
    """
    if new.records is not old.records:
        return None
    showing = {each.bullet for each in bullets}  # the chain of what shows ends in itself
    more: dict[str, tuple[int, int, int]] = {}
    for bullet in touched:
        before, after = old.tallies.get(bullet) or NO_TALLY, new.tallies.get(bullet) or NO_TALLY
        if before == after:
            continue
        if after[0] < before[0]:
            return None
        end = bullet if bullet in showing else root(new, bullet)
        sums = more.get(end, NO_TALLY)
        more[end] = (
            sums[0] + after[0] - before[0],
            sums[1] + after[1] - before[1],
            sums[2] + after[2] - before[2],
        )
    found = []
    for each in bullets:
        plus = more.pop(each.bullet, None) if more else None
        if plus is None:
            found.append(each)
            continue
        found.append(
            Bullet(
                each.id,
                each.section,
                each.content,
                each.helpful + plus[1],
                each.harmful + plus[2],
                each.bullet,
                each.key,
                each.raw,
                each.pinned,
                each.traces + plus[0],
            )
        )
    # What is left concerns bullets that did not show: votes leave it so, evidence may bring them back.
    return None if any(plus[0] for plus in more.values()) else tuple(found)


def chains(playbook: Playbook) -> dict[str, list[str]]:
    """For each bullet that others end in, those others, sorted."""
    members: dict[str, list[str]] = {}
    for bullet, end in roots(playbook).items():
        members.setdefault(end, []).append(bullet)
    for bullets in members.values():
        bullets.sort()
    return members


def shown(playbook: Playbook) -> dict[str, Bullet]:
    """The live bullets by identity, with the counts of all they supersede; display ids as given so far."""
    members = chains(playbook)
    superseded = {bullet for bullets in members.values() for bullet in bullets}
    ids = playbook.ids
    live: dict[str, Bullet] = {}
    for bullet, record in playbook.records.items():
        if bullet in superseded:
            continue
        person, fixed = record.person, is_fixed(record)
        if person is not None and person.kind == "remove":
            continue
        chain = members.get(bullet, ())
        if not (fixed or is_alive(playbook, bullet) or any(is_alive(playbook, other) for other in chain)):
            continue
        text = _text(record, fixed)
        if text is None:
            continue
        traces, helpful, harmful = _tally(playbook, bullet, record)
        for other in chain:
            more = _tally(playbook, other, playbook.records.get(other) or BLANK)
            traces, helpful, harmful = traces + more[0], helpful + more[1], harmful + more[2]
        live[bullet] = Bullet(
            id=ids.get(bullet) or "",
            section=text.section,
            content=text.content,
            helpful=helpful,
            harmful=harmful,
            bullet=bullet,
            key=text.key,
            raw=text.raw,
            pinned=fixed,
            traces=traces,
        )
    return live


def _text(record: Record, fixed: bool) -> Text | None:
    if not fixed or record.person is None:
        return record.text
    bullet, _, _, content, section = record.person
    return Text(bullet, False, content, section, record.text.key if record.text else "")


def _tally(playbook: Playbook, bullet: str, record: Record) -> tuple[int, int, int]:
    """Traces, helpful and harmful of one bullet alone, folded and imported ones included."""
    traces, helpful, harmful = playbook.tallies.get(bullet) or NO_TALLY
    for count in record.counts - record.covered_counts:
        helpful += count.helpful
        harmful += count.harmful
    folded = open_folded(record)
    if folded is not None:
        return traces + folded.traces, helpful + folded.helpful, harmful + folded.harmful
    return traces, helpful, harmful


def removal(playbook: Playbook, bullets: Iterable[str], window: int) -> Delta:
    """The removal of live bullets: it covers all evidence, votes and counts of theirs and of all that end in them.

    :param window: the last window that ``playbook`` holds; what is folded after it stays uncovered.
    """
    members = chains(playbook)
    named = {each for bullet in bullets for each in (bullet, *members.get(bullet, ()))}
    evidence: set[Evidence] = set()
    votes: set[Vote] = set()
    counts: set[Count] = set()
    folds: set[FoldCover] = set()
    if not named:
        return Delta()
    for (bullet, trace), facets in flat(playbook.evidence).items():
        if bullet in named:
            evidence.update(
                Evidence(bullet, trace, number, session) for number, session, bits in facets if bits == SEEN
            )
    for (bullet, trace), bits in flat(playbook.votes).items():
        if bullet in named:
            if bits & HELPFUL and not bits & COVERED_HELPFUL:
                votes.add(Vote(bullet, trace, False))
            if bits & HARMFUL and not bits & COVERED_HARMFUL:
                votes.add(Vote(bullet, trace, True))
    for bullet in named:
        record = playbook.records.get(bullet) or BLANK
        counts |= record.counts - record.covered_counts
        folds.add(FoldCover(bullet, window))  # even with nothing folded yet: a fold may take what is listed here
    return Delta(
        covered_evidence=frozenset(evidence),
        covered_votes=frozenset(votes),
        covered_counts=frozenset(counts),
        covered_folds=frozenset(folds),
    )
