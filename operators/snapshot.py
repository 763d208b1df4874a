"""States as plain values: what is written between windows, and read back after a crash.

Everything is sorted, so that equal states are equal bytes.
"""

from __future__ import annotations

from msgspec import Struct
from rpds import HashTrieMap

from operators.chunks import flat
from operators.combine import apply
from operators.facts import EMPTY, Delta
from operators.fold import rebuilt
from operators.playbook import Facets, Playbook, Record
from operators.state import Carried, PromptState, Quarantined, Standing, Step
from operators.text import order
from operators.view import shown


class Facts(Struct, frozen=True, omit_defaults=True):
    """A playbook in full: records by identity, open evidence and votes by bullet and trace, display ids."""

    records: tuple[tuple[str, Record], ...] = ()
    evidence: tuple[tuple[str, str, Facets], ...] = ()
    votes: tuple[tuple[str, str, int], ...] = ()
    ids: tuple[tuple[str, str], ...] = ()


class StandingSnapshot(Struct, frozen=True, omit_defaults=True):
    """A standing by its facts in full, or by the step from the one before."""

    version: int = 0
    window: int = 0
    facts: Facts | None = None
    delta: Delta = EMPTY
    ids: tuple[tuple[str, str], ...] = ()


class Snapshot(Struct, frozen=True, omit_defaults=True):
    """A prompt's state; the standings are oldest first, and the last is the newest version."""

    prompt: str
    standings: tuple[StandingSnapshot, ...]
    schema: int = 1
    counter: int = 0
    carried: tuple[Carried, ...] = ()
    pending: Delta = EMPTY
    quarantined: tuple[Quarantined, ...] = ()
    at: str | None = None


def dump(state: PromptState) -> Snapshot:
    """The state as plain values."""
    first, *others = (*state.older, state.now)
    standings = [_in_full(first), *map(standing_snapshot, others)]
    return Snapshot(
        prompt=state.prompt,
        standings=tuple(standings),
        counter=state.counter,
        carried=state.carried,
        pending=state.pending,
        quarantined=state.quarantined,
        at=state.at,
    )


def standing_snapshot(standing: Standing) -> StandingSnapshot:
    """A standing that is not the oldest of its state: by its step, where there is one."""
    step = standing.step
    if step is None:
        return _in_full(standing)
    return StandingSnapshot(standing.version, standing.window, None, step.delta, tuple(sorted(step.ids)))


def _in_full(standing: Standing) -> StandingSnapshot:
    return StandingSnapshot(standing.version, standing.window, facts(standing.playbook))


def load(snapshot: Snapshot) -> PromptState:
    """The state that :func:`dump` was given."""
    standings: list[Standing] = []
    for each in snapshot.standings:
        step = None
        if each.facts is not None:
            playbook = playbook_of(each.facts)
        else:
            step = Step(each.delta, each.ids)
            playbook = apply(standings[-1].playbook, each.delta)
            playbook = with_ids(playbook, each.ids)
        standings.append(Standing(each.version, each.window, playbook, tuple(order(shown(playbook).values())), step))
    return PromptState(
        prompt=snapshot.prompt,
        now=standings[-1],
        older=tuple(standings[:-1]),
        counter=snapshot.counter,
        carried=snapshot.carried,
        pending=snapshot.pending,
        quarantined=snapshot.quarantined,
        at=snapshot.at,
    )


def with_ids(playbook: Playbook, ids: tuple[tuple[str, str], ...]) -> Playbook:
    """The playbook with display ids given."""
    if not ids:
        return playbook
    return Playbook(
        playbook.records, playbook.evidence, playbook.votes, playbook.tallies, playbook.ids.update(dict(ids))
    )


def facts(playbook: Playbook) -> Facts:
    """The facts of a playbook, sorted."""
    return Facts(
        records=tuple(sorted(playbook.records.items())),
        evidence=tuple(sorted((*pair, facets) for pair, facets in flat(playbook.evidence).items())),
        votes=tuple(sorted((*pair, bits) for pair, bits in flat(playbook.votes).items())),
        ids=tuple(sorted(playbook.ids.items())),
    )


def playbook_of(facts: Facts) -> Playbook:
    """The playbook of these facts."""
    opened = rebuilt(
        {(bullet, trace): facets for bullet, trace, facets in facts.evidence},
        {(bullet, trace): bits for bullet, trace, bits in facts.votes},
    )
    return Playbook(
        HashTrieMap(dict(facts.records)), opened.evidence, opened.votes, opened.tallies, HashTrieMap(dict(facts.ids))
    )
