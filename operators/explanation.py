"""What the batch size controller knows and why it chose, as values: to keep, to plot, to read."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

Stage = Literal["profiling", "fitted", "flat", "starved"]


class SizesState(Struct, frozen=True, omit_defaults=True):
    """What the controller knows about the service, to be kept with the prompts' states.

    :param revision: how many windows were reported to it; of several copies the one with the most is the newest.
    :param samples: (size, seconds) of the profile: the running one, or the one that the fit was made from.
    :param missed: for each candidate how many of its windows gave no sample.
    :param profiling: whether the profile is running.
    :param size: the size in use while nothing is to be profiled.
    :param drift: log of measured over predicted delay of the last samples.
    :param filled: windows that filled since the last profile.
    :param profiles: how many profiles were begun.
    """

    candidates: tuple[int, ...]
    revision: int = 0
    samples: tuple[tuple[int, float], ...] = ()
    missed: tuple[int, ...] = ()
    profiling: bool = True
    size: int = 0
    drift: tuple[float, ...] = ()
    filled: int = 0
    profiles: int = 1


class Point(Struct, frozen=True):
    """One sample: a window of ``size`` traces took ``delay`` seconds, so all traces take ``total`` at that size."""

    size: int
    delay: float
    total: float


class Explanation(Struct, frozen=True):
    """The controller's grounds.

    :param stage: ``profiling``; ``fitted``; ``flat`` where batching gains nothing measurable; ``starved`` where too
        few sizes filled for a fit.
    :param size: what windows get that are neither profiled nor clamped.
    :param a: A of T = A n^-alpha in seconds; like ``alpha`` and ``r2`` None where there is no fit.
    :param plateau: where the fit's curve flattens, before it is rounded and clamped; None unless ``fitted``.
    :param clamps: the upper clamps of the prompts that are below the largest candidate.
    :param points: the samples of the profile that is running or that the fit was made from.
    :param left_out: sizes whose windows closed by time, or were lost, twice.
    :param profiles: how many profiles were begun.
    :param reason: all this in a sentence.
    """

    stage: Stage
    size: int
    candidates: tuple[int, ...]
    a: float | None
    alpha: float | None
    r2: float | None
    plateau: float | None
    clamps: dict[str, int]
    points: tuple[Point, ...]
    left_out: tuple[int, ...]
    profiles: int
    reason: str = ""


def in_words(known: Explanation) -> str:
    """The grounds in a sentence."""
    if known.stage == "profiling":
        sampled = sorted({point.size for point in known.points})
        text = f"profiling sizes {_listed(known.candidates)}; samples so far of {_listed(sampled) or 'none'}"
    elif known.stage == "starved":
        text = f"too few sizes filled for a fit; windows hold {known.size}"
    else:
        law = f"T = {known.a:.3g} n^-{known.alpha:.2f} explains {known.r2:.0%} of the variance"
        if known.stage == "fitted":
            text = f"{law} and flattens at {known.plateau:.1f}; windows hold {known.size}"
        else:
            text = f"{law}: batching gains nothing measurable; windows hold {known.size}, the smallest candidate"
    if known.left_out:
        text += f"; {_listed(known.left_out)} left out, windows of that size did not fill"
    if known.clamps:
        text += f"; overload clamps {len(known.clamps)} prompt{'s' if len(known.clamps) > 1 else ''}"
    return text


def _listed(sizes: tuple[int, ...] | list[int]) -> str:
    return ", ".join(str(size) for size in sizes)
