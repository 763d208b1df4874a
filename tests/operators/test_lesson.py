"""The wording of lessons: what is written can be read back, and hostile parts stay inside their places."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from operators.identity import is_printable
from operators.lesson import ERROR, NAME, VALUE, Lesson, error, name, parse, readable, value

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=90),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
NAMES = st.text(min_size=1, max_size=100).map(name).filter(bool)
VALUES = JSON.map(value)


@st.composite
def lessons(draw: st.DrawFn) -> Lesson:
    tool, said = draw(NAMES), error(draw(st.text(max_size=300)))
    argument, before, after = draw(NAMES), draw(VALUES), draw(VALUES)
    first = tuple(draw(st.lists(NAMES, min_size=1, max_size=3)))
    given_ = draw(VALUES | st.just("")) if len(first) == 1 else ""
    return draw(
        st.sampled_from(
            [
                Lesson(tool, said, "change", argument, before, after),
                Lesson(tool, said, "change", "", before, after),
                Lesson(tool, said, "add", argument, "", after),
                Lesson(tool, said, "leave out", argument, before),
                Lesson(tool, said, "pass", argument, before, after, first, given_, draw(NAMES)),
                Lesson(tool, said, "pass", argument, "", after, first, given_, ""),
                Lesson(tool, said, "call first", first=first, given=given_),
                Lesson(tool, said, "again"),
                Lesson(tool, said, "stop"),
            ]
        )
    )


@given(lessons())
def test_a_lesson_is_one_bounded_line_that_reads_back(lesson: Lesson) -> None:
    line = str(lesson)
    assert is_printable(line)
    assert len(line) <= ERROR + 5 * NAME + 3 * VALUE + 250
    assert parse(line) == lesson


@given(st.text())
def test_any_line_can_be_read(line: str) -> None:
    found = parse(line)
    assert found is None or parse(str(found)) == found


@pytest.mark.parametrize(
    "line",
    [
        "Use cents.",
        '`t` fails with "e": do something',
        '`t` fails with "e": change `a`, e.g. 1',
        '`t` fails with "e": add `a`, e.g. 1 -> 2',
        '`t` fails with "e": add `a`, e.g. 1 and more',
        '`t` fails with "e": call `b` first and then rest',
    ],
)
def test_what_is_no_lesson_reads_as_none(line: str) -> None:
    assert parse(line) is None


def test_wording_is_what_the_grammar_says() -> None:
    assert (
        str(Lesson("t", "e", "pass", "a", '"x"', '"y"', ("u",), '{"k": 1}', "id"))
        == '`t` fails with "e": call `u` with {"k": 1} first and pass its `id` as `a`, e.g. "x" -> "y"'
    )


@given(JSON)
def test_values_are_bounded_and_short_ones_are_readable(item: object) -> None:
    text = value(item)
    assert len(text) <= VALUE
    if not text.endswith(("…", '…"')):
        assert isinstance(readable(text), type(item))


def test_a_cut_value_is_not_readable() -> None:
    for item in ("x" * 200, list(range(200)), {"a": "y" * 200}):
        with pytest.raises(ValueError, match="cut"):
            readable(value(item))
