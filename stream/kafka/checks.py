"""Judging what a take-over has read: from where the partition goes on, or why it does not. Pure."""

from __future__ import annotations

import msgspec
from aiokafka.structs import OffsetAndMetadata, TopicPartition
from msgspec import Struct

from operators.explanation import SizesState
from stream.kafka import metadata
from stream.kafka.errors import OtherLineage, OtherPartitions, PartitionHalted, PositionLost
from stream.kafka.ledger import Position
from stream.kafka.messages import Committed, PartitionRecord, UpdateHead, decode_partition_record, decode_update_head
from stream.kafka.tables import Topics


class Contradiction(Exception):
    """Two things that were read do not fit together; reading them again may help."""


class Ours(Struct, frozen=True):
    """A partition, and what is expected of it.

    :param count: N.
    :param latest: begin at the end of a partition that nothing is known about.
    """

    cluster: str
    group: str
    topics: Topics
    partition: int
    count: int
    lineage: str
    latest: bool = False

    @property
    def traces(self) -> TopicPartition:
        return TopicPartition(self.topics.traces, self.partition)

    @property
    def controls(self) -> TopicPartition:
        return TopicPartition(self.topics.controls, self.partition)

    @property
    def updates(self) -> TopicPartition:
        return TopicPartition(self.topics.updates, self.partition)

    @property
    def state(self) -> TopicPartition:
        return TopicPartition(self.topics.state, self.partition)

    @property
    def source(self) -> str:
        """How updates and deltas name the partition that traces come from."""
        return f"{self.topics.traces}/{self.partition}"

    def place(self, tp: TopicPartition) -> metadata.Place:
        """What the checksum of a commit for ``tp`` covers."""
        return metadata.Place(self.cluster, self.group, tp.topic, tp.partition)


class Found(Struct, frozen=True):
    """What was read, by partition and key, the newest of each."""

    committed_traces: OffsetAndMetadata
    committed_controls: OffsetAndMetadata
    begin: int
    end: int
    controls_begin: int
    controls_end: int
    updates: dict[bytes, bytes]
    states: dict[bytes, bytes]
    record: bytes | None


class Taken(Struct, frozen=True):
    """From where a partition goes on.

    :param position: of its traces; ``lost`` are (first, last) of offsets before it that are gone unread.
    :param first: whether nothing was ever committed here.
    :param states: the prompts' states, undecoded, by key: there may be thousands, and few are needed at once.
    :param versions: of the newest update, by key.
    """

    position: Position
    controls: int
    first: bool
    lost: tuple[tuple[int, int], ...]
    states: dict[bytes, bytes]
    versions: dict[bytes, int]
    sizes: SizesState | None


def judged(ours: Ours, found: Found) -> Taken:
    """Judge what was read.

    :raises Contradiction: when it does not fit together.
    :raises ServiceStopped: when it does, and the service may not go on.
    :raises PartitionHalted: when this partition may not.
    """
    record = _record(ours, found.record)
    heads = {key: _head(ours, key, value) for key, value in found.updates.items()}
    position = _position(ours, ours.traces, found.committed_traces, record.traces if record else None, found.end)
    controls = _position(
        ours, ours.controls, found.committed_controls, record.controls if record else None, found.controls_end
    )
    if position is None:
        if heads or found.states:
            known = len(heads.keys() | found.states.keys())
            raise PositionLost(
                f"{ours.updates.topic}/{ours.partition} has versions of {known} prompts, but group {ours.group} has no "
                f"committed offset of {ours.source} and {ours.state.topic} keeps none, so nobody knows which traces "
                "they hold: use the group that made them, or empty topics"
            )
        position = Position(found.end if ours.latest else found.begin)
        return Taken(position, controls.offset if controls else found.controls_begin, True, (), {}, {}, None)
    for key, head in heads.items():
        for first, last in head.learned.offsets.get(ours.source, ()):
            if last >= position.offset and not position.covers(first, last):
                raise Contradiction(
                    f"version {head.version} of {_name(key)} holds the traces {first} to {last} of {ours.source}, "
                    f"which group {ours.group} does not count as done (its offset is {position.offset})"
                )
    missing = next((key for key in heads if key not in found.states), None)
    if missing is not None:
        raise Contradiction(
            f"{_name(missing)} has versions, but {ours.state.topic}/{ours.partition} has no state of it"
        )
    lost = _lost(position, found.begin)
    if found.begin > position.offset:
        position = Position(found.begin, position.beyond >> (found.begin - position.offset))
    return Taken(
        position=position,
        controls=max(controls.offset if controls else 0, found.controls_begin),
        first=False,
        lost=lost,
        states=found.states,
        versions={key: head.version for key, head in heads.items()},
        sizes=record.sizes if record else None,
    )


def _record(ours: Ours, data: bytes | None) -> PartitionRecord | None:
    if data is None:
        return None
    try:
        record = decode_partition_record(data)
    except msgspec.MsgspecError as error:
        raise PartitionHalted(f"the record about {ours.source} in {ours.state.topic} cannot be read: {error}") from None
    if record.partitions != ours.count:
        raise OtherPartitions(
            f"the state of {ours.source} was written when the topics had {record.partitions} partitions, now they have "
            f"{ours.count}, so prompts have other homes: make the topics again with {record.partitions} partitions, or "
            "learn into a new group and new topics"
        )
    if record.lineage != ours.lineage:
        raise OtherLineage(_foreign(ours, f"the state of {ours.source}", record.lineage))
    return record


def _head(ours: Ours, key: bytes, data: bytes) -> UpdateHead:
    try:
        head = decode_update_head(data)
    except msgspec.MsgspecError as error:
        raise PartitionHalted(
            f"the update of {_name(key)} in {ours.updates.topic}/{ours.partition} cannot be read: {error}"
        ) from None
    if head.lineage != ours.lineage:
        raise OtherLineage(_foreign(ours, f"version {head.version} of {_name(key)}", head.lineage))
    return head


def _foreign(ours: Ours, what: str, lineage: str) -> str:
    return (
        f"{what} in {ours.updates.topic} has lineage {lineage or '(none)'}, ours is {ours.lineage}: another group, "
        "topic or cluster made it. Use the group and topics that it was made with, or topics of your own"
    )


def _position(
    ours: Ours, tp: TopicPartition, committed: OffsetAndMetadata, kept: Committed | None, end: int
) -> Position | None:
    """Where the group stands; what is kept in our own topic where Kafka has forgotten it."""
    place = ours.place(tp)
    try:
        if committed.offset < 0:
            return None if kept is None else metadata.decode(kept.metadata, kept.offset, ours.count, end, place)
        position = metadata.decode(committed.metadata, committed.offset, ours.count, end, place)
        if kept is None or (kept.offset, kept.metadata) == (committed.offset, committed.metadata):
            return position
    except metadata.OtherCount as error:
        raise OtherPartitions(str(error)) from None
    except metadata.PositionRefused as error:
        raise PartitionHalted(str(error)) from None
    raise Contradiction(
        f"group {ours.group} has offset {committed.offset} of {tp.topic}/{tp.partition}, but {ours.state.topic} says "
        f"{kept.offset}, and both are written in one transaction: somebody has set the offset, or restored one of them"
    )


def _lost(position: Position, begin: int) -> tuple[tuple[int, int], ...]:
    """What lies between the position and the first offset that is still there, less what is done."""
    lost: list[tuple[int, int]] = []
    at = position.offset
    for first, last in position.ranges():
        if first >= begin:
            break
        if first > at:
            lost.append((at, first - 1))
        at = last + 1
    if at < begin:
        lost.append((at, begin - 1))
    return tuple(lost)


def _name(key: bytes) -> str:
    return repr(key.decode("utf-8", "replace"))
