from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream.blocks import BrokenStream
from stream.documents import documents, layout
from stream.frames import Cut, End, Lines, Value, lines

texts = st.text(st.sampled_from('ab"\\[]{},:\n\té\u2028 '), max_size=6)
values = st.recursive(
    st.none() | st.integers(-9, 9) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)
nested = values.filter(lambda value: isinstance(value, dict | list))
indents = st.sampled_from([None, 0, 1, 4])


def cut(data: bytes, sizes: Iterable[int]) -> Iterator[bytes]:
    for size in sizes:
        if data[:size]:
            yield data[:size]
        data = data[size:]
    if data:
        yield data


sizes = st.lists(st.integers(1, 5), max_size=60)


@given(st.lists(nested), indents, sizes)
def test_documents_one_after_another(rows: list[Any], indent: int | None, blocks: list[int]) -> None:
    data = "\n".join(json.dumps(row, indent=indent) for row in rows).encode()
    frames = documents(cut(data, blocks))
    found = [json.loads(frame.raw) for frame in frames if isinstance(frame, Value) and not frame.element]
    assert found == [row for row in rows if isinstance(row, dict)]


@given(st.lists(nested, min_size=1), indents, sizes)
def test_an_array_gives_its_elements_and_their_lines(rows: list[Any], indent: int | None, blocks: list[int]) -> None:
    data = json.dumps(rows, indent=indent).encode()
    *frames, end = documents(cut(data, blocks))
    assert [json.loads(frame.raw) for frame in frames if isinstance(frame, Value) and frame.element] == rows
    assert end == End(data.count(b"\n") + 1)
    split = data.split(b"\n")
    for frame in frames:
        assert isinstance(frame, Value)
        assert split[frame.line - 1].find(frame.raw.split(b"\n")[0]) >= 0


@given(st.binary(max_size=40) | texts.map(str.encode), sizes)
def test_blocks_make_no_difference(data: bytes, blocks: list[int]) -> None:
    assert list(documents(cut(data, blocks))) == list(documents([data] if data else []))
    split = [(line, raw) for batch in lines(cut(data, blocks)) for line, raw in numbered(batch)]
    whole = data.split(b"\n")
    assert split == list(enumerate(whole if whole[-1] else whole[:-1], 1))


def numbered(batch: Lines | Cut) -> list[tuple[int, bytes]]:
    assert isinstance(batch, Lines)
    return list(enumerate(batch.raws, batch.first))


def test_brackets_and_quotes_in_strings_count_for_nothing() -> None:
    data = b'[{"a": "]}\\"\\\\"}, {"b": "\\\\\\"["}]'
    for size in range(1, len(data)):
        frames = list(documents(cut(data, [size])))
        assert frames == [Value(1, b'{"a": "]}\\"\\\\"}', True), Value(1, b'{"b": "\\\\\\"["}', True), End(1)]


def test_what_stands_between_values_is_cut_out() -> None:
    assert list(documents([b'x {"a": 1}\n1, [\n2, "three" [4],\n]5'])) == [
        Cut(1, b"x", "neither an object nor an array"),
        Value(1, b'{"a": 1}'),
        Cut(2, b"1", "neither an object nor an array"),
        Cut(3, b'2, "three"', "neither an object nor an array"),
        Value(3, b"[4]", True),
        End(4),
        Cut(4, b"5", "neither an object nor an array"),
    ]


@pytest.mark.parametrize(
    ("data", "cuts"),
    [
        (b'{"a": [1', [Cut(1, b'{"a": [1', "the file ends inside a value")]),
        (b'[\n{"a": "x', [Cut(2, b'{"a": "x', "the file ends inside a value")]),
        (b"[\n{},", [Cut(2, b"", "the file ends inside a value")]),
        (b"[\n{}\n]\n", []),
    ],
)
def test_the_end_inside_a_value(data: bytes, cuts: list[Cut]) -> None:
    assert [frame for frame in documents([data]) if isinstance(frame, Cut)] == cuts


def breaking(*blocks: bytes) -> Iterator[bytes]:
    yield from blocks
    raise BrokenStream("it breaks")


def test_a_stream_that_breaks_off() -> None:
    assert list(lines(breaking(b"1\n2\n[3"))) == [Lines(1, [b"1", b"2"]), Cut(3, b"[3", "it breaks")]
    assert list(lines(breaking(b"1\n[3]"))) == [Lines(1, [b"1"]), Lines(2, [b"[3]"]), Cut(3, b"", "it breaks")]
    assert list(lines(breaking(b"1\n"))) == [Lines(1, [b"1"]), Cut(2, b"", "it breaks")]
    assert list(documents(breaking(b'{"a":'))) == [Cut(1, b'{"a":', "it breaks")]
    assert list(documents(breaking(b"{}\n"))) == [Value(1, b"{}"), Cut(2, b"", "it breaks")]


def test_what_is_too_long_is_cut_and_the_rest_goes_on() -> None:
    long = b'{"a": "' + b"x" * 200 + b'"}'
    (first, cut_line, last) = list(lines(cut(b"1\n" + long + b"\n2", [9, 50, 50]), limit=100))
    assert (first, last) == (Lines(1, [b"1"]), Lines(3, [b"2"]))
    assert isinstance(cut_line, Cut)
    assert (cut_line.line, cut_line.head[:9]) == (2, long[:9])
    assert cut_line.reason.startswith(f"{len(long)} bytes long, more than 100; blake2b-128 ")
    (again, after) = list(documents([long + b"\n{}"], limit=100))
    assert again == Cut(1, long, cut_line.reason)
    assert after == Value(2, b"{}")


@pytest.mark.parametrize(
    ("head", "kind"),
    [
        (b"", "lines"),
        (b"# Title\n{\n", "lines"),
        (b'{"a": 1}\n{"a": 2}\n', "lines"),
        (b'{"a": 1}', "lines"),
        (b"\xef\xbb\xbf\r\n {\r\n", "documents"),
        (b'{\n  "a": 1\n}', "documents"),
        (b'{"a": 1,\n "b": 2}', "documents"),
        (b'{"a":\n1}', "documents"),
        (b'{"a": [\n{"b": 1}]}', "documents"),
        (b'[\n{"a": 1},\n', "documents"),
        (b'[{"a": 1},\n{"a": 2}]', "documents"),
        (b'[{"a": 1}\n,{"a": 2}]', "documents"),
        (b'[{"a": 1}]\n[{"a": 2}]', "lines"),
        (b'[{"a": 1}]', "lines"),
        (b"{}\n", "lines"),
        # First lines that were cut off, in files of JSON lines.
        (b'{"a": "cut\n{"a": 1}\n', "lines"),
        (b'{"a": 1,\n{"a": 1}\n', "lines"),
        (b'{"a": [1\n{"a": 1}\n', "lines"),
        (b'[{"a": "cu\n[{"a": 1}]\n', "lines"),
        (b'{"a": 1}}\n{"a": 1}\n', "lines"),
        (b'{"a" 1}\n{"a": 1}\n', "lines"),
        (b'{"a": cut', "lines"),
    ],
)
def test_lines_or_documents(head: bytes, kind: str) -> None:
    assert layout(head, True) == kind
    for size in range(len(head)):
        assert layout(head[:size], False) in (None, kind)


def test_a_first_line_longer_than_is_looked_at() -> None:
    more = b'"' + b"x" * (1 << 20)
    assert layout(b"[" + more, True) == "documents"
    assert layout(b"{" + more, True) == "lines"
