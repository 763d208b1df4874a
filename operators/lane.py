"""A lane: one prompt under way, and who waits for its next version."""

from __future__ import annotations

import anyio

from operators.state import PromptState


class WindowLost(Exception):
    """A window of a prompt could not be published, so no later one may be; its error is the cause of this one."""

    def __init__(self, prompt: str) -> None:
        super().__init__(f"a window of {prompt!r} was not published")


class Lane:
    """One prompt under way."""

    def __init__(self, state: PromptState, now: float) -> None:
        self.state = state
        self.opened = state.now.window
        self.rolled_back = 0
        self.running = 0
        self.publishing = False
        self.error: BaseException | None = None
        self.active = now
        self._changed: anyio.Event | None = None
        self.stood: dict[int, float] = {}  # when the last windows' versions were there, for what is based on them

    async def change(self) -> None:
        """Wait until the lane moves.

        :raises WindowLost: when it never will.
        """
        self.check()
        if self._changed is None:
            self._changed = anyio.Event()
        await self._changed.wait()
        self.check()

    def check(self) -> None:
        """See that no window of the prompt is missing.

        :raises WindowLost: when one is: nothing may follow it.
        """
        if self.error is not None:
            raise WindowLost(self.state.prompt) from self.error

    def move(self) -> None:
        """Wake all who wait for a change."""
        if self._changed is not None:
            self._changed.set()
            self._changed = None
