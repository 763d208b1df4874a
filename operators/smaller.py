"""Versions to publish in the place of one that is too large for where it goes."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from operators.budget import tokens
from operators.facts import EMPTY
from operators.learn import Learning
from operators.overload import Load
from operators.state import Carried, PromptState
from operators.version import Published, Taught, publish_window

PARTS = (0.9, 0.6, 0.3)
"""Of the room that there is, how much bullets may take. To prune on until it fits might leave none of them, and all
that was learned before is worth more than one window."""


def smaller(published: Published, share: float, why: str) -> Iterator[Published]:
    """Versions of the same window, best first: with ever fewer bullets, then one that learns nothing from it.

    None of what no window made, for there is nobody to refuse.

    :param share: how much of the update there is room for; from 1 on fewer bullets would not help.
    :param why: told of the window's traces when they are refused.
    """
    taught = published.taught
    if taught is None:
        return
    if share < 1:
        total, left = tokens(published.update.bullets), len(published.update.bullets)
        for part in PARTS:
            version = _pruned(taught, int(part * share * total))
            if len(version.update.bullets) < left:
                left = len(version.update.bullets)
                yield version
    yield _refused(taught, why)


def passed(published: Published) -> PromptState:
    """The state before a version, with its window counted as one that made none."""
    assert published.taught is not None
    before, window = published.taught.state, published.taught.window
    return replace(before, now=replace(before.now, window=window), carried=_kept(published.taught))


def _pruned(taught: Taught, budget: int) -> Published:
    settings = replace(taught.settings, token_budget=budget)
    return publish_window(taught.state, taught.window, taught.learning, taught.base, settings, **taught.others)


def _refused(taught: Taught, why: str) -> Published:
    learning = Learning(None, EMPTY, _kept(taught), Load(0, 0, 0, 0, 0), taught.learning.calls, is_last=True)
    return publish_window(
        taught.state, taught.window, learning, taught.base, taught.settings, **taught.others, refused=why
    )


def _kept(taught: Taught) -> tuple[Carried, ...]:
    """What stays carried: what was due in the window gets its chance in a later one, unless all of it was to enter."""
    if taught.learning.is_last:
        return ()
    later = taught.window + 1 + taught.settings.max_staleness
    return tuple(replace(each, due=later) if each.due == taught.window else each for each in taught.state.carried)
