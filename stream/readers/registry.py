"""The formats that are read. A new one is a file beside this one and a line here."""

from __future__ import annotations

from stream.readers import openai_messages, own
from stream.readers.reader import Reader

READERS: tuple[Reader, ...] = (openai_messages.READER, own.READER)
"""All readers, sorted by name; no two claim one value."""


def pick(value: object) -> Reader | None:
    """The reader that claims a decoded value, or the list that begins with it; None where nobody does."""
    return next((reader for reader in READERS if reader.detect(value)), None)
