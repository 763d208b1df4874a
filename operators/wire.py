"""Values as bytes: JSON, UTF-8, with sets sorted, so that equal values are equal bytes."""

from __future__ import annotations

from typing import TypeVar

import msgspec

T = TypeVar("T")

_encoder = msgspec.json.Encoder(order="deterministic")


def encode(value: object) -> bytes:
    """One line of JSON."""
    return _encoder.encode(value)
