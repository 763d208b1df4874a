"""The sink: where versions go."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Protocol

from operators.version import Published


class Sink(Protocol):
    """Makes a version durable; files, memory and Kafka are behind it.

    The next version of the prompt is made only once this one stands, so a sink sees each prompt's versions in order and
    one at a time, those of different prompts at once.
    """

    def __call__(self, published: Published, /) -> Awaitable[Published | None]:
        """Return once the version is where nothing can lose it.

        :return: what stands in its place (:mod:`operators.smaller`), where it was too large; else None will do.
        :raises Exception: it could not be made durable; then no later version of the prompt is made either.
        """
