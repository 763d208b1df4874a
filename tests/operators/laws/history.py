"""Histories of a prompt: windows decided on stale bases, imports, people and rollbacks, with foldings in between.

Each event happens twice: to a playbook by the code under test, and to the never-folding reference. What is decided
(which live bullets of the base an operation names) is the history's own; only what a removal covers is asked of both.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import NamedTuple

from operators.combine import apply
from operators.facts import Count, Delta, Evidence, PersonFact, Supersession, Text, Vote, merge
from operators.fold import fold
from operators.playbook import Playbook
from operators.state import PromptState, Standing, base_for, stand
from operators.view import removal
from tests.operators.laws.reference import Fact, Reference, as_shown
from tests.operators.laws.strategies import KINDS

BULLETS = tuple("abcdefgh")

Action = tuple[str, int, int]
"""What happens, and two numbers that choose among what there is to choose from."""

LEARNERS = ("add", "update", "merge", "refine", "remove", "vote", "carry", "keep")
BETWEEN = ("import", "person", "rollback")


class Version(NamedTuple):
    """What a version left behind: the standing under test, the reference, the names of what is live."""

    standing: Standing
    reference: Reference
    live: list[str]


class Window:
    """One window under construction: its delta, and what its removals cover by the reference."""

    def __init__(self, base: Version) -> None:
        self.base, self.reference, self.live = base
        self.delta = Delta()
        self.covers: set[Fact] = set()
        self.proposed: list[str] = []

    def join(self, delta: Delta) -> None:
        """Join what one operation decided."""
        self.delta = merge(self.delta, delta)

    def remove(self, playbook: Playbook, reference: Reference, names: Sequence[str], number: int) -> None:
        """Remove live bullets of a playbook that holds windows up to ``number``."""
        self.join(removal(playbook, names, number))
        self.covers |= reference.seen_by_removal(names)

    def add_to(self, reference: Reference) -> None:
        """Join this window's facts into a reference."""
        learnt = self.delta
        reference.add(
            Delta(
                texts=learnt.texts,
                evidence=learnt.evidence,
                votes=learnt.votes,
                supersessions=learnt.supersessions,
            )
        )
        reference.cover(self.covers)


class History:
    """A prompt's history so far, held against the reference after every event."""

    def __init__(self, max_staleness: int, fold_every: int, fold_after: int) -> None:
        self.max_staleness, self.fold_every, self.fold_after = max_staleness, fold_every, fold_after
        self.state = PromptState("p")
        self.reference = Reference()
        self.versions = [Version(self.state.now, self.reference.copy(), [])]
        self.folds = 0
        self._carried: list[tuple[str, str, int]] = []
        self._voted: dict[str, int] = {}
        self._traces = self._controls = 0

    def run(self, windows: Sequence[Sequence[Action]]) -> None:
        """Let each window happen, and then what lies between it and the next."""
        for actions in windows:
            self.window(actions)
            for kind, i, j in actions:
                if kind in BETWEEN:
                    getattr(self, f"_{kind}")(i, j)

    def window(self, actions: Sequence[Action]) -> None:
        """Decide a window on its base, apply it to the newest state, and fold when it is time."""
        now = self.state.now
        number = now.window + 1
        base = base_for(self.state, number, self.max_staleness)
        window = Window(self.versions[base.version])
        for kind, i, j in actions:
            if kind in LEARNERS:
                getattr(self, f"_{kind}")(window, i, j)
        for kind, i, _ in actions:
            if kind == "evict":
                self._evict(window, number, i)
        playbook = apply(now.playbook, window.delta)
        window.add_to(self.reference)
        standing = Standing(now.version + 1, number, playbook)
        older = stand(self.state, standing, self.max_staleness)
        if number % self.fold_every == 0:
            standing = Standing(standing.version, number, self._fold(playbook, older, number))
        self._stands(standing, older)

    def _stands(self, standing: Standing, older: tuple[Standing, ...]) -> None:
        live = self.reference.shown()
        assert as_shown(standing.playbook) == live
        self.state = PromptState("p", standing, older)
        self.versions.append(Version(standing, self.reference.copy(), sorted(live)))

    # What a window's curators decide, on its base

    def _teach(self, window: Window, bullet: str, wording: int, sources: Sequence[str] = ()) -> None:
        trace = self._trace()
        if wording % 2:
            self._carried.append((trace, bullet, self.state.now.window + 1))
        window.proposed.append(bullet)
        window.join(
            Delta(
                texts=frozenset({_text(bullet, wording)}),
                evidence=frozenset({Evidence(bullet, trace, 1, f"s{wording}")}),
                supersessions=frozenset(
                    Supersession(source, window.base.window, bullet) for source in sources if source != bullet
                ),
            )
        )

    def _trace(self) -> str:
        self._traces += 1
        return f"t{self._traces}"

    def _add(self, window: Window, i: int, j: int) -> None:
        self._teach(window, _name(i), j)

    def _update(self, window: Window, i: int, j: int) -> None:
        self._teach(window, _name(j), i, _some(window.live, i, 1))

    def _merge(self, window: Window, i: int, j: int) -> None:
        self._teach(window, _name(j), i, _some(window.live, i, 3))

    def _refine(self, window: Window, i: int, j: int) -> None:
        """Level 2 supersedes proposals of its own window."""
        self._teach(window, _name(j), i, _some(window.proposed, i, 2))

    def _remove(self, window: Window, i: int, j: int) -> None:
        names = _some(window.live, i, 1 + j % 2)
        window.remove(window.base.playbook, window.reference, names, window.base.window)

    def _vote(self, window: Window, i: int, j: int) -> None:
        """A trace votes on whatever it may have seen, now and then twice on one bullet."""
        number = self.state.now.window + 1
        trace = self._trace() if j & 2 or not self._traces else f"t{self._traces}"
        if self._voted.setdefault(trace, number) == number:
            window.join(Delta(votes=frozenset({Vote(_name(i), trace, bool(j & 1))})))

    def _carry(self, window: Window, i: int, j: int) -> None:
        """An insight carried from an earlier window becomes evidence, of a bullet its trace may have taught before."""
        recent = self._still_carried()
        if recent:
            trace, bullet = recent[i % len(recent)]
            bullet = _name(j) if j % 2 else bullet
            learnt = Evidence(bullet, trace, 2 + i, "s")
            window.join(Delta(texts=frozenset({_text(bullet, i)}), evidence=frozenset({learnt})))

    def _keep(self, window: Window, i: int, j: int) -> None:
        """A carried insight says what a bullet of the base says already: evidence, without a text of its own."""
        for name in _some(window.live, i, 1):
            window.join(Delta(evidence=frozenset({Evidence(name, self._trace(), 1 + j, "s")})))

    def _still_carried(self) -> list[tuple[str, str]]:
        """The traces with insights that the next window may be given once more, and what they have taught."""
        oldest = self.state.now.window - 2 * self.max_staleness - 1
        return [(trace, bullet) for trace, bullet, taught in self._carried if taught >= oldest]

    def _evict(self, window: Window, number: int, i: int) -> None:
        """A cap removes a bullet of what the window would make."""
        reference = self.reference.copy()
        window.add_to(reference)
        names = _some(sorted(reference.shown()), i, 1)
        window.remove(apply(self.state.now.playbook, window.delta), reference, names, number)

    # What happens between windows

    def _between(self, delta: Delta) -> None:
        now = self.state.now
        standing = Standing(now.version + 1, now.window, apply(now.playbook, delta))
        self.reference.add(delta)
        self._stands(standing, stand(self.state, standing, self.max_staleness))

    def _import(self, i: int, j: int) -> None:
        source = f"import:{self._trace()}"
        names = sorted({_name(i), _name(j)})
        self._between(
            Delta(
                texts=frozenset(_text(name, i) for name in names),
                evidence=frozenset(Evidence(name, source, number, source) for number, name in enumerate(names)),
                counts=frozenset(Count(name, source, i, j) for name in names),
            )
        )

    def _person(self, i: int, j: int) -> None:
        self._controls += 1
        said = f"{_name(j)} as control {self._controls} says"
        fact = PersonFact(_name(j), self._controls, KINDS[i % len(KINDS)], said, "OTHERS")
        self._between(Delta(people=frozenset({fact})))

    def _rollback(self, i: int, j: int) -> None:
        """The learner's facts become those of an older version; people's facts and the window number stay."""
        old, reference, _ = self.versions[-1 - (i + j) % len(self.versions)]
        people = Delta(people=frozenset(self.reference.people))
        self.reference = reference.copy()
        self.reference.add(people)
        now = self.state.now
        self._stands(Standing(now.version + 1, now.window, apply(old.playbook, people)), ())

    # Folding

    def _fold(self, playbook: Playbook, older: tuple[Standing, ...], number: int) -> Playbook:
        """Fold, check what is dropped and forgotten, and do as much to the reference by naming and forgetting."""
        assert as_shown(playbook) == self.reference.shown()
        self.folds += 1
        oldest = number - self.max_staleness
        carried = {trace for trace, _ in self._still_carried()}
        now = Standing(self.state.now.version + 1, number)
        next_base = base_for(PromptState("p", now, older), number + 1, self.max_staleness)
        bases = [self.versions[each.version] for each in older if each.version >= next_base.version]
        folded = fold(playbook, older[0].playbook, oldest, after=self.fold_after, carried=carried)
        assert fold(playbook, older[0].playbook, oldest, after=self.fold_after, carried=carried) == folded
        reference, before = self.reference, self.reference.shown()
        ends, followed = reference.ends(), reference.followed()
        anchor = self.versions[older[0].version].reference
        for bullet in sorted(set(playbook.records) - set(folded.records)):
            if ends.get(bullet, bullet) != bullet:
                edge = followed[bullet]
                assert edge.window + self.fold_after <= oldest, "dropped too early"
                assert edge in anchor.edges, "dropped though a base in flight does not know it superseded"
                assert bullet not in reference.said(), "dropped though a person decided about it"
                reference.drop(bullet)
        for bullet in sorted({*reference.ends().values()} - set(folded.records)):
            assert bullet not in reference.said(), "forgotten though a person decided about it"
            assert not any(bullet in base.live for base in bases), "forgotten though a base in flight shows it"
            alive = reference.seen_by_removal([bullet]) & (reference.evidence - reference.covered)
            assert not alive, "forgotten though it had evidence"
            reference.forget(bullet)
        assert set(reference.ends()) - reference.dropped <= set(folded.records), "forgotten though others lead to it"
        assert reference.shown() == before, "folding changed what is shown"
        return folded


def random_windows(random: Random, count: int, weights: dict[str, int], most: int = 6) -> list[list[Action]]:
    """So many windows of up to ``most`` actions each, their kinds by weight."""
    kinds, shares = list(weights), list(weights.values())
    return [
        [
            (kind, random.randrange(24), random.randrange(24))
            for kind in random.choices(kinds, shares, k=random.randint(0, most))
        ]
        for _ in range(count)
    ]


def _name(number: int) -> str:
    return BULLETS[number % len(BULLETS)]


def _some(names: Sequence[str], start: int, count: int) -> Sequence[str]:
    return names[start % len(names) :][:count] if names else ()


def _text(bullet: str, wording: int) -> Text:
    return Text(bullet, wording % 3 == 0, f"{bullet}, wording {wording % 5}", "OTHERS", "")
