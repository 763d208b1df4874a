"""What a method of learning is: three functions behind one interface."""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from typing import Protocol

from operators.values import Bullet, Curation, Given, Reflection, Trace


class Method(Protocol):
    """Reflect a trace, curate a group (level 1), reduce proposals (level 2).

    Each function returns its value, or an awaitable of it: a plain value completes without suspending and costs no
    task. Any of them may raise; a failed reflection falls back to the model-free method, a failed curator to the plain
    union of its group, a failed reduce to nothing.
    """

    @property
    def name(self) -> str:
        """What the method is called in stores and settings."""

    @property
    def reduces(self) -> bool:
        """Whether there is a level 2 at all."""

    def reflect(self, trace: Trace, seen: Sequence[Bullet]) -> Reflection | Awaitable[Reflection]:
        """What one trace teaches; ``seen`` are the bullets its agent had read, as far as that is known."""

    def curate(self, given: Sequence[Given], base: Sequence[Bullet]) -> Curation | Awaitable[Curation]:
        """Level 1: operations on ``base`` that cite insights by number, from 1."""

    def reduce(self, proposals: Sequence[Bullet], base: Sequence[Bullet]) -> Curation | Awaitable[Curation]:
        """Level 2: operations that cite proposals by number, from 1; what is not cited stands."""
