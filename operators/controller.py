"""The batch size controller: how many traces the window that opens now should hold.

Combee (arXiv 2604.04247, "batch size controller"): measure the delay d(n) of windows of a few candidate sizes, fit
T(n) = d(n)/n · N = A n^-alpha, and take the size where the curve has flattened. Beyond the paper: profiling windows are
ordinary windows of the stream, a fit that no longer predicts is made anew, and each prompt has an upper clamp
(:mod:`operators.overload`). It never reads a clock and never waits; its answers follow from what it is told.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from math import log
from statistics import median

from msgspec.structs import replace

from operators.explanation import Explanation, Point, SizesState, Stage, in_words
from operators.fit import SLOPE_SHARE, PowerLaw, fit, plateau
from operators.overload import Load, Overload, observe
from operators.profile import Profile

CANDIDATES = (8, 16, 32, 64, 128)
FEWEST_SIZES = 3
LEAST_ALPHA = 0.1
LEAST_R2 = 0.5

DRIFT_SAMPLES = 5
DRIFT_LEAST, DRIFT_MOST = log(1.5), log(3)
"""A fit no longer predicts when the median of its last five samples is off by three times the spread that it left, but
at least by a factor of 1.5 and at most of 3. With 10 % noise that median and the fit together err by 7 % to 9 %."""

RETRY_AFTER = 50
"""After so many windows that filled, a stream that was too slow for a fit is profiled again."""

SHORTEST, LONGEST = 1e-9, 1e9
"""Seconds; what is outside (zero, negative, NaN) is not a measurement."""


class BatchSizes:
    """Sizes for windows: one fit for the service, one clamp for each prompt.

    :param candidates: the sizes to profile, rising; the first and last bound every answer.
    :param windows_per_size: how many samples a size needs.
    :param share: of the steepest slope, where the curve counts as flat.
    :param lag: windows until a prompt's carried insights have all entered raw: 2 (1 + max_staleness).
    :param state: what an earlier controller exported; ignored if it had other candidates.
    :raises ValueError: if the candidates are not positive and rising, or ``windows_per_size`` is below one.
    """

    def __init__(
        self,
        candidates: Sequence[int] = CANDIDATES,
        *,
        windows_per_size: int = 3,
        share: float = SLOPE_SHARE,
        lag: int = 4,
        state: SizesState | None = None,
    ) -> None:
        sizes = tuple(candidates)
        if not sizes or sizes[0] < 1 or sorted(set(sizes)) != list(sizes) or windows_per_size < 1:
            raise ValueError(f"cannot profile sizes {sizes} with {windows_per_size} windows each")
        self._candidates = sizes
        self._per_size = windows_per_size
        self._share = share
        self._lag = lag
        self._prompts: dict[str, Overload] = {}
        if state is None or state.candidates != sizes:
            state = SizesState(sizes, profiling=len(sizes) >= FEWEST_SIZES)
        self._take_up(state)

    def _take_up(self, state: SizesState) -> None:
        sizes = self._candidates
        self._revision = state.revision
        self._profile = Profile(sizes, self._per_size, state.samples, state.missed)
        self._profiling = state.profiling
        self._size = min(max(state.size, sizes[0]), sizes[-1])
        self._drift = deque(state.drift, DRIFT_SAMPLES)
        self._filled = state.filled
        self._profiles = state.profiles
        self._law = None if self._profiling else self._fitted()

    def assign(self, prompt: str) -> int:
        """The size of the window of ``prompt`` that opens now; it keeps it until it closes."""
        smallest = self._candidates[0]
        known = self._prompts.get(prompt)
        if known is None:
            self._prompts[prompt] = Overload(self._candidates[-1])
            if self._profiling and self._profile.wanted() == smallest:
                self._profile.deal(smallest)
            return smallest
        wanted = self._profile.wanted() if self._profiling else None
        if wanted is None:
            return min(self._size, known.clamp)
        if wanted <= known.clamp:
            self._profile.deal(wanted)
            return wanted
        self._profile.pass_over()
        self._conclude_if_complete()
        return known.clamp

    def sample(self, size: int, delay: float, closed_at_size: bool) -> None:
        """Report a window that was published, or that closed by time.

        :param size: the size that it was opened with.
        :param delay: seconds from when it was full and its base there to its own publish, less the time it was held.
        :param closed_at_size: whether it held ``size`` traces when it closed; only then ``delay`` counts.
        """
        self._revision += 1
        sane = self._candidates[0] <= size <= self._candidates[-1] and SHORTEST <= delay <= LONGEST
        measured = delay if closed_at_size and sane else None
        if self._profiling:
            self._profile.report(size, measured)
            self._conclude_if_complete()
        elif measured is not None:
            self._filled += 1
            if self._law is None:
                anew = self._filled >= RETRY_AFTER and len(self._candidates) >= FEWEST_SIZES
            else:
                self._drift.append(log(measured / size / self._law.at(size)))
                limit = min(DRIFT_MOST, max(DRIFT_LEAST, 3 * self._law.spread))
                anew = len(self._drift) == DRIFT_SAMPLES and abs(median(self._drift)) > limit
            if anew:
                self._begin()

    def observe(self, prompt: str, load: Load) -> None:
        """Tell what the curators made of the window of ``prompt`` that was just published, in the windows' order."""
        self._prompts[prompt] = observe(self.overload(prompt), load, self._candidates, self._lag)

    def overload(self, prompt: str) -> Overload:
        """What is remembered of ``prompt``, to be kept with its state."""
        return self._prompts.get(prompt) or Overload(self._candidates[-1])

    def restore(self, prompt: str, overload: Overload) -> None:
        """Take up what was kept of ``prompt``; its next window is not its first."""
        fitting = [size for size in self._candidates if size <= overload.clamp]
        clamp = fitting[-1] if fitting else self._candidates[0]
        self._prompts[prompt] = overload if clamp == overload.clamp else Overload(clamp)

    def go_on(self, state: SizesState) -> None:
        """Take up what another controller exported, if it had the same candidates and has seen more."""
        if state.candidates == self._candidates and state.revision > self._revision:
            self._take_up(state)

    def export(self) -> SizesState:
        """What is known about the service. Windows that are open are not in it: after a crash they open again."""
        return SizesState(
            candidates=self._candidates,
            revision=self._revision,
            samples=tuple(self._profile.samples),
            missed=self._profile.missed,
            profiling=self._profiling,
            size=self._size,
            drift=tuple(self._drift),
            filled=self._filled,
            profiles=self._profiles,
        )

    def explain(self, traces: float = 1.0) -> Explanation:
        """The fit and its grounds. ``traces`` is N in T(n) = d(n)/n · N; it scales A and the points, nothing else."""
        law, stage = self._law, self._stage()
        flat = None if law is None or stage != "fitted" else plateau(law.alpha, self._candidates[0], self._share)
        known = Explanation(
            stage=stage,
            size=self._size,
            candidates=self._candidates,
            a=None if law is None else law.a * traces,
            alpha=None if law is None else law.alpha,
            r2=None if law is None else law.r2,
            plateau=flat,
            clamps={p: kept.clamp for p, kept in sorted(self._prompts.items()) if kept.clamp < self._candidates[-1]},
            points=tuple(Point(size, delay, delay / size * traces) for size, delay in self._profile.samples),
            left_out=self._profile.left_out(),
            profiles=self._profiles,
        )
        return replace(known, reason=in_words(known))

    def _begin(self) -> None:
        self._profile = Profile(self._candidates, self._per_size)
        self._profiling = True
        self._law = None
        self._profiles += 1

    def _conclude_if_complete(self) -> None:
        if not self._profile.complete():
            return
        self._profiling = False
        self._filled = 0
        self._drift.clear()
        self._law = self._fitted()
        stage = self._stage()
        if stage == "flat":
            self._size = self._candidates[0]
        elif stage == "fitted" and self._law:
            flat = plateau(self._law.alpha, self._candidates[0], self._share)
            self._size = round(min(max(flat, self._candidates[0]), self._candidates[-1]))
        # A starved profile says nothing about batching, so what was in use before it stays in use.

    def _fitted(self) -> PowerLaw | None:
        points = self._profile.points()
        enough = len({size for size, _ in points}) >= FEWEST_SIZES
        return fit((size, delay / size) for size, delay in points) if enough else None

    def _stage(self) -> Stage:
        if self._profiling:
            return "profiling"
        if self._law is None:
            return "starved"
        return "flat" if self._law.alpha < LEAST_ALPHA or self._law.r2 < LEAST_R2 else "fitted"
