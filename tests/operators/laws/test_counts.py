"""Counts that came with an import are facts, keyed by it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from operators.combine import apply
from operators.facts import Count, Delta, Supersession
from operators.playbook import Playbook
from operators.view import removal, shown
from tests.operators.laws.strategies import BULLETS, counts, known

START = apply(Playbook(), known())


def test_importing_twice_changes_nothing_and_another_import_adds() -> None:
    once = apply(START, Delta(counts=frozenset({Count("a", "import 1", 3, 1)})))
    assert apply(once, Delta(counts=frozenset({Count("a", "import 1", 3, 1)}))) is once
    twice = shown(apply(once, Delta(counts=frozenset({Count("a", "import 2", 3, 1)}))))["a"]
    assert (twice.helpful, twice.harmful) == (6, 2)


@given(st.sets(counts, max_size=10), st.sets(counts, max_size=6))
def test_are_sums_of_those_not_covered(known_counts: set[Count], covered: set[Count]) -> None:
    one = Delta(counts=frozenset(known_counts), covered_counts=frozenset(covered))
    live = shown(apply(START, one))
    for bullet in BULLETS:
        left = [count for count in known_counts - covered if count.bullet == bullet]
        assert live[bullet].helpful == sum(count.helpful for count in left)
        assert live[bullet].harmful == sum(count.harmful for count in left)


def test_follow_supersessions_and_are_covered_by_removals() -> None:
    imported = apply(START, Delta(counts=frozenset({Count("a", "import 1", 3, 1), Count("b", "import 1", 10, 10)})))
    updated = apply(imported, Delta(supersessions=frozenset({Supersession("a", 0, "b")})))
    assert (shown(updated)["b"].helpful, shown(updated)["b"].harmful) == (13, 11)
    again = apply(apply(updated, removal(updated, ["b"], 0)), Delta(evidence=known(("b",)).evidence))
    assert "b" not in shown(again)
