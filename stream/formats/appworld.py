"""ACE-AppWorld's playbook text: ACE's without counters. It is also the text that agents get."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from operators.values import Bullet
from stream.formats import ace
from stream.formats.imported import Imported


def read(text: str, *, name: str = "appworld") -> Imported:
    """Read the text; counters, where a line has them all the same, are taken."""
    return ace.read_text(text, name=name)


def write(bullets: Sequence[Bullet], extra: dict[str, Any]) -> bytes:
    """Write the text; counts have no place in it."""
    return ace.write_text(bullets, extra, counters=False)
