"""Deltas under merge: a commutative idempotent monoid, which is what lets a scan group them as it likes."""

from __future__ import annotations

from hypothesis import given

from operators.facts import EMPTY, Delta, merge
from tests.operators.laws.strategies import FACTS, deltas, facts_of


@given(deltas(), deltas(), deltas())
def test_is_associative(a: Delta, b: Delta, c: Delta) -> None:
    assert merge(merge(a, b), c) == merge(a, merge(b, c))


@given(deltas(), deltas())
def test_is_commutative(a: Delta, b: Delta) -> None:
    assert merge(a, b) == merge(b, a)


@given(deltas())
def test_is_idempotent(a: Delta) -> None:
    assert merge(a, a) == a


@given(deltas())
def test_has_the_empty_delta_as_identity(a: Delta) -> None:
    assert merge(EMPTY, a) == a == merge(a, EMPTY)
    assert merge(Delta(), a) == a == merge(a, Delta())


@given(deltas(), deltas())
def test_keeps_every_fact_and_makes_none(a: Delta, b: Delta) -> None:
    assert set(facts_of(merge(a, b))) == {*facts_of(a), *facts_of(b)}


@given(deltas())
def test_only_a_delta_without_facts_is_false(a: Delta) -> None:
    assert bool(a) == bool(facts_of(a))


def test_the_strategies_know_every_field_of_a_delta() -> None:
    assert tuple(FACTS) == Delta.__struct_fields__
