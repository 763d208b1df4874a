"""The newest time in a window's traces, in one form, and what happens where there is none."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given as examples
from hypothesis import strategies as st

from operators.values import Step, Trace
from operators.when import newest


def at(*times: str | None) -> list[Trace]:
    return [Trace(ended=time) for time in times]


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("2026-01-02T03:04:05Z", "2026-01-02T03:04:05Z"),
        ("2026-01-02T03:04:05+00:00", "2026-01-02T03:04:05Z"),
        ("2026-01-02T05:04:05+02:00", "2026-01-02T03:04:05Z"),
        ("2026-01-01T22:04:05-05:00", "2026-01-02T03:04:05Z"),
        ("2026-01-02T03:04:05", "2026-01-02T03:04:05Z"),
        ("2026-01-02 03:04:05Z", "2026-01-02T03:04:05Z"),
        ("2026-01-02T03:04:05.5Z", "2026-01-02T03:04:05.500Z"),
        ("2026-01-02T03:04:05.123456789Z", "2026-01-02T03:04:05.123Z"),
        ("2026-01-02T03:04:05.000Z", "2026-01-02T03:04:05Z"),
    ],
)
def test_times_are_told_in_one_form(text: str, same: str) -> None:
    assert newest(at(text)) == same


@pytest.mark.parametrize(
    "text",
    [
        "",
        "yesterday",
        "2026-13-01T00:00:00Z",
        "1767323045",
        "0001-01-01T00:00:00+14:00",
        "9999-12-31T23:59:59-12:00",
        "\ud800",
    ],
)
def test_what_is_no_time_is_passed_over(text: str) -> None:
    assert newest(at(text)) is None
    assert newest(at(text), "before") == "before"
    assert newest(at(text, "2026-01-02T03:04:05Z")) == "2026-01-02T03:04:05Z"


def test_the_end_counts_and_where_there_is_none_the_start() -> None:
    assert newest([Trace(started="2026-01-01T00:00:00Z", ended="2026-01-02T00:00:00Z")]) == "2026-01-02T00:00:00Z"
    assert newest([Trace(started="2026-01-01T00:00:00Z")]) == "2026-01-01T00:00:00Z"
    assert newest([Trace(started="2026-01-01T00:00:00Z", ended="soon")]) == "2026-01-01T00:00:00Z"


def test_steps_tell_where_the_trace_does_not() -> None:
    steps = (Step(started="2026-01-03T00:00:00Z", ended="2026-01-04T00:00:00Z"), Step(started="2026-01-05T00:00:00Z"))
    assert newest([Trace(steps=steps)]) == "2026-01-05T00:00:00Z"
    assert newest([Trace(started="2026-01-01T00:00:00Z", steps=steps)]) == "2026-01-05T00:00:00Z"
    assert newest([Trace(ended="2026-01-02T00:00:00Z", steps=steps)]) == "2026-01-02T00:00:00Z"


def test_the_one_before_stands_where_there_is_no_time() -> None:
    assert newest([]) is None
    assert newest([], "before") == "before"
    assert newest(at(None, None), "before") == "before"


def test_the_newest_may_be_older_than_the_one_before() -> None:
    assert newest(at("2026-01-01T00:00:00Z"), "2027-01-01T00:00:00Z") == "2026-01-01T00:00:00Z"


zones = st.integers(-14 * 60, 14 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes)))
times = st.datetimes(datetime(1971, 1, 1), datetime(2100, 1, 1), timezones=zones)  # noqa: DTZ001 - Hypothesis adds the zones


@examples(st.lists(times, min_size=1, max_size=6), st.randoms(use_true_random=False))
def test_order_and_zones_do_not_matter(moments: list[datetime], random: object) -> None:
    texts = [moment.isoformat() for moment in moments]
    found = newest(at(*texts))
    assert found is not None
    wanted = max(moments).astimezone(UTC)
    read = datetime.fromisoformat(found)
    assert wanted - timedelta(milliseconds=1) < read <= wanted
    assert newest(at(*reversed(texts))) == found
    assert newest(at(*(moment.astimezone(UTC).isoformat() for moment in moments))) == found
