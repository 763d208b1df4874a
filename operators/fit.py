"""The power law behind the batch size: T = A n^-alpha, and where batching further no longer pays.

Combee (arXiv 2604.04247, "batch size controller"): fit the time of a whole run at batch size n, then take the n where
the curve has flattened to a share of its steepest slope. Pure mathematics; the controller decides what to do with it.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import exp, isfinite, log, sqrt

from msgspec import Struct

SLOPE_SHARE = 0.016
"""The published threshold: 1.6 % of the steepest slope."""


class PowerLaw(Struct, frozen=True):
    """T = ``a`` · n^-``alpha``.

    :param r2: the share of the variance of log T that the law explains, 0 … 1.
    :param spread: the standard deviation of log T around the law.
    """

    a: float
    alpha: float
    r2: float
    spread: float

    def at(self, n: float) -> float:
        """T at batch size ``n``, in the unit of the points that were fitted."""
        return _exp(log(self.a) - self.alpha * log(n))


def fit(points: Iterable[tuple[float, float]]) -> PowerLaw | None:
    """Least squares in log space over (n, T) points, where noise that is a share of T counts alike at every size.

    Points that are not positive and finite are passed over. None if fewer than two distinct sizes are left.
    """
    logs = [(log(n), log(t)) for n, t in points if n > 0 and t > 0 and isfinite(n) and isfinite(t)]
    if len({x for x, _ in logs}) < 2:
        return None
    count = len(logs)
    mean_x, mean_y = sum(x for x, _ in logs) / count, sum(y for _, y in logs) / count
    slope = sum((x - mean_x) * (y - mean_y) for x, y in logs) / sum((x - mean_x) ** 2 for x, _ in logs)
    intercept = mean_y - slope * mean_x
    left = sum((y - intercept - slope * x) ** 2 for x, y in logs)
    total = sum((y - mean_y) ** 2 for _, y in logs)
    # Of a flat line without noise there is no variance to explain; rounding may leave a hair of it.
    r2 = max(0.0, 1 - left / total) if total > 1e-18 * count else 1.0
    return PowerLaw(_exp(intercept), -slope, r2, sqrt(left / max(1, count - 2)))


def plateau(alpha: float, smallest: float, share: float = SLOPE_SHARE) -> float:
    """The batch size where the slope of T has fallen to ``share`` of its value at ``smallest``.

    That is (alpha A / tau)^(1/(1+alpha)) with tau = share · alpha A · smallest^-(1+alpha), so A cancels.

    :raises ValueError: if ``alpha`` is not above 0: such a curve does not flatten.
    """
    if not alpha > 0:
        raise ValueError(f"no plateau with alpha {alpha}")
    return smallest * exp(-log(share) / (1 + alpha))


def _exp(x: float) -> float:
    """Never 0, never an overflow: a curve through absurd points is bad data, not a crash."""
    return exp(max(-700.0, min(700.0, x)))
