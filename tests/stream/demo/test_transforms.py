"""An agent's general knowledge: guesses, and transforms found from one example."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream.demo.transforms import by_example, guesses, limit


@pytest.mark.parametrize(
    ("before", "after", "other", "expected"),
    [
        (12.5, 1250, 0.35, 35),
        (1.5, 90, 2.25, 135),
        ("3 May 2026", "2026-05-03", "28 December 2026", "2026-12-28"),
        ("3 May 2026", "03.05.2026", "11 June 2026", "11.06.2026"),
        ("3:30 pm", "1530", "9:05 am", "0905"),
        ("eur", "EUR", "chf", "CHF"),
        ("42", "000042", "1234", "001234"),
        ("next day air", "NEXT_DAY_AIR", "slow road", "SLOW_ROAD"),
        ("next day air", "NextDayAir", "slow road", "SlowRoad"),
        ("+49 (30) 12-34", "49301234", "+1 (99) 55-66", "1995566"),
        ("Ann Lee", "LEE, Ann", "Bo Chen", "CHEN, Bo"),
        ("x", "no-x", "y", "no-y"),
    ],
)
def test_one_example_is_enough_for_the_next_value(before: Any, after: Any, other: Any, expected: Any) -> None:
    transform = by_example(before, after)
    assert transform is not None
    assert transform(other) == expected
    assert before == after or after in guesses(before) or before in str(after)


@pytest.mark.parametrize(
    ("before", "after"), [("a", "b"), ("Ann Lee", "C-77"), (True, 1), (7, 5), (None, "x"), ([1], 2)]
)
def test_an_example_that_nothing_explains_gives_no_transform(before: Any, after: Any) -> None:
    assert by_example(before, after) is None


def test_a_lowered_whole_number_is_a_limit() -> None:
    assert limit(70, 45) == 45
    assert limit(45, 70) is None
    assert limit(2.5, 2) is None
    assert limit("70", "45") is None
    assert limit(True, 0) is None


@given(st.one_of(st.text(max_size=30), st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.none()))
def test_guesses_differ_from_the_value_and_each_other(value: Any) -> None:
    found = guesses(value)
    assert all(guess != value or type(guess) is not type(value) for guess in found)
    assert len({(type(guess), guess) for guess in found}) == len(found)
