"""Which texts say one thing: wording may differ, but not numbers, names, negations or the order of words."""

from __future__ import annotations

import pytest
from hypothesis import given as examples
from hypothesis import strategies as st

from operators.similar import Texts, hard_tokens, is_same

SAME = [
    ("amounts are in cents", "Amounts are in cents."),
    ("amounts are in cents", "  AMOUNTS\tare in\ncents !"),
    ("Pass the amount in cents to `refund`", "Pass the amounts in cents to `refund`"),
    ("ﬁrst search, then refund", "first search, then refund"),
    ("retry after 30 seconds when the server is busy", "retry after 30 seconds when a server is busy"),
    ("", "  "),
]
OTHER = [
    ("amounts are in cents", "amounts are in euros"),
    ("retry after 30 seconds when the server is busy", "retry after 90 seconds when the server is busy"),
    ("a refund takes 1.5 days to arrive at the bank", "a refund takes 2.5 days to arrive at the bank"),
    ("pass amounts in cents to the tool for refunds", "never pass amounts in cents to the tool for refunds"),
    ("you can refund an order twice when it was split", "you cannot refund an order twice when it was split"),
    ("use the refund tool for all partial refunds", "don't use the refund tool for all partial refunds"),
    ("use the refund tool for all partial refunds", "don’t use the refund tool for all partial refunds"),
    ("set `user_id` on every call of the search tool", "set `item_id` on every call of the search tool"),
    ("set user_id on every call of the search tool", "set item_id on every call of the search tool"),
    ("call `search` before `refund` with the order", "call `refund` before `search` with the order"),
    ("call search before refund with the order", "call refund before search with the order"),
    (
        "convert all amounts of the order from euros to dollars before you send them on to the refund tool",
        "convert all amounts of the order from dollars to euros before you send them on to the refund tool",
    ),
    ("convert from euros to dollars at the end", "convert from dollars to euros at the end"),
    ("at most 10 items go into one call", "at least 10 items go into one call"),
    ("refund before you cancel the order", "refund after you cancel the order"),
    ("", "amounts are in cents"),
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_one_thing_in_other_words(one: str, other: str) -> None:
    assert is_same(one, other)
    assert is_same(other, one)
    assert Texts([one]).same_as(other) == 0


@pytest.mark.parametrize(("one", "other"), OTHER)
def test_another_thing_in_almost_the_same_words(one: str, other: str) -> None:
    assert not is_same(one, other)
    assert not is_same(other, one)
    assert Texts([one]).same_as(other) is None


def test_hard_tokens_are_as_they_come() -> None:
    assert hard_tokens("Never pass `b` BEFORE `a`, at most 10.5 of user_id") == [
        "never",
        "`b`",
        "before",
        "`a`",
        "most",
        "10.5",
        "user_id",
    ]


def test_the_nearest_is_found_and_of_equals_the_first() -> None:
    texts = Texts(["feed a dog", "amounts are in cent", "amounts are in cents", "Amounts are in cents."])
    assert texts.same_as("amounts are in cents") == 2
    assert texts.same_as("amounts were in cent") == 1
    assert texts.same_as("sing a song") is None
    assert Texts([]).same_as("x") is None


def test_a_twin_is_found_among_many_that_only_look_like_it() -> None:
    many = [f"retry after {at} seconds when the server is busy" for at in range(40)]
    assert (
        Texts([*many, "retry after 77 seconds when a server is busy"]).same_as(
            "retry after 77 seconds when the server is busy"
        )
        == 40
    )


def test_texts_can_be_appended() -> None:
    texts = Texts(["feed a dog"])
    texts.append("sing a song")
    assert texts.same_as("Sing a song.") == 1


def test_related_texts_share_their_words() -> None:
    texts = Texts(["pass amounts in cents to refund", "feed a dog", "amounts in cents", ""])
    assert texts.related_to("pass amounts in cents") == [0, 2]
    assert texts.related_to("quantum chromodynamics") == []
    assert texts.related_to("") == []


def test_a_text_covers_those_of_which_it_says_over_half_the_words() -> None:
    texts = Texts(["pass amounts in cents to refund", "call search before refund", "Feed a dog.", ""])
    assert texts.covered_by("pass all amounts in cents") == [0]
    assert texts.covered_by("refund") == []
    assert texts.covered_by("call search") == []
    assert texts.covered_by("feed the dog and call search before refund") == [1, 2]
    assert texts.covered_by("") == []


words = st.text(alphabet="abc `0_'’.né\n", max_size=30)


@examples(words, words)
def test_sameness_has_no_direction_and_agrees_with_the_look_up(one: str, other: str) -> None:
    assert is_same(one, one)
    assert is_same(one, other) == is_same(other, one)
    assert (Texts([one]).same_as(other) == 0) == is_same(one, other)
