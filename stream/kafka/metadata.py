"""What every commit of ours carries in its metadata: which records are done beyond the committed offset. Pure.

    tracecomb/1 6 B gQAF… 4fJx…
    magic/version, N, how the payload is coded, payload, checksum

Another program's commit, a hand-made one, a copied one or a damaged one would skip records without a word if it were
believed (parallel-consumer 480), so what is not exactly what we write raises; nothing is done on its word.

PositionRefused
 ├─ Absent        an offset was committed without metadata
 ├─ Foreign       the metadata is another program's
 ├─ TooNew        a newer tracecomb wrote it
 ├─ Damaged       it fails its checksum: cut, edited, or written for another group, topic, partition or offset
 ├─ OtherCount    the topic had another number of partitions then
 └─ PastTheEnd    it names an offset that the partition does not have
"""

from __future__ import annotations

import re
from base64 import b64decode, b64encode
from hashlib import blake2b

from msgspec import Struct

from stream.kafka.ledger import SPAN, Position

LIMIT = 4096
"""Kafka's ``offset.metadata.max.bytes``; one byte more fails the transaction and kills its producer."""

VERSION = 1

_MAGIC = "tracecomb/"
_BITSET, _RANGES = "B", "R"
_CHECKSUM = 16
_WIDEST = 21  # bits of a number in ranges, in steps of seven: a span has 15
_HEAD = re.compile(r"tracecomb/([0-9]{1,9})(?= |\Z)")
_WHOLE = re.compile(r"tracecomb/1 ([1-9][0-9]{0,9}) ([BR]) ([A-Za-z0-9+/]*={0,2}) ([A-Za-z0-9+/]{22}==)", re.ASCII)


class Place(Struct, frozen=True):
    """Where a commit stands: what its checksum covers besides the position."""

    cluster: str
    group: str
    topic: str
    partition: int


class PositionRefused(Exception):
    """A committed position that nothing may be done on; the partition stops until someone has looked.

    :param place: the group and partition it was committed for.
    :param offset: the committed offset.
    """

    def __init__(self, place: Place, offset: int, what: str, way_out: str) -> None:
        super().__init__(
            f"group {place.group} has offset {offset} of {place.topic}/{place.partition}: {what}; {way_out}"
        )
        self.place = place
        self.offset = offset


class Absent(PositionRefused):
    """The offset was committed without metadata, as a reset by hand does."""


class Foreign(PositionRefused):
    """The metadata was written by another program."""


class TooNew(PositionRefused):
    """The metadata has a version that this tracecomb does not know."""


class Damaged(PositionRefused):
    """The metadata is not what was written for this offset of this partition."""


class OtherCount(PositionRefused):
    """The topic had another number of partitions when the position was committed; ``was`` is that number."""

    def __init__(self, place: Place, offset: int, was: int, count: int) -> None:
        super().__init__(
            place,
            offset,
            f"it was committed when the topics had {was} partitions, now {count}, so prompts have other homes",
            f"make the topics again with {was} partitions, or learn into a new group and new topics with {count}",
        )
        self.was = was


class PastTheEnd(PositionRefused):
    """The position names an offset past the partition's end; ``end`` is the first that no record has."""

    def __init__(self, place: Place, position: Position, end: int) -> None:
        super().__init__(
            place,
            position.offset,
            f"it counts records up to {position.end} as read, but the partition ends at {end}",
            f"the topic was deleted and made again, or lost records: see what {place.topic} holds, "
            "then learn from it with a new group and new topics",
        )
        self.end = end


def encode(position: Position, count: int, place: Place) -> str:
    """The metadata to commit ``position.offset`` with; always within :data:`LIMIT`, because the span is bounded.

    :param count: N, the number of partitions of the topics.
    :raises ValueError: when more is done beyond the offset than a ledger's span allows.
    """
    if position.beyond.bit_length() > SPAN:
        raise ValueError(f"{position.end - position.offset} offsets past {position.offset} exceed the span of {SPAN}")
    beyond = position.beyond
    coding, payload = _BITSET, beyond.to_bytes((beyond.bit_length() + 7) // 8, "little")
    if 2 * (beyond & ~(beyond << 1)).bit_count() < len(payload):  # a range takes two bytes at least
        ranges = _ranges(position)
        if len(ranges) < len(payload):
            coding, payload = _RANGES, ranges
    body = f"{_MAGIC}{VERSION} {count} {coding} {b64encode(payload).decode()}"
    return f"{body} {_checksum(body, position.offset, place)}"


def decode(text: str | None, offset: int, count: int, end: int, place: Place) -> Position:
    """The position that was committed as ``offset`` with ``text``.

    :param count: N, the number of partitions the topics have now.
    :param end: the partition's high watermark.
    :raises PositionRefused: when it is not exactly what :func:`encode` gave for this place and N, or is past the end.
    """
    if not text:
        raise Absent(
            place, offset, "it was committed without tracecomb's metadata, by hand or by another program", _go_on(place)
        )
    head = _HEAD.match(text)
    if head is None:
        raise Foreign(place, offset, f"its metadata is not tracecomb's: {_shown(text)}", _go_on(place))
    if int(head[1]) > VERSION:
        raise TooNew(
            place, offset, f"a newer tracecomb wrote its metadata (version {int(head[1])})", "use that one here too"
        )
    found = _WHOLE.fullmatch(text)
    body, _, checksum = text.rpartition(" ")
    if found is None or len(text) > LIMIT or checksum != _checksum(body, offset, place):
        what = "its metadata is damaged, or was written for another offset, partition, group or cluster"
        raise Damaged(place, offset, what, _go_on(place))
    if int(found[1]) != count:
        raise OtherCount(place, offset, int(found[1]), count)
    try:
        position = Position(offset, _beyond(found[2], b64decode(found[3])))
    except ValueError:
        raise Damaged(place, offset, f"its metadata counts more than {SPAN} offsets", _go_on(place)) from None
    if position.end > end:
        raise PastTheEnd(place, position, end)
    return position


def _ranges(position: Position) -> bytes:
    """Each range as two numbers: how many offsets lie before it since the last one, and how many are in it, less 1."""
    out = bytearray()
    at = position.offset
    for first, last in position.ranges():
        for number in (first - at, last - first):
            while number > 0x7F:
                out.append(number & 0x7F | 0x80)
                number >>= 7
            out.append(number)
        at = last + 1
    return bytes(out)


def _beyond(coding: str, payload: bytes) -> int:
    """What a payload counts as done.

    :raises ValueError: when that is more than a span, before it costs as much memory as it says.
    """
    if coding == _BITSET:
        beyond = int.from_bytes(payload, "little")
        if beyond.bit_length() > SPAN:
            raise ValueError
        return beyond
    beyond = at = number = shift = 0
    gap: int | None = None
    for byte in payload:
        number |= (byte & 0x7F) << shift
        shift += 7
        if shift > _WIDEST or at + (gap or 0) + number > SPAN:
            raise ValueError
        if byte & 0x80:
            continue
        if gap is None:
            gap = number
        else:
            beyond |= ((1 << (number + 1)) - 1) << (at + gap)
            at += gap + number + 1
            gap = None
        number = shift = 0
    if at > SPAN:
        raise ValueError
    return beyond


def _checksum(body: str, offset: int, place: Place) -> str:
    parts = (place.cluster, place.group, place.topic, str(place.partition), str(offset), body)
    digest = blake2b(digest_size=_CHECKSUM)
    for part in parts:
        raw = part.encode("utf-8", "surrogatepass")
        digest.update(len(raw).to_bytes(8, "big") + raw)
    return b64encode(digest.digest()).decode()


def _go_on(place: Place) -> str:
    return (
        "stop the workers, find out who commits to this group, then delete that offset (kafka-consumer-groups.sh "
        f"--delete-offsets --group {place.group} --topic {place.topic}:{place.partition}): "
        "the service then goes on from the position kept in its state topic"
    )


def _shown(text: str) -> str:
    return ascii(text[:60]) + ("…" if len(text) > 60 else "")
