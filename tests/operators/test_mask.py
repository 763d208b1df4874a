"""Masking: values go, names and wording stay, and nothing that a tool can answer gets through as structure."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from operators.identity import is_printable
from operators.mask import leaves, mask, plain


@pytest.mark.parametrize(
    ("error", "arguments", "masked"),
    [
        ("Amount must be in cents.", {"amount": 10}, "amount must be in cents"),
        ("No such order: 'A-77'", {}, "no such order: #"),
        ("unknown currency eur", {"currency": "EUR"}, "unknown currency #"),
        ("Field 'amount' is not a number", {"amount": "x1"}, "field amount is not a number"),
        ("mode must be one of 'fast', 'slow' or \"none\"", {}, "mode must be one of #"),
        ("can't read \"3 May\": user's date isn't ISO", {}, "can't read #: user's date isn't iso"),
        ("429: retry after 3.5s at https://x.y/z?q=1", {}, "#: retry after # at #"),
        ("no file /tmp/a/b or C:\\temp for bob@x.org", {}, "no file # for #"),
        ("{'code': 12, 'text': 'gone'} (got [1, 2, 3])", {}, "# (got #)"),
        ("limit 40, got 120", {}, "limit #, got #"),
        ("rows 3-7 of id 7f3c-aa01 failed\nsee the log", {}, "rows # of id # failed see the log"),
        ("status is not allowed", {"status": "not"}, "status is # allowed"),
        ("the field status is unknown", {"field": "status"}, "the field # is unknown"),
        ("", {}, ""),
    ],
)
def test_values_go_and_wording_stays(error: str, arguments: object, masked: str) -> None:
    assert mask(error, arguments) == masked


def test_errors_that_differ_in_values_only_are_one() -> None:
    made = {
        mask(f"order '{order}' has {n} open lines on {day}", {})
        for order, n, day in [("a", 1, "2026-01-02"), ("B-7", 23, "3/4")]
    }
    assert made == {"order # has # open lines on #"}


def test_a_longer_value_is_masked_before_one_that_it_holds() -> None:
    assert mask("city new york is closed", {"a": "york", "b": "New York"}) == "city # is closed"


@given(st.text(max_size=2_000), st.dictionaries(st.text(max_size=8), st.text(max_size=300), max_size=5))
def test_any_text_gives_one_short_printable_line(error: str, arguments: dict[str, str]) -> None:
    masked = mask(error, arguments)
    assert len(masked) <= 200
    assert is_printable(masked)
    assert masked.encode().decode() == masked
    assert mask(error, arguments) == masked


@pytest.mark.parametrize("piece", ["'", "a/", "1", "#,", "[", "x'", "1'\"", "((", "é1", " \n", "\ud800"])
def test_a_megabyte_of_anything_is_read_in_part(piece: str) -> None:
    big = piece * 1_000_000
    assert len(mask(big, {"a": big, "b": [big] * 3})) <= 200


def test_plain_cuts_with_an_ellipsis_and_drops_what_cannot_be_printed() -> None:
    assert plain("a\u2028b\x00c\ud800d", 20) == "a b c d"
    assert plain("abcdef", 4) == "abc…"


def test_leaves_are_bounded_and_survive_depth() -> None:
    deep: object = "x"
    for _ in range(5_000):
        deep = [deep]
    assert sum(1 for _ in leaves({"a": deep, "b": [1] * 10_000})) <= 10_002
    assert list(leaves("raw")) == ["raw"]
