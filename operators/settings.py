"""What can be set about learning, in one frozen value that every operator is given."""

from __future__ import annotations

from msgspec import Struct


class Settings(Struct, frozen=True, kw_only=True):
    """How a prompt is learned. Sizes are counts of traces or windows, times are seconds.

    :param seed: of the augmented shuffle.
    :param max_staleness: how many windows a base may lie behind (0: curation waits for the window before).
    :param copies: Combee's p, copies of each reflection.
    :param support_traces: traces that must teach a bullet before it is published; ``support_sessions`` likewise.
    :param token_budget: what a playbook may cost an agent, in tokens estimated from bytes.
    :param fan_in: the most proposals of one level-2 call.
    :param fold_every: windows between foldings; ``fold_after``: windows until a superseded bullet is dropped.
    :param open_traces: traces in open windows above which the window with the oldest first trace closes.
    :param max_wait: how long a window may stay open, or None where there is no clock.
    :param straggler_deadline: how long a closed window waits for its reflections, or None for ever.
    :param in_flight: the most reflections under way, of all prompts together.
    :param counters: whether the text agents get carries ACE's counters.
    """

    seed: int = 0
    max_staleness: int = 1
    copies: int = 2
    support_traces: int = 1
    support_sessions: int = 1
    token_budget: int = 80_000
    fan_in: int = 50
    fold_every: int = 20
    fold_after: int = 50
    open_traces: int = 20_000
    max_wait: float | None = None
    straggler_deadline: float | None = None
    in_flight: int = 64
    counters: bool = False

    def __post_init__(self) -> None:
        if self.max_staleness < 0 or self.copies < 1 or self.fan_in < 2 or self.in_flight < 1:
            raise ValueError("max_staleness must be 0 or more, copies and in_flight 1 or more, fan_in 2 or more")
        if self.fold_every <= self.max_staleness + 1:
            raise ValueError(f"fold_every must be over max_staleness + 1 = {self.max_staleness + 1}")
