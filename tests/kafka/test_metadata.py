"""Commit metadata: what we wrote comes back, it always fits, and nothing else is ever believed."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from msgspec.structs import replace

from stream.kafka.ledger import SPAN, Position
from stream.kafka.metadata import (
    LIMIT,
    Absent,
    Damaged,
    Foreign,
    OtherCount,
    PastTheEnd,
    Place,
    PositionRefused,
    TooNew,
    _checksum,
    decode,
    encode,
)

PLACE = Place("5L6g3nShT-eMCtK--X86sw", "tracecomb", "agent-traces", 3)
END = 1 << 63
ALTERNATING = (4**SPAN // 3) & ((1 << SPAN) - 1)

dense = st.integers(0, (1 << SPAN) - 1)
sparse = st.lists(st.integers(0, SPAN - 1), max_size=60).map(lambda bits: sum({1 << bit for bit in bits}))
blocks = st.lists(st.tuples(st.integers(0, SPAN - 300), st.integers(1, 300)), max_size=30).map(
    lambda ranges: sum({1 << bit for start, length in ranges for bit in range(start, start + length)})
)
positions = st.builds(Position, st.integers(0, (1 << 62) - 1), sparse | dense | blocks)
counts = st.integers(1, 1_000_000_000)
places = st.builds(Place, st.text(), st.text(), st.text(), st.integers(0, 1 << 31))


@given(positions, counts, places)
@example(Position(0), 1, PLACE)
@example(Position((1 << 62) - 1, (1 << SPAN) - 1), 1_000_000_000, PLACE)
@example(Position((1 << 62) - 1, ALTERNATING), 1_000_000_000, PLACE)
@example(Position((1 << 62) - 1, ALTERNATING << 1 & ((1 << SPAN) - 1)), 1_000_000_000, PLACE)
@example(Position(5, 1 << (SPAN - 1)), 6, PLACE)
@example(Position(5, sum(3 << bit for bit in range(0, SPAN - 3, 3))), 6, PLACE)
def test_what_was_committed_comes_back_and_fits(position: Position, count: int, place: Place) -> None:
    text = encode(position, count, place)
    assert len(text.encode()) == len(text) <= LIMIT
    assert decode(text, position.offset, count, END, place) == position


def test_the_shorter_coding_is_taken() -> None:
    assert len(encode(Position(5, 1 << (SPAN - 1)), 6, PLACE)) < 60
    assert len(encode(Position(5, (1 << SPAN) - 1 - 1), 6, PLACE)) < 60
    assert len(encode(Position(5, ALTERNATING), 6, PLACE)) > 3300
    # A thousand ranges in 2,000 bits, and then two far away: 2,002 bytes of ranges, 2,001 of bits.
    crowded = sum(1 << bit for bit in range(0, 1996, 2)) | 1 << 9_000 | 1 << 16_001
    assert encode(Position(5, crowded), 6, PLACE).split(" ")[2] == "B"


def test_a_span_too_large_is_never_written() -> None:
    with pytest.raises(ValueError, match="20001 offsets past 5 exceed the span of 20000"):
        encode(Position(5, 1 << SPAN), 6, PLACE)


# Every other string


@given(
    st.text()
    | st.from_regex(r"tracecomb/1 [0-9]{1,3} [BR] [A-Za-z0-9+/]{0,40}={0,2} [A-Za-z0-9+/]{22}==", fullmatch=True)
)
@example("")
@example("tracecomb/")
@example("tracecomb/1")
@example("tracecomb/1 6 B  AAAAAAAAAAAAAAAAAAAAAA==")
@example("tracecomb/99999999999999999999 6 B")
@example("\ud800")
def test_no_string_claims_that_a_record_is_done(text: str) -> None:
    with pytest.raises(PositionRefused):
        decode(text, 100, 6, END, PLACE)


@given(positions, st.data())
def test_no_change_of_a_true_string_is_believed(position: Position, data: st.DataObject) -> None:
    text = encode(position, 6, PLACE)
    at = data.draw(st.integers(0, len(text)))
    cut = data.draw(st.integers(0, 3))
    changed = text[:at] + data.draw(st.text("ABab01+/= RB", max_size=3)) + text[at + cut :]
    assume(changed != text)
    with pytest.raises(PositionRefused):
        decode(changed, position.offset, 6, END, PLACE)


@given(positions, places, st.integers(0, 1 << 62))
def test_a_true_string_elsewhere_is_not_believed(position: Position, place: Place, offset: int) -> None:
    text = encode(position, 6, PLACE)
    assume(place != PLACE and offset != position.offset)
    with pytest.raises(Damaged):
        decode(text, offset, 6, END, PLACE)
    with pytest.raises(Damaged):
        decode(text, position.offset, 6, END, place)


@pytest.mark.parametrize("changed", [{"cluster": "x"}, {"group": "x"}, {"topic": "x"}, {"partition": 4}])
def test_each_part_of_the_place_counts(changed: dict[str, Any]) -> None:
    with pytest.raises(Damaged):
        decode(encode(Position(5), 6, PLACE), 5, 6, END, replace(PLACE, **changed))


def test_names_that_run_together_are_told_apart() -> None:
    text = encode(Position(5), 6, Place("c", "ab", "c", 1))
    with pytest.raises(Damaged):
        decode(text, 5, 6, END, Place("c", "a", "bc", 1))


# What an operator reads


@pytest.mark.parametrize("text", [None, ""])
def test_absent(text: str | None) -> None:
    with pytest.raises(Absent) as raised:
        decode(text, 100, 6, END, PLACE)
    assert str(raised.value) == (
        "group tracecomb has offset 100 of agent-traces/3: it was committed without tracecomb's metadata, by hand or "
        "by another program; stop the workers, find out who commits to this group, then delete that offset "
        "(kafka-consumer-groups.sh --delete-offsets --group tracecomb --topic agent-traces:3): the service then goes "
        "on from the position kept in its state topic"
    )


def test_foreign_shows_whose_it_might_be() -> None:
    with pytest.raises(Foreign, match=r"not tracecomb's: 'kafka-connect\\x00x+'…; stop the workers"):
        decode("kafka-connect\0" + "x" * 5000, 100, 6, END, PLACE)


def test_too_new() -> None:
    text = encode(Position(100), 6, PLACE).replace("/1 ", "/2 ")
    with pytest.raises(TooNew, match=r"\(version 2\); use that one here too"):
        decode(text, 100, 6, END, PLACE)


def test_another_number_of_partitions() -> None:
    with pytest.raises(OtherCount, match="had 6 partitions, now 12,") as raised:
        decode(encode(Position(100), 6, PLACE), 100, 12, END, PLACE)
    assert raised.value.was == 6


@pytest.mark.parametrize("position", [Position(100), Position(90, 1 << 9)])
def test_past_the_end(position: Position) -> None:
    text = encode(position, 6, PLACE)
    assert decode(text, position.offset, 6, 100, PLACE) == position
    with pytest.raises(PastTheEnd, match="up to 100 as read, but the partition ends at 99"):
        decode(text, position.offset, 6, 99, PLACE)


@pytest.mark.parametrize(
    ("coding", "payload"),
    [
        ("B", bytes(SPAN // 8) + b"\x01"),
        ("R", b"\x01" + b"\xff\xff\x7f"),  # one range of two million
        ("R", b"\xff\xff\x7f" + b"\x01"),  # one that begins there
        ("R", b"\x01" + b"\xff" * 2_000 + b"\x01"),  # a number of 14,000 bits, which no memory holds as a set
        ("R", b"\x01\x64" * 200),
    ],
)
def test_a_set_that_no_ledger_takes_is_refused_though_its_checksum_is_right(coding: str, payload: bytes) -> None:
    """Report 13: a span past a codec's own limit throws in the poll loop (parallel-consumer 35)."""
    body = f"tracecomb/1 6 {coding} {b64encode(payload).decode()}"
    with pytest.raises(Damaged, match="more than 20000 offsets"):
        decode(f"{body} {_checksum(body, 5, PLACE)}", 5, 6, 1 << 40, PLACE)
