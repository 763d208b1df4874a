"""The plots beside RESULTS.md."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.figure import Figure

from operators import PowerLaw, fit, plateau
from tests.bench.engine import ApplyCost
from tests.bench.overload import Result


def overload(results: Sequence[Result], path: Path) -> None:
    """Lessons kept, and lessons curated, by batch size."""
    figure, axes = plt.subplots(1, 2, figsize=(11, 4), sharey=True)
    for system in dict.fromkeys(each.system for each in results):
        mine = [each for each in results if each.system == system]
        style = "o" if len(mine) == 1 else "o-"
        axes[0].plot([each.batch for each in mine], [each.kept for each in mine], style, markersize=3, label=system)
        axes[1].plot([each.batch for each in mine], [each.curated for each in mine], style, markersize=3, label=system)
    for axis, title in zip(axes, ("lessons kept", "lessons curated (not raw)"), strict=True):
        axis.set_title(title)
        axis.set_xlabel("batch size")
        axis.grid(alpha=0.3)
    axes[0].set_ylabel("share of all lessons")
    axes[0].legend(fontsize=7)
    _save(figure, path)


def apply_costs(costs: Sequence[ApplyCost], path: Path) -> None:
    """What joining a delta and writing a version out cost, by the size of the playbook."""
    figure, axis = plt.subplots(figsize=(5.5, 4))
    sizes = [each.bullets for each in costs]
    axis.loglog(sizes, [each.apply for each in costs], "o-", label="apply one window's delta")
    axis.loglog(sizes, [each.write_out for each in costs], "o-", label="derive what is shown")
    axis.set_xlabel("bullets in the playbook")
    axis.set_ylabel("µs")
    axis.legend()
    axis.grid(alpha=0.3)
    _save(figure, path)


def controller(points: Sequence[tuple[float, float]], path: Path) -> None:
    """The controller's fit of T = A·n^-α to measured epochs, and the plateau it takes."""
    law = fit(points)
    assert isinstance(law, PowerLaw)
    chosen = plateau(law.alpha, points[0][0])
    figure, axis = plt.subplots(figsize=(5.5, 4))
    axis.plot([n for n, _ in points], [t for _, t in points], "o", label="measured")
    sizes = range(int(points[0][0]), 140)
    axis.plot(sizes, [law.at(n) for n in sizes], label=f"A·n^-α, α = {law.alpha:.2f}")
    axis.axvline(chosen, linestyle="--", color="grey", label=f"plateau {chosen:.0f}")
    axis.set_xlabel("batch size n")
    axis.set_ylabel("seconds an epoch")
    axis.legend()
    axis.grid(alpha=0.3)
    _save(figure, path)


def _save(figure: Figure, path: Path) -> None:
    figure.tight_layout()
    figure.savefig(path, dpi=110)
    plt.close(figure)
