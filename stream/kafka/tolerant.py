"""Read records that aiokafka's reader cannot deliver: those with a header key that is not UTF-8.

aiokafka decodes header keys strictly, raises in the middle of a fetch and stands at the same offset for ever, and a
seek past it loses the good records of its batch. So a partition that raises is read again here, from its position,
with its undecodable header keys as surrogate escapes. Batches, checksums and aborted transactions are handled by the
fetcher's own code; only the walk over the records of a batch (KIP-98, message format 2) is ours.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from struct import unpack_from
from typing import Any, NamedTuple

import anyio
from aiokafka import ConsumerRecord, TopicPartition
from aiokafka import codec as codecs
from aiokafka.client import AIOKafkaClient
from aiokafka.consumer.fetcher import READ_COMMITTED, PartitionRecords
from aiokafka.errors import (
    CorruptRecordException,
    KafkaError,
    LeaderNotAvailableError,
    UnknownTopicOrPartitionError,
    UnsupportedCodecError,
    for_code,
)
from aiokafka.protocol.fetch import FetchRequest
from aiokafka.record.default_records import DefaultRecordBatch
from aiokafka.record.legacy_records import LegacyRecordBatch

_LENGTH_AT, _OVERHEAD, _MAGIC_AT, _COUNT_AT, _HEADER = 8, 12, 16, 57, 61
_CODECS = {1: codecs.gzip_decode, 2: codecs.snappy_decode, 3: codecs.lz4_decode, 4: codecs.zstd_decode}
_PAUSE = 0.1
_WAIT_MS = 500


class Reread(NamedTuple):
    """What was read: the records, and the offset where reading goes on, past markers and what was aborted."""

    records: list[ConsumerRecord]
    next: int


def decode(
    raw: bytes,
    tp: TopicPartition,
    offset: int,
    *,
    aborted: Iterable[tuple[int, int]] = (),
) -> Reread:
    """The records of a fetch as a read_committed consumer gives them, but with any header key.

    :param raw: record batches as a broker sends them; the last may be cut off.
    :param offset: that was fetched; records before it are left out.
    :param aborted: (producer id, first offset) of the aborted transactions, as the fetch names them.
    :raises ~aiokafka.errors.CorruptRecordException: when a batch fails its checksum or is malformed.
    """
    found = PartitionRecords(tp, _Batches(raw), list(aborted), offset, None, None, True, READ_COMMITTED)
    records = [each for each in found if each.offset >= offset]  # it looks at no offset but that of the batch before
    return Reread(records, max(found.next_fetch_offset, offset))


async def reread(client: AIOKafkaClient, tp: TopicPartition, offset: int, *, max_bytes: int, timeout: float) -> Reread:
    """Read a partition from ``offset``, as far as one fetch goes, read_committed.

    :param client: of its own, for a consumer's long poll would hold this fetch up; it is connected here if it is not.
    :param max_bytes: of the fetch; a first batch that is larger comes whole all the same.
    :param timeout: seconds, over which leaders that move and brokers that restart are waited for.
    :return: no records and ``offset`` itself when nothing lies there yet.
    :raises ~aiokafka.errors.KafkaError: as the broker answered, such as OffsetOutOfRangeError.
    :raises TimeoutError: when no leader answered in time.
    """
    with anyio.fail_after(timeout):
        while True:
            try:
                raw, aborted = await _fetch(client, tp, offset, max_bytes)
                return decode(raw, tp, offset, aborted=aborted)
            except KafkaError as error:
                if not error.retriable:
                    raise
            await anyio.sleep(_PAUSE)


async def _fetch(
    client: AIOKafkaClient, tp: TopicPartition, offset: int, max_bytes: int
) -> tuple[bytes, list[tuple[int, int]]]:
    if not client.cluster.brokers():
        await client.bootstrap()
    client.add_topic(tp.topic)
    await client.force_metadata_update()
    leader = client.cluster.leader_for_partition(tp)
    if leader is None or leader < 0:
        raise LeaderNotAvailableError(tp)
    request = FetchRequest(_WAIT_MS, 1, max_bytes, READ_COMMITTED, [(tp.topic, [(tp.partition, offset, max_bytes)])])
    response = await client.send(leader, request)
    for _, partitions in response.topics:
        for _, code, _, *rest in partitions:
            if code:
                raise for_code(code)(f"{tp.topic}/{tp.partition} at offset {offset}")
            aborted = rest[2] if response.API_VERSION >= 11 else rest[-2]
            return rest[-1] or b"", aborted or []
    raise UnknownTopicOrPartitionError(tp)


class _Batches:
    """The batches of a fetch, in the shape that the fetcher takes them in."""

    def __init__(self, raw: bytes) -> None:
        self._raw = memoryview(raw)
        self._at = 0

    def _end(self) -> int:
        if len(self._raw) - self._at < _OVERHEAD:
            return len(self._raw) + 1
        return self._at + _OVERHEAD + int(unpack_from(">i", self._raw, self._at + _LENGTH_AT)[0])

    def has_next(self) -> bool:
        return self._end() <= len(self._raw)

    def next_batch(self) -> Any:
        end = self._end()
        batch = self._raw[self._at : end]
        if len(batch) <= _MAGIC_AT:
            raise CorruptRecordException(f"a batch of {len(batch)} bytes is none")
        self._at = end
        magic = batch[_MAGIC_AT]
        return _Batch(batch) if magic >= 2 else LegacyRecordBatch(batch, magic)  # older formats have no headers


class _Record(NamedTuple):
    offset: int
    timestamp: int
    timestamp_type: int
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]]
    checksum: None = None


class _Batch:
    """One batch: aiokafka's reading of its header, ours of its records."""

    def __init__(self, raw: memoryview) -> None:
        if len(raw) < _HEADER:
            raise CorruptRecordException(f"a batch of {len(raw)} bytes is shorter than its header")
        self._raw = raw
        self._head = DefaultRecordBatch(raw)
        self.producer_id = self._head.producer_id
        self.base_offset = self._head.base_offset
        self.next_offset = self._head.next_offset
        self.is_control_batch = self._head.is_control_batch
        self.is_transactional = self._head.is_transactional
        self._records = self._read()

    def validate_crc(self) -> bool:
        return bool(self._head.validate_crc())

    def __iter__(self) -> Iterator[_Record]:
        return self._records

    def __next__(self) -> _Record:
        return next(self._records)

    def _read(self) -> Iterator[_Record]:
        count = int(unpack_from(">i", self._raw, _COUNT_AT)[0])
        body = self._body()
        at = 0
        for _ in range(count):
            try:
                record, at = self._record(body, at)
            except (IndexError, ValueError) as error:
                raise CorruptRecordException(f"a record of the batch at {self.base_offset} is malformed") from error
            yield record
        if at != len(body):
            raise CorruptRecordException(
                f"{len(body) - at} bytes follow the records of the batch at {self.base_offset}"
            )

    def _body(self) -> bytes:
        kind = self._head.compression_type
        packed = bytes(self._raw[_HEADER:])
        if not kind:
            return packed
        inflate = _CODECS.get(kind)
        if inflate is None:
            raise UnsupportedCodecError(f"compression {kind} is unknown")
        return bytes(inflate(packed))

    def _record(self, body: bytes, at: int) -> tuple[_Record, int]:
        length, at = _varint(body, at)
        end = at + length
        _, at = _varint(body, at)  # attributes, unused so far
        since, at = _varint(body, at)
        number, at = _varint(body, at)
        key, at = _bytes(body, at)
        value, at = _bytes(body, at)
        count, at = _varint(body, at)
        headers: list[tuple[str, bytes | None]] = []
        for _ in range(count):
            name, at = _bytes(body, at)
            if name is None:
                raise ValueError("a header without a key")
            content, at = _bytes(body, at)
            headers.append((name.decode("utf-8", "surrogateescape"), content))
        if at != end:
            raise ValueError(f"a record of {length} bytes ended after {length + at - end}")
        appended = self._head.timestamp_type == 1
        timestamp = self._head.max_timestamp if appended else self._head.first_timestamp + since
        found = _Record(self.base_offset + number, timestamp, self._head.timestamp_type, key, value, headers)
        return found, at


def _varint(body: bytes, at: int) -> tuple[int, int]:
    """A zigzag varint and where it ends."""
    number = shift = 0
    while True:
        byte = body[at]
        at += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number >> 1 ^ -(number & 1), at
        shift += 7
        if shift > 63:
            raise ValueError("a number of more than 64 bits")


def _bytes(body: bytes, at: int) -> tuple[bytes | None, int]:
    length, at = _varint(body, at)
    if length < 0:
        return None, at
    if at + length > len(body):
        raise ValueError("bytes past the end of the batch")
    return body[at : at + length], at + length
