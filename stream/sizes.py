"""Where a replay's window sizes come from: fixed, the controller's, or those another store recorded."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from operators.controller import BatchSizes
from operators.overload import Load
from operators.sizes import Sizes
from operators.window import Cause


class AutoSizes:
    """The controller's sizes; every window that makes its version is one more thing it knows."""

    def __init__(self, controller: BatchSizes) -> None:
        self._controller = controller

    def assign(self, prompt: str, number: int) -> int:
        return self._controller.assign(prompt)

    def closed(self, prompt: str, number: int, size: int, traces: int, cause: Cause, delay: float, load: Load) -> None:
        # One that a bound or the end of the input closed says nothing about how fast traces come.
        if cause in ("size", "time"):
            self._controller.sample(size, delay, cause == "size")
        self._controller.observe(prompt, load)


class RecordedSizes:
    """The number of traces that each window of an earlier run closed with; past its end, what ``beyond`` gives.

    :param recorded: by prompt, in the order of windows.
    :param beyond: the size of windows that the earlier run did not have.
    """

    def __init__(self, recorded: Mapping[str, list[int]], beyond: int) -> None:
        self._left = {prompt: list(reversed(sizes)) for prompt, sizes in recorded.items()}
        self._beyond = beyond
        self.missing = 0

    def assign(self, prompt: str, number: int) -> int:
        left = self._left.get(prompt)
        if left:
            return left.pop()
        self.missing += 1
        return self._beyond

    def closed(self, prompt: str, number: int, size: int, traces: int, cause: Cause, delay: float, load: Load) -> None:
        """Nothing to learn from it."""


class ResumedSizes:
    """Windows that were done before a crash are dealt what they were; the others get their size from ``inner``.

    A size that was given is given again, so that the bound on open traces closes windows just where it did. What the
    controller chose is not asked again: such a window closes with as many traces as it had, so that no bound is
    reached that the recorded sizes would not reach.

    :param done: how many traces a prompt's window closed with that was done, else None.
    """

    def __init__(self, inner: Sizes, done: Callable[[str, int], int | None]) -> None:
        self._inner = inner
        self._done = done

    def assign(self, prompt: str, number: int) -> int:
        traces = self._done(prompt, number)
        if traces == 0 or (traces is not None and isinstance(self._inner, AutoSizes)):
            return traces
        return self._inner.assign(prompt, number)

    def closed(self, prompt: str, number: int, size: int, traces: int, cause: Cause, delay: float, load: Load) -> None:
        self._inner.closed(prompt, number, size, traces, cause, delay, load)
