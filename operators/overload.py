"""The upper clamp of one prompt's batch size: smaller windows when its curators no longer keep up.

Context overload (Combee, arXiv 2604.04247): a curator call keeps a few lessons however many it is given. With cited
curation what it leaves is carried, and enters raw when it was left too often; so the share that enters raw, and the
share covered at the first try, measure overload while the stream runs. Pure: a state and a window make a state.

The bounds are those of ``learning.md``, with margins, because five windows of the smallest sizes hold some forty
insights: by the bare bounds a prompt whose true share is 8 % would be sent down every dozen windows, for ever.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from math import sqrt

from msgspec import Struct
from msgspec.structs import replace

DOWN_WINDOWS = 5
DOWN_RAW = 0.10
DOWN_COVERED = 0.60
DOWN_MARGIN = 10
"""How many insights past a bound the latest windows, five to twenty of them, must be in all."""

UP_WINDOWS = 20
UP_RAW = 0.05


class Load(Struct, frozen=True, array_like=True):
    """What one window's curators made of its insights, each counted once however many copies it had.

    :param size: the number of traces the window closed with; 0 for the empty window of an idle prompt.
    :param first_given: insights that were in front of a curator for the first time.
    :param first_covered: those of them that were covered, or dropped as duplicates that similarity verified.
    :param entered_raw: carried insights that entered as raw bullets with this window's version.
    :param covered: all insights that were covered, first given or carried.
    """

    size: int
    first_given: int
    first_covered: int
    entered_raw: int
    covered: int


class Overload(Struct, frozen=True, omit_defaults=True):
    """What is remembered of a prompt.

    :param clamp: the largest size its windows may have.
    :param recent: the windows that count since the last step, oldest first, at most ``UP_WINDOWS``.
    :param settling: how many of the next windows still let in what was carried before the last step.
    :param given: the insights first given in windows of the smallest candidate, and
    :param covered: those of them that were covered: the reference.
    """

    clamp: int
    recent: tuple[Load, ...] = ()
    settling: int = 0
    given: int = 0
    covered: int = 0


def observe(state: Overload, load: Load, candidates: Sequence[int], lag: int = 4) -> Overload:
    """Take the next window into account.

    The clamp steps to the candidate below the sizes of the last five windows (which is below the clamp, where the
    plateau or a slow stream kept them smaller) when of the insights in them that were covered or entered raw over 10 %
    entered raw, or their first-given insights were covered less than 60 % as often as at the smallest candidate, and
    the latest windows are ``DOWN_MARGIN`` insights past that bound. It steps up when the raw share of twenty windows
    is one standard error or more below 5 %. Shares are of sums, never of single windows. A step forgets the windows
    that led to it.

    :param candidates: the sizes, rising.
    :param lag: after how many windows all that a window left uncited has entered raw: 2 (1 + max_staleness).
    """
    # An empty window lets in all that is carried because the prompt is idle, which says nothing of its curators.
    if load.size < 1 or not load.first_given + load.entered_raw + load.covered:
        return state
    if load.size <= candidates[0]:
        state = replace(state, given=state.given + load.first_given, covered=state.covered + load.first_covered)
    # A window larger than the clamp was open when the clamp stepped below it: that step was the answer to it.
    if load.size > state.clamp:
        return state
    if state.settling:
        return replace(state, settling=state.settling - 1)
    recent = (*state.recent, load)[-UP_WINDOWS:]
    clamp = state.clamp
    if _overloaded(recent, state):
        size = min(clamp, max(window.size for window in recent[-DOWN_WINDOWS:]))
        clamp = candidates[max(0, bisect_left(candidates, size) - 1)]
    elif _has_room(recent):
        clamp = candidates[min(len(candidates) - 1, bisect_right(candidates, clamp))]
    if clamp == state.clamp:
        return replace(state, recent=recent)
    return replace(state, clamp=clamp, recent=(), settling=lag)


def _overloaded(recent: Sequence[Load], state: Overload) -> bool:
    reference = DOWN_COVERED * state.covered / state.given if state.given else 0.0
    raw_excess = cover_deficit = 0.0
    too_raw = too_little = False
    for count, load in enumerate(reversed(recent), 1):
        raw_excess += load.entered_raw - DOWN_RAW * (load.entered_raw + load.covered)
        cover_deficit += reference * load.first_given - load.first_covered
        if count == DOWN_WINDOWS:
            too_raw, too_little = raw_excess > 0, cover_deficit > 0
        if (too_raw and raw_excess > DOWN_MARGIN) or (too_little and cover_deficit > DOWN_MARGIN):
            return True
    return False


def _has_room(recent: Sequence[Load]) -> bool:
    raw = sum(load.entered_raw for load in recent)
    total = raw + sum(load.covered for load in recent)
    error = sqrt(UP_RAW * (1 - UP_RAW) * total)
    return len(recent) == UP_WINDOWS and total > 0 and UP_RAW * total - raw >= error
