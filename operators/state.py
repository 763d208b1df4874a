"""The state of one prompt: all that its next version depends on."""

from __future__ import annotations

from msgspec import Struct

from operators.facts import EMPTY, Delta
from operators.playbook import Playbook
from operators.values import Bullet, Given


class Step(Struct, frozen=True):
    """How a state came from the one before: the delta applied and the display ids given."""

    delta: Delta
    ids: tuple[tuple[str, str], ...] = ()


class Standing(Struct, frozen=True):
    """A prompt as of one version: a base to curate on.

    :param window: the last window it holds; 0 before the first.
    :param bullets: what it shows, in display order; ``text`` is what agents get, None where it was not written yet.
    :param step: what made it of the standing before; None when only its facts in full can say (a fold, a rollback).
    """

    version: int = 0
    window: int = 0
    playbook: Playbook = Playbook()
    bullets: tuple[Bullet, ...] = ()
    step: Step | None = None
    text: str | None = None


class Carried(Struct, frozen=True):
    """An insight no curator cited, to be given again in window ``due`` and only there."""

    given: Given
    due: int


class Quarantined(Struct, frozen=True):
    """The part of a window's delta that was refused on its own, with the reason."""

    window: int
    delta: Delta
    reason: str


class PromptState(Struct, frozen=True):
    """One prompt. ``older`` are the standings that bases in flight may need, oldest first."""

    prompt: str
    now: Standing = Standing()
    older: tuple[Standing, ...] = ()
    counter: int = 0
    carried: tuple[Carried, ...] = ()
    pending: Delta = EMPTY
    quarantined: tuple[Quarantined, ...] = ()
    at: str | None = None


def base_for(state: PromptState, window: int, max_staleness: int) -> Standing:
    """The standing to curate window ``window`` on, once ``state`` holds windows up to ``window - 1 - max_staleness``.

    It is the newest that holds no later window, and not older than the newest rollback: that one drops all before it.
    """
    limit = max(window - 1 - max_staleness, 0)
    standings = (*state.older, state.now)
    return next((each for each in reversed(standings) if each.window <= limit), standings[0])


def stand(state: PromptState, now: Standing, max_staleness: int) -> tuple[Standing, ...]:
    """The older standings to keep once ``now`` stands: those after the newest that every base in flight has seen."""
    standings = (*state.older, state.now)
    limit = now.window - max_staleness - 1
    # One window more than bases need: a base in flight may be older than an import that came in after it was taken.
    seen = [index for index, each in enumerate(standings) if each.window <= limit]
    return standings[seen[-1] if seen else 0 :]
