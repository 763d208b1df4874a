"""Bases: which standing a window is curated on, and which standings are kept for those in flight."""

from __future__ import annotations

import pytest
from hypothesis import given as examples
from hypothesis import strategies as st

from operators.facts import EMPTY
from operators.learn import Learning
from operators.settings import Settings
from operators.state import PromptState, Standing, base_for, stand
from operators.version import publish_delta, publish_rollback, publish_window


def standings(*windows: int) -> tuple[Standing, ...]:
    return tuple(Standing(version, window) for version, window in enumerate(windows))


def prompt(*windows: int) -> PromptState:
    *older, now = standings(*windows)
    return PromptState("p", now, tuple(older))


@pytest.mark.parametrize("staleness", [0, 1, 2, 3])
def test_the_first_windows_stand_on_the_state_before_window_one(staleness: int) -> None:
    state = prompt(0, *range(1, staleness + 1))
    for window in range(1, staleness + 2):
        assert base_for(state, window, staleness).window == 0


def test_a_base_is_the_newest_that_holds_no_later_window() -> None:
    state = prompt(0, 1, 2, 3)
    assert [base_for(state, 4, staleness).window for staleness in range(5)] == [3, 2, 1, 0, 0]


def test_of_several_versions_of_one_window_the_newest_is_the_base() -> None:
    state = prompt(0, 0, 1, 1, 1, 2)
    assert base_for(state, 1, 1).version == 1
    assert base_for(state, 3, 1).version == 4
    assert base_for(state, 4, 1).version == 5


def test_nothing_is_older_than_the_oldest_kept() -> None:
    state = prompt(7)
    assert base_for(state, 8, 3).window == 7


def test_a_new_prompt_is_its_own_base() -> None:
    assert base_for(PromptState("p"), 1, 1) == Standing()


kinds = st.lists(st.sampled_from(["window", "window", "window", "import", "rollback"]), max_size=14)


@examples(kinds, st.integers(0, 3))
def test_every_base_that_may_be_asked_for_is_kept(kinds: list[str], staleness: int) -> None:
    settings = Settings(max_staleness=staleness, fold_every=staleness + 2)
    state = PromptState("p")
    history = [state.now]  # never forgets, but for what a rollback makes too old
    for kind in kinds:
        if kind == "window":
            learning = Learning(None, EMPTY)
            base = base_for(state, state.now.window + 1, staleness)
            state = publish_window(state, state.now.window + 1, learning, base, settings, traces=(("t", ""),)).state
        elif kind == "import":
            state = publish_delta(state, EMPTY, settings, kind="import").state
        else:
            state = publish_rollback(state, PromptState("p"), settings).state
            history = []
        history.append(state.now)
        whole = PromptState("p", history[-1], tuple(history[:-1]))
        for window in range(state.now.window + 1, state.now.window + 2 + staleness):
            assert base_for(state, window, staleness) == base_for(whole, window, staleness)
        windows = {each.window for each in state.older}
        assert len(windows) <= staleness + 2


def test_stand_keeps_one_window_more_than_bases_need() -> None:
    state = prompt(0, 1, 2, 3)
    assert [each.window for each in stand(state, Standing(4, 4), 1)] == [2, 3]
    assert [each.window for each in stand(state, Standing(4, 4), 0)] == [3]
    assert [each.window for each in stand(state, Standing(4, 4), 9)] == [0, 1, 2, 3]
