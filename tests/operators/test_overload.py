"""The upper clamp of a prompt: when it steps down, when up, and what it does not count."""

from collections.abc import Iterable

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from operators.overload import UP_WINDOWS, Load, Overload, observe

SIZES = (8, 16, 32, 64, 128)
START = Overload(128)


def load(size: int, raw: int = 0, covered: int = 0, *, first: int = 0, given: int = 0) -> Load:
    """A window whose first-given insights do not matter unless they are stated."""
    return Load(size, given, first, raw, covered)


def after(state: Overload, loads: Iterable[Load]) -> Overload:
    for window in loads:
        state = observe(state, window, SIZES)
    return state


def test_five_windows_over_ten_percent_step_down() -> None:
    heavy = load(128, raw=20, covered=80)

    assert after(START, [heavy] * 4).clamp == 128
    assert after(START, [heavy] * 5).clamp == 64


def test_ten_percent_is_not_over() -> None:
    assert after(START, [load(128, raw=100, covered=900)] * 40).clamp == 128
    assert after(START, [load(128, raw=110, covered=890)] * 5).clamp == 64


def test_a_few_insights_more_than_the_bound_are_chance() -> None:
    # Five windows of 16 traces with a lesson in every second one: 8 of 40 is twice the bound, and four insights.
    assert after(START, [load(16, raw=2, covered=6)] * 3 + [load(16, raw=1, covered=7)] * 2).clamp == 128
    # The same share for longer is no chance.
    assert after(START, ([load(16, raw=2, covered=6)] * 3 + [load(16, raw=1, covered=7)] * 2) * 3).clamp == 8


def test_overload_that_is_over_does_not_count() -> None:
    # Twenty windows together are over, the last five are not.
    state = after(START, [load(32, raw=2, covered=10)] * 4 + [load(32, covered=50)] * 5)

    assert state.clamp == 128


def test_new_overload_is_not_diluted_by_the_windows_before_it() -> None:
    assert after(START, [load(128, raw=6, covered=94)] * 20 + [load(128, raw=20, covered=80)] * 5).clamp == 64


def test_covered_less_than_at_the_smallest_candidate() -> None:
    reference = [load(8, given=10, first=8, covered=8)] * 5

    # 60 % of 80 % is 48 %.
    assert after(START, [*reference, *[load(128, given=50, first=25, covered=50)] * 15]).clamp == 128
    assert after(START, [*reference, *[load(128, given=50, first=22, covered=50)] * 15]).clamp == 64
    # Without a reference there is nothing to compare with.
    assert after(START, [load(128, given=50, first=22, covered=50)] * 15).clamp == 128


def test_the_step_is_from_the_size_that_was_overloaded() -> None:
    # A plateau of 63 under a clamp of 128: a clamp of 64 would change nothing.
    assert after(START, [load(63, raw=20, covered=80)] * 5).clamp == 32
    assert after(START, [load(5, raw=20, covered=80)] * 5).clamp == 8


def test_one_overload_justifies_one_step() -> None:
    state = after(START, [load(128, raw=20, covered=80)] * 5)
    assert state.clamp == 64

    # Windows that were open at the larger size, however many.
    state = after(state, [load(128, raw=40, covered=60)] * 10)
    assert state.clamp == 64
    # Four windows of the new size let in what was carried before; then five of its own are needed.
    state = after(state, [load(64, raw=40, covered=60)] * 8)
    assert state.clamp == 64
    assert after(state, [load(64, raw=40, covered=60)]).clamp == 32


def test_twenty_windows_below_five_percent_step_up_once() -> None:
    low = Overload(16)
    light = load(16, raw=1, covered=39)

    assert after(low, [light] * (UP_WINDOWS - 1)).clamp == 16
    stepped = after(low, [light] * UP_WINDOWS)
    assert stepped.clamp == 32
    assert after(stepped, [light] * (4 + UP_WINDOWS - 1)).clamp == 32
    assert after(stepped, [light] * (4 + UP_WINDOWS)).clamp == 64


def test_between_the_bounds_nothing_changes() -> None:
    assert after(Overload(16), [load(16, raw=7, covered=93)] * 100).clamp == 16


def test_the_ends() -> None:
    assert after(Overload(8), [load(8, raw=50, covered=50)] * 50).clamp == 8
    assert after(Overload(128), [load(128, covered=100)] * 50).clamp == 128


def test_windows_that_say_nothing() -> None:
    # An idle prompt's empty window lets in all that is carried; a window without insights has no share.
    assert after(START, [load(0, raw=500)] * 30) == START
    assert after(Overload(16), [load(16)] * 100) == Overload(16)


def test_windows_without_insights_do_not_interrupt() -> None:
    heavy = load(128, raw=20, covered=80)

    assert after(START, [heavy, load(128), heavy, load(0, raw=9), heavy, heavy, heavy]).clamp == 64


counts = st.integers(0, 60)
loads = st.builds(Load, st.sampled_from([0, 1, 5, *SIZES, 87]), counts, counts, counts, counts)


@given(st.lists(loads, max_size=80), st.integers(0, 80))
def test_state_survives_being_kept(windows: list[Load], cut: int) -> None:
    kept = msgspec.json.decode(msgspec.json.encode(after(START, windows[:cut])), type=Overload)

    assert after(kept, windows[cut:]) == after(START, windows)


@given(st.lists(loads, max_size=120))
def test_the_clamp_is_a_candidate_and_steps_are_apart(windows: list[Load]) -> None:
    state, since = START, 0
    for number, window in enumerate(windows):
        stepped = observe(state, window, SIZES)
        assert stepped.clamp in SIZES
        assert len(stepped.recent) <= UP_WINDOWS
        if stepped.clamp != state.clamp:
            assert number - since >= (5 if since == 0 else 9) - 1
            since = number
        state = stepped


@pytest.mark.parametrize("lag", [0, 2, 6])
def test_the_lag_is_the_staleness(lag: int) -> None:
    state = START
    for _ in range(5):
        state = observe(state, load(128, raw=20, covered=80), SIZES, lag)
    for _ in range(lag + 4):
        state = observe(state, load(64, raw=20, covered=80), SIZES, lag)
    assert state.clamp == 64
    assert observe(state, load(64, raw=20, covered=80), SIZES, lag).clamp == 32
