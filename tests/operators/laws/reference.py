"""What a playbook shows, by definition: plain sets of facts kept for ever, all else derived from scratch.

Written from learning.md ("Facts") and sharing no code with the operators but the kinds of facts. What folding moves by
rule (a bullet superseded long ago is dropped, a dead one forgotten with its votes) is here a bullet under a name of its
own, so that no later fact meets it, or facts taken away: nothing is ever counted before it is shown.
"""

from __future__ import annotations

from collections.abc import Iterable
from copy import copy
from typing import NamedTuple

from operators.facts import Count, Delta, Evidence, PersonFact, Text, Vote
from operators.playbook import Playbook
from operators.view import shown

Fact = Evidence | Vote | Count


class Edge(NamedTuple):
    """A supersession of ``bullet`` that named a bullet now known as ``by``."""

    bullet: str
    window: int
    named: str
    by: str


class Shown(NamedTuple):
    """One live bullet, without its display id."""

    content: str
    section: str
    key: str
    raw: bool
    pinned: bool
    helpful: int
    harmful: int
    traces: int


def as_shown(playbook: Playbook) -> dict[str, Shown]:
    """What the code under test shows, to compare."""
    return {
        name: Shown(b.content, b.section, b.key, b.raw, b.pinned, b.helpful, b.harmful, b.traces)
        for name, b in shown(playbook).items()
    }


class Reference:
    """A playbook as sets of facts; ``home`` says which bullet a fact counts for, where that has another name by now."""

    def __init__(self, delta: Delta | None = None) -> None:
        self.texts: set[Text] = set()
        self.evidence: set[Evidence] = set()
        self.votes: set[Vote] = set()
        self.counts: set[Count] = set()
        self.covered: set[Fact] = set()
        self.edges: set[Edge] = set()
        self.people: set[PersonFact] = set()
        self.home: dict[Fact, str] = {}
        self.dropped: set[str] = set()
        if delta is not None:
            self.add(delta)

    def add(self, delta: Delta) -> None:
        """Join a delta's facts. What it covers of folded facts means nothing here: see :meth:`cover`."""
        self.texts |= delta.texts
        self.evidence |= delta.evidence
        self.votes |= delta.votes
        self.counts |= delta.counts
        self.covered |= delta.covered_evidence | delta.covered_votes | delta.covered_counts
        self.edges |= {Edge(bullet, window, by, by) for bullet, window, by in delta.supersessions if bullet != by}
        self.people |= delta.people

    def cover(self, facts: Iterable[Fact]) -> None:
        """Join a removal of these facts."""
        self.covered |= set(facts)

    def copy(self) -> Reference:
        """This state, to be kept while the other goes on."""
        other = copy(self)
        for name, value in vars(self).items():
            setattr(other, name, value.copy())
        return other

    # People

    def said(self) -> dict[str, PersonFact]:
        """The latest word of a person on each bullet that people spoke of."""
        return {fact.bullet: fact for fact in sorted(self.people, key=lambda fact: fact[1:])}

    def fixed(self) -> set[str]:
        """The bullets that an edit or a pin holds."""
        return {bullet for bullet, fact in self.said().items() if fact.kind in ("edit", "pin")}

    # Supersession

    def followed(self) -> dict[str, Edge]:
        """The supersession that each superseded bullet follows; nothing supersedes a bullet that is fixed."""
        fixed = self.fixed()
        return {bullet: edge for bullet, edge in self.newest().items() if bullet not in fixed}

    def newest(self) -> dict[str, Edge]:
        """The newest supersession of each bullet that has one, ties by identity."""
        return {edge.bullet: edge for edge in sorted(self.edges, key=_age)}

    def ends(self) -> dict[str, str]:
        """Where the chain of each bullet ends that a fact speaks of."""
        followed = self.followed()
        every: set[str] = {text.bullet for text in self.texts} | {fact.bullet for fact in self.people}
        every |= {self.home_of(fact) for fact in self.facts()}
        every |= {name for edge in self.newest().values() for name in (edge.bullet, edge.by)}
        return {bullet: self._end(bullet, followed) for bullet in every}

    def _end(self, bullet: str, followed: dict[str, Edge]) -> str:
        path = [bullet]
        while (edge := followed.get(path[-1])) is not None and edge.by not in path:
            path.append(edge.by)
        end = path[-1]
        if edge is not None:
            end = max((followed[each] for each in path[path.index(edge.by) :]), key=_age).by
        while end in self.dropped:  # what was dropped does not survive, not even a circle
            end = followed[end].by
        return end

    def home_of(self, fact: Fact) -> str:
        """The bullet that a fact counts for."""
        return self.home.get(fact, fact.bullet)

    def facts(self) -> list[Fact]:
        """All facts that removals can cover."""
        return [*self.evidence, *self.votes, *self.counts]

    # What is shown

    def shown(self) -> dict[str, Shown]:
        """The live bullets."""
        ends, fixed, said = self.ends(), self.fixed(), self.said()
        traces: dict[str, set[tuple[str, str]]] = {}
        for fact in self.evidence - self.covered:
            traces.setdefault(ends[self.home_of(fact)], set()).add((self.home_of(fact), fact.trace))
        cast: dict[tuple[str, str], set[bool]] = {}
        for vote in self.votes - self.covered:
            cast.setdefault((self.home_of(vote), vote.trace), set()).add(vote.harmful)
        live: dict[str, Shown] = {}
        for bullet, end in ends.items():
            person = said.get(bullet)
            if bullet != end or (person is not None and person.kind == "remove"):
                continue
            text = self._text(bullet, person if bullet in fixed else None)
            if text is None or not (bullet in fixed or bullet in traces):
                continue
            ballots = [harmful for (home, _), harmful in cast.items() if ends[home] == bullet]
            imported = [fact for fact in self.counts - self.covered if ends[self.home_of(fact)] == bullet]
            live[bullet] = Shown(
                text.content,
                text.section,
                text.key,
                text.raw,
                bullet in fixed,
                sum(True not in harmful for harmful in ballots) + sum(count.helpful for count in imported),
                sum(True in harmful for harmful in ballots) + sum(count.harmful for count in imported),
                len(traces.get(bullet, ())),
            )
        return live

    def _text(self, bullet: str, person: PersonFact | None) -> Text | None:
        known = [text for text in self.texts if text.bullet == bullet]
        smallest = min(known, key=lambda text: text[1:], default=None)
        if person is None:
            return smallest
        return Text(bullet, False, person.content, person.section, smallest.key if smallest else "")

    def seen_by_removal(self, bullets: Iterable[str]) -> set[Fact]:
        """What a removal of live bullets, decided on this state, covers: all of theirs and of all that end in them."""
        ends, names = self.ends(), set(bullets)
        return {fact for fact in self.facts() if ends[self.home_of(fact)] in names}

    # What folding moves or forgets by rule

    def drop(self, bullet: str) -> None:
        """Give a superseded bullet a name of its own: its facts go where it leads, later ones are not its."""
        name = f"{bullet}, dropped as number {len(self.dropped)}"
        self.dropped.add(name)
        self.home.update((fact, name) for fact in self.facts() if self.home_of(fact) == bullet)
        self.texts = {text for text in self.texts if text.bullet != bullet}
        self.edges = {
            edge._replace(
                bullet=name if edge.bullet == bullet else edge.bullet, by=name if edge.by == bullet else edge.by
            )
            for edge in self.edges
        }

    def forget(self, bullet: str) -> None:
        """Forget all that is known of a dead bullet, and of those dropped into it."""
        names = {name for name, end in self.ends().items() if end == bullet}
        self.texts = {text for text in self.texts if text.bullet not in names}
        self.evidence = {fact for fact in self.evidence if self.home_of(fact) not in names}
        self.votes = {fact for fact in self.votes if self.home_of(fact) not in names}
        self.counts = {fact for fact in self.counts if self.home_of(fact) not in names}
        self.edges = {edge for edge in self.edges if edge.bullet not in names}


def _age(edge: Edge) -> tuple[int, str]:
    return edge.window, edge.named
