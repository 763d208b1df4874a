"""A prompt's states as bytes, one version after another: what the version before has written is not written anew.

A state holds all facts of its oldest standing, thousands of them, of which a window changes some fifty; to sort and
encode them all for each version would cost more than learning it. The bytes are those of what
:func:`operators.snapshot.dump` gives.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from operator import itemgetter
from typing import Any, Generic, TypeVar

from msgspec import Raw

from operators.chunks import flat, get
from operators.facts import Delta
from operators.playbook import Pair, Playbook
from operators.snapshot import Facts, Snapshot, StandingSnapshot, standing_snapshot
from operators.state import PromptState, Standing
from operators.wire import encode

K = TypeVar("K", str, Pair)

_PAIR = itemgetter(0, 1)


class StateWriter:
    """Writes the states of one prompt. Any state may come next; the next version's is the cheap one.

    It holds some 350 kB with 20 bullets and 1,000 open votes, 1 MB with 500 bullets: keep one for each busy prompt and
    let those of idle prompts go, for a new one only starts by writing everything.
    """

    def __init__(self) -> None:
        self._standings: tuple[Standing, ...] = ()
        self._written: list[Raw] = []
        self._facts = _Facts(Playbook())
        self._folded: tuple[Standing, _Facts] | None = None  # not the oldest yet, but written in full as well

    def snapshot(self, state: PromptState) -> Raw:
        """The JSON of a state's snapshot, to stand in a message of its own or in a larger one."""
        standings = (*state.older, state.now)
        first = self._first(standings[0])
        rest = [self._later(standing) for standing in standings[1:]]
        self._standings, self._written = standings, [first, *rest]
        parts: Any = tuple(self._written)
        return Raw(
            encode(
                Snapshot(
                    prompt=state.prompt,
                    standings=parts,
                    counter=state.counter,
                    carried=state.carried,
                    pending=state.pending,
                    quarantined=state.quarantined,
                    at=state.at,
                )
            )
        )

    def _first(self, standing: Standing) -> Raw:
        """The oldest standing, by its facts in full."""
        if self._standings and standing is self._standings[0]:
            return self._written[0]
        at = _place(standing, self._standings)
        passed = self._standings[1 : at + 1] if at is not None else ()
        if passed and all(each.step is not None for each in passed):
            for each in passed:
                self._facts.take(each)
        elif self._folded is not None and standing is self._folded[0]:
            self._facts, self._folded = self._folded[1], None
        else:
            self._facts = _Facts(standing.playbook)
        return self._facts.of(standing)

    def _later(self, standing: Standing) -> Raw:
        at = _place(standing, self._standings)
        if at:
            return self._written[at]
        if standing.step is None:
            self._folded = (standing, _Facts(standing.playbook))
            return self._folded[1].of(standing)
        return Raw(encode(standing_snapshot(standing)))


def _place(standing: Standing, standings: tuple[Standing, ...]) -> int | None:
    """Where the very same standing is; they hold whole playbooks, which are not to be compared."""
    return next((at for at, each in enumerate(standings) if each is standing), None)


class _Facts:
    """The facts of one playbook, written."""

    def __init__(self, playbook: Playbook) -> None:
        self._records = _Sorted[str](dict(playbook.records.items()))
        self._evidence = _Sorted[Pair](flat(playbook.evidence))
        self._votes = _Sorted[Pair](flat(playbook.votes))
        self._ids = _Sorted[str](dict(playbook.ids.items()))

    def take(self, standing: Standing) -> None:
        """Bring them up to the next standing, by the step that led there."""
        step, playbook = standing.step, standing.playbook
        assert step is not None
        delta, evidence, votes = step.delta, playbook.evidence, playbook.votes
        taught = {*map(_PAIR, delta.evidence), *map(_PAIR, delta.covered_evidence)}
        voted = {*map(_PAIR, delta.votes), *map(_PAIR, delta.covered_votes)}
        self._records.put({bullet: playbook.records[bullet] for bullet in _recorded(delta)})
        self._evidence.put({pair: get(evidence, pair) for pair in taught})
        self._votes.put({pair: get(votes, pair) for pair in voted})
        self._ids.put(dict(step.ids))

    def of(self, standing: Standing) -> Raw:
        """The standing whose facts they are, in full."""
        kinds: list[Any] = [each.written() for each in (self._records, self._evidence, self._votes, self._ids)]
        return Raw(encode(StandingSnapshot(standing.version, standing.window, Facts(*kinds))))


def _recorded(delta: Delta) -> set[str]:
    """The bullets whose records a delta may change."""
    kinds: tuple[Iterable[tuple[Any, ...]], ...] = (
        delta.texts,
        delta.counts,
        delta.supersessions,
        delta.covered_counts,
        delta.covered_folds,
        delta.people,
    )
    return {fact[0] for facts in kinds for fact in facts}


class _Sorted(Generic[K]):
    """One kind of facts in the order of their keys, each with its JSON."""

    def __init__(self, known: dict[K, Any]) -> None:
        self._keys: list[K] = sorted(known)
        self._lines = [_line(key, known[key]) for key in self._keys]

    def put(self, news: dict[K, Any]) -> None:
        """Write the values of some keys, known or new."""
        keys, lines = self._keys, self._lines
        for key, value in news.items():
            at = bisect_left(keys, key)
            if at < len(keys) and keys[at] == key:
                lines[at] = _line(key, value)
            else:
                keys.insert(at, key)
                lines.insert(at, _line(key, value))

    def written(self) -> Raw | tuple[()]:
        """All of them; what a snapshot leaves out where there are none."""
        return Raw(b"[" + b",".join(self._lines) + b"]") if self._lines else ()


def _line(key: str | Pair, value: Any) -> bytes:
    return encode((key, value) if isinstance(key, str) else (*key, value))
