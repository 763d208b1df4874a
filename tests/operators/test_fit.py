"""The power law and its plateau, against exact curves, the paper's own figures, and bad data."""

from math import inf, isfinite, log, nan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from operators.fit import fit, plateau

alphas = st.floats(-2, 3)
scales = st.floats(1e-6, 1e6)


@given(scales, alphas, st.lists(st.integers(1, 300), min_size=2, max_size=20, unique=True))
def test_an_exact_curve_is_recovered(a: float, alpha: float, sizes: list[int]) -> None:
    law = fit((n, a * n**-alpha) for n in sizes)

    assert law is not None
    assert law.alpha == pytest.approx(alpha, abs=1e-6)
    assert law.a == pytest.approx(a, rel=1e-4)
    assert law.at(64) == pytest.approx(a * 64**-alpha, rel=1e-4)
    assert law.spread == pytest.approx(0, abs=1e-6)
    if abs(alpha) > 0.01:
        assert law.r2 == pytest.approx(1, abs=1e-6)


@given(st.floats(0.01, 3), scales, st.integers(1, 64))
def test_the_plateau_is_the_papers_and_a_cancels(alpha: float, a: float, smallest: int) -> None:
    steepest = alpha * a * smallest ** -(1 + alpha)
    tau = 0.016 * steepest

    found = plateau(alpha, smallest)

    assert found == pytest.approx((alpha * a / tau) ** (1 / (1 + alpha)))
    assert found == pytest.approx(smallest * 62.5 ** (1 / (1 + alpha)))
    assert alpha * a * found ** -(1 + alpha) == pytest.approx(tau)


def test_combees_own_measurements() -> None:
    # GEPA on Formula (arXiv 2604.04247): batch size and seconds for the whole run.
    law = fit([(5, 2977), (10, 1891), (25, 844), (50, 508), (100, 359)])

    assert law is not None
    assert law.r2 > 0.98
    assert round(plateau(law.alpha, 8)) == 87


def test_variance_that_is_not_explained() -> None:
    noise = fit([(8, 2), (16, 1), (32, 2), (64, 1), (128, 2)])
    flat = fit([(8, 3), (16, 3), (32, 3)])

    assert noise is not None
    assert noise.r2 < 0.1
    assert noise.spread == pytest.approx((5 * 0.24 * log(2) ** 2 / 3) ** 0.5)
    assert flat is not None
    assert (flat.alpha, flat.r2) == (0, 1)
    assert flat.a == pytest.approx(3)


def test_points_that_are_none() -> None:
    good = [(8, 4.0), (16, 2.0), (32, 1.0)]
    bad = [(8, nan), (16, 0.0), (32, -1.0), (64, inf), (0, 1.0), (-8, 1.0), (nan, 1.0), (inf, 1.0)]

    assert fit([*bad, *good]) == fit(good)
    assert fit(bad) is None
    assert fit([]) is None
    assert fit([(8, 1.0), (8, 2.0)]) is None
    for alpha in (0, -0.5, nan):
        with pytest.raises(ValueError, match="no plateau"):
            plateau(alpha, 8)


@given(st.lists(st.tuples(st.floats(), st.floats())))
def test_no_data_is_too_absurd(points: list[tuple[float, float]]) -> None:
    law = fit(points)

    if law is not None:
        assert law.a > 0
        assert 0 <= law.r2 <= 1
        assert isfinite(law.at(64))
