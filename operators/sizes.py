"""Who decides how large windows are."""

from __future__ import annotations

from typing import Protocol

from operators.overload import Load
from operators.window import Cause


class Sizes(Protocol):
    """Who decides how large windows are."""

    def assign(self, prompt: str, number: int) -> int:
        """The size of the window that opens now; 0 for one that is done already and was empty."""

    def closed(self, prompt: str, number: int, size: int, traces: int, cause: Cause, delay: float, load: Load) -> None:
        """A window made its version.

        :param size: what it was dealt; ``traces`` is what it closed with.
        :param cause: why it closed; only one that closed at its size says how long that size takes.
        :param delay: seconds from when it was closed and its base there, the later of the two, to its version.
        """


class FixedSize:
    """Every window takes ``size`` traces."""

    def __init__(self, size: int) -> None:
        self._size = size

    def assign(self, prompt: str, number: int) -> int:
        return self._size

    def closed(self, prompt: str, number: int, size: int, traces: int, cause: Cause, delay: float, load: Load) -> None:
        """Nothing to learn from it."""
