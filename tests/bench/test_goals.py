"""The goals of context overload, which no clock decides; and that the benchmarks run at all."""

from __future__ import annotations

from random import Random

import pytest

from tests.bench import engine, overload


def test_ours_keeps_the_lessons_that_overload_loses() -> None:
    log = overload.Log.of(2_000, seed=1)
    ours = overload.ours(log, 100, seed=1)
    published = overload.combee(log, 100, seed=1, lossless=False)
    lossless = overload.combee(log, 100, seed=1, lossless=True)
    assert ours.kept >= 0.95
    assert ours.curated >= 0.70
    assert ours.junk <= 0.1
    assert ours.calls <= published.calls
    assert ours.calls <= lossless.calls
    assert overload.naive(log, 100, seed=1).kept < published.kept + 0.05 < lossless.kept < ours.kept


def test_a_curator_that_does_not_name_its_drops_lets_junk_in() -> None:
    log = overload.Log.of(1_000, seed=2)
    assert overload.ours(log, 50, seed=2, names_drops=False).junk > 0.5


@pytest.mark.slow
def test_the_lowered_clamp_lets_few_lessons_in_raw() -> None:
    result = overload.ours(overload.Log.of(5_000, seed=3), 100, seed=3, clamped=True, skip=2_000)
    assert result.kept >= 0.95
    assert result.raw <= 0.10


def test_the_simulated_curator_keeps_what_was_measured() -> None:
    random = Random(4)
    for size, mean in ((1, 0.5), (5, 2.0), (10, 2.4), (20, 3.9), (50, 4.7), (100, 4.2)):
        drawn = [overload.capacity(size, random) for _ in range(4_000)]
        assert sum(drawn) / len(drawn) == pytest.approx(mean, abs=0.05)


def test_the_engine_benchmarks_run() -> None:
    assert engine.run(2_000).rate > 0
    assert engine.operators_alone(2_000) > 0
    assert engine.apply_cost(100).apply > 0
