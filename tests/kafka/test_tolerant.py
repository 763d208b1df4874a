"""The tolerant decoder gives what aiokafka's does, and also what aiokafka's cannot."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from struct import pack

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, ConsumerRecord, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.client import AIOKafkaClient
from aiokafka.consumer.fetcher import READ_COMMITTED, PartitionRecords
from aiokafka.errors import CorruptRecordException, OffsetOutOfRangeError
from aiokafka.record.memory_records import MemoryRecords
from hypothesis import given
from hypothesis import strategies as st

from stream.kafka.tolerant import Reread, decode, reread
from tests.kafka.raw import Raw, batch, produce_raw, record, sealed

TP = TopicPartition("t", 3)
NOT_UTF8 = b"caf\xe9"

some = st.none() | st.binary(max_size=30)
records = st.builds(
    Raw, some, some, st.lists(st.tuples(st.binary(max_size=12), some), max_size=4), st.integers(0, 1 << 48)
)
batches = st.lists(st.lists(records, min_size=1, max_size=6), min_size=1, max_size=5)
codecs = st.integers(0, 4)


def plain(found: ConsumerRecord) -> Raw:
    headers = [(name.encode("utf-8", "surrogateescape"), content) for name, content in found.headers]
    return Raw(found.key, found.value, headers, found.timestamp)


def log_of(groups: Sequence[Sequence[Raw]], codec: int, base: int) -> bytes:
    out = b""
    for group in groups:
        out += batch(group, codec=codec, base=base)
        base += len(group)
    return out


@given(batches, codecs, st.integers(0, 1 << 40), st.data())
def test_all_records_come_out_each_once(groups: list[list[Raw]], codec: int, base: int, data: st.DataObject) -> None:
    flat = [each for group in groups for each in group]
    first = data.draw(st.integers(0, len(flat)))
    found = decode(log_of(groups, codec, base), TP, base + first)
    assert [each.offset for each in found.records] == list(range(base + first, base + len(flat)))
    assert [plain(each) for each in found.records] == [
        each._replace(headers=list(each.headers)) for each in flat[first:]
    ]
    assert found.next == base + len(flat)


utf8 = st.builds(
    Raw, some, some, st.lists(st.tuples(st.text(max_size=8).map(str.encode), some), max_size=4), st.integers(0, 1 << 48)
)


@given(st.lists(st.lists(utf8, min_size=1, max_size=6), min_size=1, max_size=5), codecs, st.data())
def test_aiokafkas_reader_gives_the_same_where_it_can(groups: list[list[Raw]], codec: int, data: st.DataObject) -> None:
    raw = log_of(groups, codec, 10)
    offset = data.draw(st.integers(0, 9 + len(groups[0])))  # a broker sends no batch that is wholly before it
    theirs = PartitionRecords(TP, MemoryRecords(raw), [], offset, None, None, True, READ_COMMITTED)
    expected = list(theirs)
    assert decode(raw, TP, offset) == (expected, theirs.next_fetch_offset)


@given(st.lists(records, min_size=1, max_size=6), codecs, st.data())
def test_a_batch_that_is_cut_off_is_left_for_the_next_fetch(group: list[Raw], codec: int, data: st.DataObject) -> None:
    whole, next = batch(group, codec=codec, base=10), batch(group, codec=codec, base=10 + len(group))
    found = decode(whole + next[: data.draw(st.integers(0, len(next) - 1))], TP, 10)
    assert (len(found.records), found.next) == (len(group), 10 + len(group))


@given(st.lists(records, min_size=1, max_size=6), codecs, st.data())
def test_a_flipped_bit_is_seen(group: list[Raw], codec: int, data: st.DataObject) -> None:
    raw = bytearray(batch(group, codec=codec, base=10))
    at = data.draw(st.integers(21, len(raw) - 1))  # from the attributes on, as far as the checksum covers
    raw[at] ^= 1 << data.draw(st.integers(0, 7))
    with pytest.raises(CorruptRecordException):
        decode(bytes(raw), TP, 10)


@given(st.binary(max_size=120), st.lists(records, min_size=1, max_size=3), codecs)
def test_what_is_no_batch_raises_nothing_else(noise: bytes, group: list[Raw], codec: int) -> None:
    for raw in (noise, batch(group, codec=codec) + noise, batch(group, codec=codec)[: len(noise)] + noise):
        with suppress(CorruptRecordException):
            decode(raw, TP, 0)


@pytest.mark.parametrize(
    ("body", "count"),
    [
        (record(Raw(b"k"), 0, 0) + b"x", 1),
        (record(Raw(b"k"), 0, 0, wrong=1), 1),
        (record(Raw(b"k"), 0, 0, wrong=-1), 1),
        (record(Raw(b"k"), 0, 0), 2),
        (record(Raw(b"k"), 0, 0)[:-1], 1),
        (b"\x00\x00" + b"\xff" * 12, 1),
        (b"\x0c\x00\x00\x00\x01\x01\x02\x01", 1),
    ],
    ids=["more bytes", "too long", "too short", "too few", "cut", "a number without end", "a header without a key"],
)
def test_a_malformed_record_is_seen(body: bytes, count: int) -> None:
    with pytest.raises(CorruptRecordException):
        decode(sealed(body, count), TP, 0)


def test_timestamps_may_be_the_brokers() -> None:
    raw = batch([Raw(timestamp=5), Raw(timestamp=9)], flags=8)
    assert [(each.timestamp, each.timestamp_type) for each in decode(raw, TP, 0).records] == [(9, 1), (9, 1)]


def test_only_what_was_aborted_is_left_out() -> None:
    def sent(producer: int, base: int, *values: bytes) -> bytes:
        return batch([Raw(value=each) for each in values], base=base, producer=producer, flags=16)

    def ended(producer: int, base: int, kind: int) -> bytes:
        return batch([Raw(pack(">HH", 0, kind), b"")], base=base, producer=producer, flags=16 | 32)

    log = (
        sent(7, 0, b"a", b"b") + sent(8, 2, b"c") + ended(7, 3, 0) + sent(7, 4, b"d") + ended(7, 5, 1) + ended(8, 6, 1)
    )
    found = decode(log, TP, 0, aborted=[(7, 0)])
    assert [each.value for each in found.records] == [b"c", b"d"]
    assert found.next == 7


# Against a broker


async def topic(bootstrap: str, name: str) -> None:
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
    await admin.start()
    try:
        await admin.create_topics(
            [NewTopic(name, 2, 1, topic_configs={"message.timestamp.after.max.ms": str(1 << 62)})]
        )
    finally:
        await admin.close()


async def read(bootstrap: str, tp: TopicPartition, offset: int, max_bytes: int = 1 << 20) -> Reread:
    client = AIOKafkaClient(bootstrap_servers=bootstrap)
    try:
        return await reread(client, tp, offset, max_bytes=max_bytes, timeout=20)
    finally:
        await client.close()


def numbered(*numbers: int, headers: Sequence[tuple[bytes, bytes | None]] = ((b"h", b"v"),)) -> list[Raw]:
    return [Raw(b"p", str(number).encode(), headers) for number in numbers]


@pytest.mark.parametrize("codec", range(5))
async def test_a_header_key_that_is_not_utf8_and_its_ten_neighbours_come_out(
    kafka: str, unique: str, codec: int
) -> None:
    await topic(kafka, unique)
    bad = Raw(b"p", b"5", [(NOT_UTF8, b"x")], 4_000_000_000_000)
    await produce_raw(kafka, unique, 1, numbered(0, 1, 2), codec=codec)
    await produce_raw(kafka, unique, 1, [*numbered(3, 4), bad, *numbered(6, 7)], codec=codec)
    await produce_raw(kafka, unique, 1, numbered(8, 9, 10), codec=codec)
    tp = TopicPartition(unique, 1)
    consumer = AIOKafkaConsumer(
        bootstrap_servers=kafka, enable_auto_commit=False, auto_offset_reset="none", isolation_level="read_committed"
    )
    await consumer.start()
    found: list[ConsumerRecord] = []
    try:
        consumer.assign([tp])
        consumer.seek(tp, 0)
        for _ in range(20):
            try:
                found += (await consumer.getmany(tp, timeout_ms=2000)).get(tp, [])
            except UnicodeDecodeError:
                at = await consumer.position(tp)
                assert at == len(found)
                records, next = await read(kafka, tp, at)
                found += records
                consumer.seek(tp, next)
            if len(found) >= 11:
                break
    finally:
        await consumer.stop()
    assert [each.offset for each in found] == list(range(11))
    assert [each.value for each in found] == [str(number).encode() for number in range(11)]
    assert found[5].headers == (("caf\udce9", b"x"),)
    assert found[5].timestamp == 4_000_000_000_000


async def test_a_reread_leaves_out_what_was_aborted_and_goes_past_markers(kafka: str, unique: str) -> None:
    await topic(kafka, unique)
    producer = AIOKafkaProducer(bootstrap_servers=kafka, transactional_id=unique, retry_backoff_ms=5)
    await producer.start()
    try:
        for value, keep in ((b"a", True), (b"b", False), (b"c", True), (b"d", False)):
            await producer.begin_transaction()
            await (await producer.send(unique, value, partition=0))
            await (producer.commit_transaction() if keep else producer.abort_transaction())
    finally:
        await producer.stop()
    tp = TopicPartition(unique, 0)
    at, values = 0, []
    while at < 8:
        records, at = await read(kafka, tp, at)
        values += [each.value for each in records]
    assert values == [b"a", b"c"]
    assert await read(kafka, tp, 8) == ([], 8)
    with pytest.raises(OffsetOutOfRangeError, match="/0 at offset 99"):
        await read(kafka, tp, 99)


async def test_both_null_and_any_bytes_are_written_and_read(kafka: str, unique: str) -> None:
    await topic(kafka, unique)
    sent = [Raw(None, None, [], 1), Raw(b"\xff", b"\xfe", [(b"\xfd", None), (b"", b"")], 2), Raw(b"k", None, [], 3)]
    assert await produce_raw(kafka, unique, 0, sent) == 0
    found = await read(kafka, TopicPartition(unique, 0), 0)
    assert [plain(each) for each in found.records] == sent


async def test_a_batch_larger_than_the_fetch_comes_whole_and_a_small_fetch_gives_some(kafka: str, unique: str) -> None:
    await topic(kafka, unique)
    for _ in range(3):
        await produce_raw(kafka, unique, 0, [Raw(value=b"x" * 5000)] * 4)
    found = await read(kafka, TopicPartition(unique, 0), 1, max_bytes=1000)
    assert [each.offset for each in found.records] == [1, 2, 3]
    assert found.next == 4
