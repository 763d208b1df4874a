"""Who decides how large windows are."""

from __future__ import annotations

from typing import Protocol

from operators.overload import Load


class Sizes(Protocol):
    """Who decides how large windows are."""

    def assign(self, prompt: str, number: int) -> int:
        """The size of the window that opens now; 0 for one that is done already and was empty."""

    def closed(self, prompt: str, number: int, size: int, traces: int, delay: float | None, load: Load) -> None:
        """A window made its version: dealt ``size``, closed with ``traces``; ``delay`` in seconds if it was full."""


class FixedSize:
    """Every window takes ``size`` traces."""

    def __init__(self, size: int) -> None:
        self._size = size

    def assign(self, prompt: str, number: int) -> int:
        return self._size

    def closed(self, prompt: str, number: int, size: int, traces: int, delay: float | None, load: Load) -> None:
        """Nothing to learn from it."""
