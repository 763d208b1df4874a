"""Random facts from a universe so small that they meet: four bullets, four traces, windows 0 to 4."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from itertools import product
from typing import Any

from hypothesis import strategies as st

from operators.combine import apply
from operators.facts import Count, Delta, Evidence, FoldCover, PersonFact, PersonKind, Supersession, Text, Vote
from operators.fold import fold
from operators.playbook import Playbook

BULLETS = ("a", "b", "c", "d")
TRACES = ("t1", "t2", "t3", "t4")
KINDS: tuple[PersonKind, ...] = ("edit", "pin", "unpin", "remove")

TEXTS = tuple(
    Text(bullet, raw, f"{bullet}, wording {wording}", "OTHERS", f"key of {bullet}")
    for bullet, raw, wording in product(BULLETS, (False, True), range(3))
)
EVIDENCE = tuple(
    Evidence(bullet, trace, number, session)
    for bullet, trace, number, session in product(BULLETS, TRACES, (1, 2), ("", "s1", "s2"))
)
VOTES = tuple(Vote(*each) for each in product(BULLETS, TRACES, (False, True)))
COUNTS = tuple(Count(*each) for each in product(BULLETS, ("import 1", "import 2"), (0, 1, 3), (0, 2)))
PEOPLE = tuple(
    PersonFact(bullet, offset, kind, f"{bullet} as {kind} {offset} says", "OTHERS")
    for bullet, offset, kind in product(BULLETS, range(6), KINDS)
)

# One draw a fact, from all there are: building each from parts costs Hypothesis several times as much.
FACTS: dict[str, tuple[Any, ...]] = {
    "texts": TEXTS,
    "evidence": EVIDENCE,
    "votes": VOTES,
    "counts": COUNTS,
    "supersessions": tuple(Supersession(*each) for each in product(BULLETS, range(5), BULLETS)),
    "covered_evidence": EVIDENCE,
    "covered_votes": VOTES,
    "covered_counts": COUNTS,
    "covered_folds": tuple(FoldCover(*each) for each in product(BULLETS, range(5))),
    "people": PEOPLE,
}
"""All facts of each field of a delta."""

votes, counts, people = st.sampled_from(VOTES), st.sampled_from(COUNTS), st.sampled_from(PEOPLE)


def delta_of(facts: Iterable[tuple[str, Any]]) -> Delta:
    """The delta of some (field, fact)."""
    fields: dict[str, set[Any]] = {}
    for field, fact in facts:
        fields.setdefault(field, set()).add(fact)
    return Delta(**{field: frozenset(each) for field, each in fields.items()})


def facts_of(delta: Delta) -> list[tuple[str, Any]]:
    """The (field, fact) of a delta, in an order of their own."""
    return [(field, fact) for field in FACTS for fact in sorted(getattr(delta, field))]


def deltas(*fields: str, max_size: int = 12) -> st.SearchStrategy[Delta]:
    """Deltas with facts of these kinds, of all kinds when none is named."""
    return st.lists(_facts(fields or tuple(FACTS)), max_size=max_size).map(delta_of)


@cache
def _facts(fields: tuple[str, ...]) -> st.SearchStrategy[tuple[str, Any]]:
    # Each kind as often as any other, in one draw.
    most = max(len(FACTS[field]) for field in fields)
    return st.sampled_from([(field, FACTS[field][n % len(FACTS[field])]) for n in range(most) for field in fields])


def known(bullets: Iterable[str] = BULLETS) -> Delta:
    """The delta that words each bullet and gives it one trace's evidence, so that it is live."""
    return Delta(
        texts=frozenset(
            Text(bullet, False, f"{bullet}, wording 1", "OTHERS", f"key of {bullet}") for bullet in bullets
        ),
        evidence=frozenset(Evidence(bullet, "t0", 1, "s0") for bullet in bullets),
    )


@st.composite
def playbooks(draw: st.DrawFn) -> Playbook:
    """Playbooks as they come about: by deltas, some of them with a folding in between."""
    playbook = apply(Playbook(), draw(deltas(max_size=16)))
    if draw(st.booleans()):
        anchor = playbook
        playbook = fold(apply(playbook, draw(deltas(max_size=6))), anchor, draw(st.integers(1, 4)), after=2)
    return apply(playbook, draw(deltas(max_size=6)))
