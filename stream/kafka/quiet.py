"""Clients that say one thing hundreds of times a second while a broker is away are heard once in a while."""

from __future__ import annotations

import logging

EVERY_SECONDS = 10.0

_MOST = 1_000  # a message that holds its own numbers is another one each time, for as long as the service lives


class Seldom(logging.Filter):
    """Lets each message of a logger through once in ``every`` seconds, and then says how many it held back.

    What is one message is told by its text before its arguments are filled in, so names and numbers make no difference.
    """

    def __init__(self, every: float = EVERY_SECONDS) -> None:
        super().__init__()
        self._every = every
        self._told: dict[str, float] = {}
        self._held: dict[str, int] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether a record is to be written; its time is its own."""
        key = f"{record.name} {record.msg}"
        told = self._told.get(key)
        if told is not None and 0 <= record.created - told < self._every:
            self._held[key] = self._held.get(key, 0) + 1
            return False
        if len(self._told) >= _MOST:
            self._told.clear()
            self._held.clear()
        self._told[key] = record.created
        held = self._held.pop(key, 0)
        if held:
            record.msg, record.args = f"{record.getMessage()} (and {held:,} more like it)", ()
        return True
