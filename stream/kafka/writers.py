"""The writers of prompts' states, of those prompts that were written last."""

from __future__ import annotations

from msgspec import Raw

from operators.state import PromptState
from operators.writing import StateWriter

KEPT_BYTES = 8 << 20
"""Of states written, whose writers are kept; a writer holds some seven times what it writes."""


class Writers:
    """A state writer for each busy prompt; those that were idle longest are let go.

    :param limit: of the bytes that the writers kept have written last.
    """

    def __init__(self, limit: int = KEPT_BYTES) -> None:
        self._limit = limit
        self._writers: dict[str, tuple[StateWriter, int]] = {}
        self._bytes = 0

    @property
    def kept(self) -> int:
        """The bytes that the writers kept have written last."""
        return self._bytes

    def snapshot(self, state: PromptState) -> Raw:
        """The JSON of a state's snapshot."""
        found = self._writers.pop(state.prompt, None)
        writer, before = (StateWriter(), 0) if found is None else found
        written = writer.snapshot(state)
        size = len(memoryview(written))
        self._writers[state.prompt] = writer, size
        self._bytes += size - before
        while self._bytes > self._limit:
            idle = next(iter(self._writers))
            self._bytes -= self._writers.pop(idle)[1]
        return written
