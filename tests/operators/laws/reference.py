"""What a playbook shows, by definition: plain sets of facts kept for ever, all else derived from scratch.

Written from learning.md ("Facts") and sharing no code with the operators but the kinds of facts. What folding moves by
rule (a bullet superseded long ago goes into its successor, a dead one is forgotten with its votes) moves here by giving
each such fact another home, or by forgetting it: nothing is ever counted before it is shown.
"""

from __future__ import annotations

from collections.abc import Iterable
from copy import copy
from typing import NamedTuple

from operators.facts import Count, Delta, Evidence, PersonFact, Supersession, Text, Vote
from operators.playbook import Playbook
from operators.view import shown

Fact = Evidence | Vote | Count


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
    """A playbook as sets of facts.

    ``home`` says which bullet a fact counts for, and ``target`` where a supersession leads, where a fold moved that.
    """

    def __init__(self, delta: Delta | None = None) -> None:
        self.texts: set[Text] = set()
        self.evidence: set[Evidence] = set()
        self.votes: set[Vote] = set()
        self.counts: set[Count] = set()
        self.covered: set[Fact] = set()
        self.edges: set[Supersession] = set()
        self.people: set[PersonFact] = set()
        self.home: dict[Fact, str] = {}
        self.target: dict[Supersession, str] = {}
        if delta is not None:
            self.add(delta)

    def add(self, delta: Delta) -> None:
        """Join a delta's facts. What it covers of folded facts means nothing here: see :meth:`cover`."""
        self.texts |= delta.texts
        self.evidence |= delta.evidence
        self.votes |= delta.votes
        self.counts |= delta.counts
        self.covered |= delta.covered_evidence | delta.covered_votes | delta.covered_counts
        self.edges |= {edge for edge in delta.supersessions if edge.bullet != edge.by}
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

    def person(self, bullet: str) -> PersonFact | None:
        """The latest word of a person on a bullet."""
        said = [fact for fact in self.people if fact.bullet == bullet]
        return max(said, key=lambda fact: (fact.offset, fact.kind, fact.content, fact.section), default=None)

    def fixed(self) -> set[str]:
        """The bullets that an edit or a pin holds."""
        said = {fact.bullet: self.person(fact.bullet) for fact in self.people}
        return {bullet for bullet, fact in said.items() if fact is not None and fact.kind in ("edit", "pin")}

    # Supersession

    def followed(self) -> dict[str, Supersession]:
        """Each superseded bullet's newest supersession, ties by identity; nothing supersedes a bullet that is fixed."""
        fixed = self.fixed()
        newest: dict[str, Supersession] = {}
        for edge in sorted(self.edges, key=lambda edge: (edge.window, edge.by)):
            if edge.bullet not in fixed:
                newest[edge.bullet] = edge
        return newest

    def ends(self) -> dict[str, str]:
        """Where the chain of each bullet ends that a fact speaks of."""
        followed = self.followed()
        every: set[str] = {text.bullet for text in self.texts} | {fact.bullet for fact in self.people}
        every |= {self.home_of(fact) for fact in (*self.evidence, *self.votes, *self.counts)}
        every |= {edge.bullet for edge in self.edges} | {self.target_of(edge) for edge in self.edges}
        return {bullet: self._end(bullet, followed) for bullet in every}

    def _end(self, bullet: str, followed: dict[str, Supersession]) -> str:
        path = [bullet]
        while (edge := followed.get(path[-1])) is not None:
            if (target := self.target_of(edge)) in path:
                circle = [followed[each] for each in path[path.index(target) :]]
                return self.target_of(max(circle, key=lambda edge: (edge.window, edge.by)))
            path.append(target)
        return path[-1]

    def target_of(self, edge: Supersession) -> str:
        """Where a supersession leads."""
        return self.target.get(edge, edge.by)

    def home_of(self, fact: Fact) -> str:
        """The bullet that a fact counts for."""
        return self.home.get(fact, fact.bullet)

    # What is shown

    def shown(self) -> dict[str, Shown]:
        """The live bullets."""
        ends, fixed = self.ends(), self.fixed()
        traces: dict[str, set[tuple[str, str]]] = {}
        for fact in self.evidence - self.covered:
            traces.setdefault(ends[self.home_of(fact)], set()).add((fact.bullet, fact.trace))
        cast: dict[tuple[str, str, str], set[bool]] = {}
        for vote in self.votes - self.covered:
            cast.setdefault((ends[self.home_of(vote)], vote.bullet, vote.trace), set()).add(vote.harmful)
        live: dict[str, Shown] = {}
        for bullet, end in ends.items():
            person = self.person(bullet)
            if bullet != end or (person is not None and person.kind == "remove"):
                continue
            text = self._text(bullet, person if bullet in fixed else None)
            if text is None or not (bullet in fixed or bullet in traces):
                continue
            ballots = [harmful for (counted_for, _, _), harmful in cast.items() if counted_for == bullet]
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
        smallest = min(known, key=lambda text: (text.raw, text.content, text.section, text.key), default=None)
        if person is None:
            return smallest
        return Text(bullet, False, person.content, person.section, smallest.key if smallest else "")

    def seen_by_removal(self, bullets: Iterable[str]) -> set[Fact]:
        """What a removal of live bullets, decided on this state, covers: all of theirs and of all that end in them."""
        ends, names = self.ends(), set(bullets)
        every: set[Fact] = {*self.evidence, *self.votes, *self.counts}
        return {fact for fact in every if ends[self.home_of(fact)] in names}

    # What folding moves or forgets by rule

    def drop(self, bullet: str, into: str) -> None:
        """Let all that counts for a superseded bullet count for another, and what led to it lead there."""
        for fact in [fact for fact in (*self.evidence, *self.votes, *self.counts) if self.home_of(fact) == bullet]:
            self.home[fact] = into
        self.texts = {text for text in self.texts if text.bullet != bullet}
        self.edges = {edge for edge in self.edges if edge.bullet != bullet}
        for edge in self.edges:
            if self.target_of(edge) == bullet:
                self.target[edge] = into

    def forget(self, bullet: str) -> None:
        """Forget all that is known of a dead bullet."""
        self.texts = {text for text in self.texts if text.bullet != bullet}
        self.evidence = {fact for fact in self.evidence if self.home_of(fact) != bullet}
        self.votes = {fact for fact in self.votes if self.home_of(fact) != bullet}
        self.counts = {fact for fact in self.counts if self.home_of(fact) != bullet}
