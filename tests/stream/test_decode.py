from __future__ import annotations

import contextlib
import json
import math
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream.decode import MAX_DEPTH, BadJson, decode, too_deep

scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters())
values = st.recursive(scalars, lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters()), inner))


@given(st.binary())
def test_any_bytes_are_a_value_that_can_be_written_or_a_reason(raw: bytes) -> None:
    with contextlib.suppress(BadJson):
        msgspec.json.encode(decode(raw).value)


@given(values)
def test_what_python_writes_is_read(value: Any) -> None:
    """Python's json writes NaN, infinities and lone surrogates, as JavaScript agents do."""
    decoded = decode(json.dumps(value).encode())
    written = msgspec.json.encode(decoded.value)
    if not decoded.repaired:
        assert decoded.value == value
    assert msgspec.json.decode(written) == decoded.value


@given(values.filter(lambda value: _is_strict(value)))
def test_valid_json_is_not_marked(value: Any) -> None:
    assert decode(msgspec.json.encode(value)) == (value, ())


def _is_strict(value: Any) -> bool:
    try:
        return bool(msgspec.json.decode(msgspec.json.encode(value)) == value)
    except UnicodeEncodeError:
        return False


@pytest.mark.parametrize(
    ("raw", "value", "mark"),
    [
        (b'\xef\xbb\xbf{"a": 1}', {"a": 1}, "byte order mark"),
        (b'{"a": "\\ud83d!"}', {"a": "\ufffd!"}, "lone surrogate"),
        (b'{"\\ude00": 1}', {"\ufffd": 1}, "lone surrogate"),
        (b'{"a": NaN}', {"a": None}, "NaN"),
        (b"[-Infinity, Infinity]", [None, None], "infinity"),
        (b"[1e999]", [None], "infinity"),
        (b'"a\nb\x01"', "a\nb\x01", "control character"),
        (b'"\xff\xed\xa0\xbd"', "\ufffd\ufffd\ufffd\ufffd", "invalid UTF-8"),
        (b'{"a": ' + b"9" * 5_000 + b"}", {"a": "9" * 5_000}, "huge integer"),
    ],
)
def test_damage_is_repaired_and_marked(raw: bytes, value: Any, mark: str) -> None:
    assert decode(raw) == (value, (mark,))


def test_surrogate_pairs_are_no_damage() -> None:
    assert decode(b'["\\ud83d\\ude00", NaN]') == (["\U0001f600", None], ("NaN",))


@pytest.mark.parametrize(
    "raw", [b'"a\xe2\x80\xa8b"', b'{"a": 1}\r', b"18446744073709551616", b'{"a": 1, "a": 2}', b"\t[]"]
)
def test_unusual_but_valid(raw: bytes) -> None:
    assert decode(raw) == (json.loads(raw), ())


@pytest.mark.parametrize("raw", [b"", b"nothing", b'{"a": "cut', b'{"a": 1} {"b": 2}', b"{'a': 1}", b"\0\0", b"[1,]"])
def test_no_json(raw: bytes) -> None:
    with pytest.raises(BadJson, match="invalid JSON at character"):
        decode(raw)


@pytest.mark.parametrize("depth", [MAX_DEPTH + 1, 900, 100_000])
@pytest.mark.parametrize("ends", [(b"[", b"]"), (b'{"a":', b"}"), (b'[NaN, {"a":', b"}]")])
def test_nesting_bombs(depth: int, ends: tuple[bytes, bytes]) -> None:
    opening, closing = ends
    with pytest.raises(BadJson, match="nested deeper"):
        decode(opening * depth + b"1" + closing * depth)
    with pytest.raises(BadJson):
        decode(opening * depth)


def test_the_deepest_nesting_that_is_read() -> None:
    raw = b"[" * MAX_DEPTH + b"]" * MAX_DEPTH
    assert not too_deep(decode(raw).value)
    assert too_deep([decode(raw).value])


@given(st.floats())
def test_floats(number: float) -> None:
    assert decode(json.dumps(number).encode()).value == (number if math.isfinite(number) else None)
