"""Profiling: deal the candidate sizes to ordinary windows until each has its samples or has shown that it gets none.

Sizes are dealt in rising order, so many windows each, to whatever window opens next; nobody waits for a report before
the next deal. There is no clock: a dealt window that is never heard of again (its prompt was rolled back, its member
died) is given up after a number of *reports* about other windows, for only those show that time has passed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence

MISSES = 2
"""A size whose windows closed by time, or were lost, so often is left out."""


class Profile:
    """One round of profiling.

    :param candidates: the sizes, rising.
    :param per_size: how many samples each size needs.
    :param samples: (size, seconds) taken already.
    :param missed: for each candidate how many of its windows gave no sample.
    """

    def __init__(
        self,
        candidates: Sequence[int],
        per_size: int,
        samples: Iterable[tuple[int, float]] = (),
        missed: Sequence[int] = (),
    ) -> None:
        self._per_size = per_size
        # Of a size with more samples than it needs (first windows keep coming at the smallest) the newest count.
        self._samples = {size: deque[float](maxlen=per_size) for size in candidates}
        self._missed = dict.fromkeys(candidates, 0) | dict(zip(candidates, missed, strict=False))
        self._dealt = {size: deque[int]() for size in candidates}
        self._reports = 0
        self._patience = 4 * per_size * len(candidates)
        self._passed_over = 0
        for size, delay in samples:
            if size in self._samples:
                self._samples[size].append(delay)

    @property
    def samples(self) -> list[tuple[int, float]]:
        """All samples, smallest size first, each size's oldest first."""
        return [(size, delay) for size, delays in self._samples.items() for delay in delays]

    @property
    def missed(self) -> tuple[int, ...]:
        """For each candidate how many of its windows gave no sample."""
        return tuple(self._missed.values())

    def wanted(self) -> int | None:
        """The size that the next window should have, or None while all that is needed is dealt."""
        for size, delays in self._samples.items():
            if self._open(size) and len(delays) + len(self._dealt[size]) < self._per_size:
                return size
        return None

    def deal(self, size: int) -> None:
        """A window of the wanted size was opened."""
        self._dealt[size].append(self._reports)
        self._passed_over = 0

    def pass_over(self) -> None:
        """A window was opened that could not have the wanted size, because its prompt is clamped below it."""
        self._passed_over += 1

    def report(self, size: int, delay: float | None) -> None:
        """A window that was opened with ``size``, dealt or not, took ``delay`` seconds; None if it gives no sample."""
        self._reports += 1
        dealt = self._dealt.get(size)
        if dealt is not None:
            ours = bool(dealt)
            if ours:
                dealt.popleft()
            if delay is not None:
                self._samples[size].append(delay)
            elif ours:
                self._missed[size] += 1
        for late, deals in self._dealt.items():
            while deals and self._reports - deals[0] > self._patience:
                deals.popleft()
                self._missed[late] += 1

    def complete(self) -> bool:
        """Every size has its samples or is left out; or no window that opens may have those that are missing."""
        if not any(self._open(size) for size in self._samples):
            return True
        return self._passed_over >= self._patience and len({size for size, _ in self.points()}) >= 3

    def points(self) -> list[tuple[int, float]]:
        """The samples of the sizes that have all of theirs: what a fit is made from."""
        return [sample for sample in self.samples if len(self._samples[sample[0]]) == self._per_size]

    def left_out(self) -> tuple[int, ...]:
        """The sizes that have shown that they get no samples."""
        return tuple(
            size
            for size, delays in self._samples.items()
            if len(delays) < self._per_size and self._missed[size] >= MISSES
        )

    def _open(self, size: int) -> bool:
        return len(self._samples[size]) < self._per_size and self._missed[size] < MISSES
