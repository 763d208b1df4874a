"""What a broker has on its disk, read without any client: every record of a partition, and its transactions' ends.

The layout is KIP-98's record batch. It is read here once more, from the bytes, so that what a reader of ours or of
aiokafka leaves out is seen.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from struct import unpack_from
from typing import NamedTuple

from aiokafka import codec as codecs

from tests.kafka.faults.stored import Stored

_INFLATE = {1: codecs.gzip_decode, 2: codecs.snappy_decode, 3: codecs.lz4_decode, 4: codecs.zstd_decode}
_BEFORE, _HEADER = 12, 61
_LOG_APPEND_TIME, _CONTROL = 8, 32


class Partition(NamedTuple):
    """Everything in one partition.

    :param aborted: how many transactions were aborted, and ``committed`` how many were not.
    """

    records: list[Stored]
    aborted: int
    committed: int


def read_partition(data: Path, topic: str, partition: int) -> Partition:
    """Read a partition from a broker's data directory; the broker must be at rest, or stopped."""
    records: list[Stored] = []
    ends = [0, 0]
    for segment in sorted((data / f"{topic}-{partition}").glob("*.log")):
        raw = memoryview(segment.read_bytes())
        at = 0
        while at + _HEADER <= len(raw):
            (length,) = unpack_from(">i", raw, at + 8)
            if length <= 0 or at + _BEFORE + length > len(raw):
                break
            for record, is_control in _batch(raw[at : at + _BEFORE + length], partition):
                if is_control:
                    ends[unpack_from(">hh", record.key or b"")[1]] += 1
                else:
                    records.append(record)
            at += _BEFORE + length
    return Partition(records, ends[0], ends[1])


def _batch(raw: memoryview, partition: int) -> Iterator[tuple[Stored, bool]]:
    (base,) = unpack_from(">q", raw, 0)
    flags, _, first, newest = unpack_from(">hiqq", raw, 21)
    (count,) = unpack_from(">i", raw, 57)
    body = bytes(raw[_HEADER:])
    if flags & 7:
        body = _INFLATE[flags & 7](body)
    at = 0
    for _ in range(count):
        length, at = _varint(body, at)
        end = at + length
        since, at = _varint(body, at + 1)
        number, at = _varint(body, at)
        key, at = _bytes(body, at)
        value, at = _bytes(body, at)
        many, at = _varint(body, at)
        headers = []
        for _ in range(many):
            name, at = _bytes(body, at)
            content, at = _bytes(body, at)
            headers.append((name or b"", content))
        assert at == end, f"record {base + number} of partition {partition} ends at {at}, not at {end}"
        time = newest if flags & _LOG_APPEND_TIME else first + since
        yield Stored(partition, base + number, key, value, tuple(headers), time), bool(flags & _CONTROL)


def _bytes(body: bytes, at: int) -> tuple[bytes | None, int]:
    length, at = _varint(body, at)
    if length < 0:
        return None, at
    return body[at : at + length], at + length


def _varint(body: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        byte = body[at]
        at += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (number >> 1) ^ -(number & 1), at
        shift += 7
