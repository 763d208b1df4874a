"""Caps: what stands between a window's merged delta and the playbook. Support holds back, the budget evicts.

Both act on the delta, before apply: what is held back stays pending in the state, an eviction is a removal.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from operators.budget import cost
from operators.facts import EMPTY, Delta, merge
from operators.playbook import Playbook, is_alive
from operators.settings import Settings
from operators.similar import Texts
from operators.text import display_number
from operators.values import Bullet

PENDING_KEPT = 2_000
"""The most bullets that wait for support; those that the fewest traces teach go first."""


def support(delta: Delta, pending: Delta, playbook: Playbook, settings: Settings) -> tuple[Delta, Delta]:
    """Hold back what too few traces or sessions teach, and what a person removed in other words.

    Traces without a session count as one session together: nothing shows that they are several.

    :return: the delta that may be applied, and what is pending from now on.
    """
    if pending is EMPTY and all(is_alive(playbook, bullet) for bullet in {fact.bullet for fact in delta.evidence}):
        return delta, EMPTY  # what is alive is never held back
    removed = _removed_by_people(playbook)
    if not removed and pending is EMPTY and settings.support_traces <= 1 and settings.support_sessions <= 1:
        return delta, EMPTY
    candidate = merge(delta, pending)
    traces: dict[str, set[str]] = {}
    sessions: dict[str, set[str]] = {}
    for bullet, trace, _, session in candidate.evidence - candidate.covered_evidence:
        traces.setdefault(bullet, set()).add(trace)
        sessions.setdefault(bullet, set()).add(session)
    worded = {(text.bullet, text.content) for text in candidate.texts}
    for bullet in traces.keys() - {text.bullet for text in candidate.texts}:
        record = playbook.records.get(bullet)  # evidence alone may bring a bullet back that was removed
        if record is not None and record.text is not None:
            worded.add((bullet, record.text.content))
    texts = Texts(removed)
    held = {
        bullet
        for bullet, content in worded
        if bullet in traces
        and not is_alive(playbook, bullet)
        and (
            len(traces[bullet]) < settings.support_traces
            or len(sessions[bullet]) < settings.support_sessions
            or (removed and texts.same_as(content) is not None)
        )
    }
    if not held:
        return candidate, EMPTY
    kept = set(sorted(held, key=lambda bullet: (-len(traces.get(bullet, ())), bullet))[:PENDING_KEPT])
    return _only(candidate, held, inside=False), _only(candidate, kept, inside=True)


def _removed_by_people(playbook: Playbook) -> list[str]:
    return [
        record.text.content
        for record in playbook.records.values()
        if record.person is not None and record.person.kind == "remove" and record.text is not None
    ]


def _only(delta: Delta, bullets: Collection[str], *, inside: bool) -> Delta:
    """The facts of just these bullets, or of all others; a supersession is a fact of the bullet that it leads to."""

    def mine(bullet: str) -> bool:
        return (bullet in bullets) is inside

    return Delta(
        texts=frozenset(fact for fact in delta.texts if mine(fact.bullet)),
        evidence=frozenset(fact for fact in delta.evidence if mine(fact.bullet)),
        votes=frozenset(fact for fact in delta.votes if mine(fact.bullet)),
        counts=frozenset(fact for fact in delta.counts if mine(fact.bullet)),
        supersessions=frozenset(fact for fact in delta.supersessions if mine(fact.by)),
        covered_evidence=frozenset(fact for fact in delta.covered_evidence if mine(fact.bullet)),
        covered_votes=frozenset(fact for fact in delta.covered_votes if mine(fact.bullet)),
        covered_counts=frozenset(fact for fact in delta.covered_counts if mine(fact.bullet)),
        covered_folds=frozenset(fact for fact in delta.covered_folds if mine(fact.bullet)),
        people=frozenset(fact for fact in delta.people if mine(fact.bullet)),
    )


def evicted(live: Mapping[str, Bullet], token_budget: int, before: Collection[str] | None = None) -> list[str]:
    """The bullets that must yield so that the others fit the budget: the least useful by votes, then the oldest.

    What a person fixed never yields.

    :param before: the bullets shown until now: one that comes back is as new as one never shown, though its id is old,
        or it would yield each time that it is learned again. None: those that have an id.
    """
    total = sum(map(cost, live.values()))
    if total <= token_budget:
        return []
    yielding = sorted(
        (bullet for bullet in live.values() if not bullet.pinned),
        key=lambda bullet: (
            cost(bullet) <= token_budget,  # one that no budget holds goes first, not after all the others
            bullet.helpful - bullet.harmful,
            not bullet.id if before is None else bullet.bullet not in before,
            display_number(bullet.id),
            bullet.bullet,
        ),
    )
    out = []
    for bullet in yielding:
        if total <= token_budget:
            break
        out.append(bullet.bullet)
        total -= cost(bullet)
    return out
