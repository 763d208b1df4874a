"""What a take-over makes of what it has read."""

from __future__ import annotations

from typing import Any

import pytest
from aiokafka.structs import OffsetAndMetadata
from msgspec.structs import replace

from operators.values import Learned, Update
from operators.wire import encode
from stream.kafka import metadata
from stream.kafka.checks import Contradiction, Found, Ours, judged
from stream.kafka.errors import OtherLineage, OtherPartitions, PartitionHalted, PositionLost
from stream.kafka.ledger import Position
from stream.kafka.messages import Committed, PartitionRecord
from stream.kafka.tables import Topics

OURS = Ours(cluster="c", group="g", topics=Topics(), partition=2, count=3, lineage="abc")
NONE = OffsetAndMetadata(-1, "")


def committed(position: Position, ours: Ours = OURS) -> OffsetAndMetadata:
    return OffsetAndMetadata(position.offset, metadata.encode(position, ours.count, ours.place(ours.traces)))


def controls(offset: int, ours: Ours = OURS) -> OffsetAndMetadata:
    return OffsetAndMetadata(offset, metadata.encode(Position(offset), ours.count, ours.place(ours.controls)))


def update(first: int, last: int, lineage: str = "abc", source: str = "agent-traces/2") -> bytes:
    learned = Learned(last + 1 - first, {source: [(first, last)]})
    return encode(Update("p", 7, 6, "window", True, "", (), lineage=lineage, learned=learned))


def record(traces: OffsetAndMetadata, asked: OffsetAndMetadata, **fields: Any) -> bytes:
    pairs = Committed(traces.offset, traces.metadata), Committed(asked.offset, asked.metadata)
    known = {"traces": pairs[0], "controls": pairs[1], "partitions": 3, "lineage": "abc"}
    return encode(PartitionRecord(**{**known, **fields}))


def found(**fields: Any) -> Found:
    position = Position(100, 0b1010)
    known = {
        "committed_traces": committed(position),
        "committed_controls": controls(4),
        "begin": 0,
        "end": 1_000,
        "controls_begin": 0,
        "controls_end": 9,
        "updates": {b"p": update(40, 49)},
        "states": {b"p": b"undecoded"},
        "record": record(committed(position), controls(4)),
    }
    return Found(**{**known, **fields})


def test_it_fits_together() -> None:
    taken = judged(OURS, found())
    assert taken.position == Position(100, 0b1010)
    assert (taken.controls, taken.first, taken.lost) == (4, False, ())
    assert taken.versions == {b"p": 7}


def test_nothing_at_all_is_a_first_start() -> None:
    nothing = found(committed_traces=NONE, committed_controls=NONE, updates={}, states={}, record=None, begin=17)
    taken = judged(OURS, nothing)
    assert (taken.position, taken.first) == (Position(17), True)
    assert judged(replace(OURS, latest=True), nothing).position == Position(1_000)


def test_versions_that_nobody_knows_the_traces_of_stop_the_service() -> None:
    with pytest.raises(PositionLost, match="versions of 1 prompts"):
        judged(OURS, found(committed_traces=NONE, record=None))


def test_where_kafka_forgot_the_offsets_the_kept_ones_count() -> None:
    taken = judged(OURS, found(committed_traces=NONE, committed_controls=NONE))
    assert (taken.position, taken.controls, taken.first) == (Position(100, 0b1010), 4, False)


def test_forgotten_controls_alone() -> None:
    assert judged(OURS, found(committed_controls=NONE)).controls == 4


@pytest.mark.parametrize("span", [(95, 100), (100, 101), (102, 102), (500, 501)])
def test_an_update_beyond_the_position_is_a_contradiction(span: tuple[int, int]) -> None:
    with pytest.raises(Contradiction, match="does not count as done"):
        judged(OURS, found(updates={b"p": update(*span)}))


@pytest.mark.parametrize("span", [(95, 99), (101, 101), (103, 103)])
def test_an_update_that_is_done(span: tuple[int, int]) -> None:
    assert judged(OURS, found(updates={b"p": update(*span)})).versions


def test_an_update_without_a_state_is_a_contradiction() -> None:
    with pytest.raises(Contradiction, match="no state of it"):
        judged(OURS, found(states={}))


def test_a_group_that_was_set_by_a_copy_of_ours_is_a_contradiction() -> None:
    with pytest.raises(Contradiction, match="both are written in one transaction"):
        judged(OURS, found(committed_traces=committed(Position(90))))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "without tracecomb's metadata"),
        ("other program", "not tracecomb's"),
        (committed(Position(100, 0b1110)).metadata[:-3] + "AA=", "damaged"),
        (metadata.encode(Position(100), 3, OURS.place(OURS.controls)), "written for another"),
        (committed(Position(100, 1 << 1_500)).metadata, "the partition ends at 1000"),
    ],
)
def test_a_position_that_is_not_ours_halts_the_partition(text: str, why: str) -> None:
    with pytest.raises(PartitionHalted, match=why):
        judged(OURS, found(committed_traces=OffsetAndMetadata(100, text)))


def test_another_number_of_partitions_stops_the_service() -> None:
    other = replace(OURS, count=4)
    with pytest.raises(OtherPartitions, match="had 3 partitions, now"):
        judged(other, found())
    with pytest.raises(OtherPartitions, match="had 3 partitions, now"):
        judged(other, found(record=None))


def test_anothers_lineage_stops_the_service() -> None:
    with pytest.raises(OtherLineage, match="has lineage xyz, ours is abc"):
        judged(OURS, found(updates={b"p": update(40, 49, lineage="xyz")}))
    with pytest.raises(OtherLineage):
        judged(OURS, found(record=record(committed(Position(100, 0b1010)), controls(4), lineage="xyz")))


@pytest.mark.parametrize("field", ["updates", "record"])
def test_what_cannot_be_read_halts_the_partition(field: str) -> None:
    with pytest.raises(PartitionHalted, match="cannot be read"):
        judged(OURS, found(**{field: {b"p": b"{"} if field == "updates" else b"{"}))


def test_what_expired_is_lost_less_what_was_done() -> None:
    taken = judged(OURS, found(begin=104))
    assert taken.lost == ((100, 100), (102, 102))
    assert taken.position == Position(104)
    taken = judged(OURS, found(begin=102))
    assert taken.lost == ((100, 100),)
    assert taken.position == Position(102, 0b10)
    assert judged(OURS, found(begin=100)).lost == ()
