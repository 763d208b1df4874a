"""What a killed replay had done of one prompt: its windows as they were, and whose turn it is in them.

The traces of those windows are passed over when they come again, in the same order, so that every window still open
closes just where it would have closed in an undisturbed run.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from hashlib import blake2b

from operators.entry import Entry


class Done:
    """The windows of one prompt that one run has published.

    Eight bytes a trace are kept, and only by a run that was resumed.
    """

    def __init__(self, entries: Iterable[Entry], run: int) -> None:
        self.start_version = 0
        self.start_window = 0
        self._sizes: dict[int, int] = {}
        self._ids = array("Q")
        self._next = 0
        self._given_up = False
        begun = False
        for entry in entries:
            if entry.run != run:
                if not begun:
                    self.start_version, self.start_window = entry.version, entry.window
                continue
            begun = True
            self._sizes[entry.window] = len(entry.traces)
            self._ids.extend(_short(id) for id, _ in entry.traces)

    def size(self, window: int) -> int | None:
        """How many traces a window closed with; None for one that is not done."""
        return self._sizes.get(window)

    def is_next(self, id: str) -> bool:
        """Whether ``id`` is the next trace of what was done; if so, the one after it is next."""
        if self._next < len(self._ids) and self._ids[self._next] == _short(id):
            self._next += 1
            return True
        return False

    def give_up(self) -> bool:
        """Pass over nothing more: a new trace came, so what is left was done from another log than this one.

        :return: whether it is the first time, and anything was done at all.
        """
        first = not self._given_up
        self._given_up = True
        self._next = len(self._ids)
        return first and bool(self._sizes)


def _short(id: str) -> int:
    return int.from_bytes(blake2b(id.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "big")
