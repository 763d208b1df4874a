"""Records that no client sends: raw batches (KIP-98), written by a produce request of our own."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from struct import pack
from time import time
from typing import NamedTuple

from aiokafka import TopicPartition
from aiokafka import codec as codecs
from aiokafka.client import AIOKafkaClient
from aiokafka.errors import KafkaError, for_code
from aiokafka.protocol.produce import ProduceRequest
from aiokafka.record.util import calc_crc32c

_CODECS = {1: codecs.gzip_encode, 2: codecs.snappy_encode, 3: codecs.lz4_encode, 4: codecs.zstd_encode}
_TRIES = 50


class Raw(NamedTuple):
    """A record; anything may be None, or no UTF-8.

    :param timestamp: in milliseconds; now where there is none.
    """

    key: bytes | None = None
    value: bytes | None = None
    headers: Sequence[tuple[bytes, bytes | None]] = ()
    timestamp: int | None = None


def batch(
    records: Sequence[Raw], *, codec: int = 0, base: int = 0, now: int = 0, flags: int = 0, producer: int = -1
) -> bytes:
    """One record batch.

    :param codec: 1 to 4: gzip, snappy, lz4, zstd.
    :param base: the offset of the first record; a broker sets its own.
    :param now: the timestamp of records without one.
    :param flags: further attributes: 8 timestamps are the broker's, 16 in a transaction, 32 a marker.
    """
    times = [now if each.timestamp is None else each.timestamp for each in records]
    body = b"".join(record(each, at, times[at] - times[0]) for at, each in enumerate(records))
    if codec:
        body = _CODECS[codec](body)
    return sealed(
        body, len(records), base=base, flags=codec | flags, first=times[0], last=max(times), producer=producer
    )


def sealed(
    body: bytes, count: int, *, base: int = 0, flags: int = 0, first: int = 0, last: int = 0, producer: int = -1
) -> bytes:
    """A batch of a body that says ``count`` records, with its checksum; ``first`` and ``last`` are timestamps."""
    checked = pack(">hiqqqhii", flags, count - 1, first, last, producer, -1, -1, count) + body
    return pack(">qiibI", base, len(checked) + 9, -1, 2, calc_crc32c(checked)) + checked


async def produce_raw(bootstrap: str, topic: str, partition: int, records: Sequence[Raw], *, codec: int = 0) -> int:
    """Write the records as one batch, acknowledged by all replicas; returns the offset of the first."""
    client = AIOKafkaClient(bootstrap_servers=bootstrap)
    messages = batch(records, codec=codec, now=int(time() * 1000))
    try:
        await client.bootstrap()
        client.add_topic(topic)
        for attempt in range(_TRIES):
            try:
                await client.force_metadata_update()
                leader = client.cluster.leader_for_partition(TopicPartition(topic, partition))
                request = ProduceRequest(None, -1, 10_000, [(topic, [(partition, messages)])])
                response = await client.send(leader, request)
                ((_, ((_, code, offset, *_),)),) = response.topics
                if code:
                    raise for_code(code)(f"{topic}/{partition}")
                return int(offset)
            except KafkaError as error:
                if not error.retriable or attempt == _TRIES - 1:
                    raise
                await asyncio.sleep(0.1)  # a topic that was just made has no leader yet
        raise AssertionError
    finally:
        await client.close()


def record(raw: Raw, number: int, since: int, wrong: int = 0) -> bytes:
    """A record of a batch, ``since`` milliseconds after its first; its length is ``wrong`` by so many bytes."""
    out = b"\0" + _varint(since) + _varint(number) + _bytes(raw.key) + _bytes(raw.value)
    out += _varint(len(raw.headers))
    for name, content in raw.headers:
        out += _bytes(name) + _bytes(content)
    return _varint(len(out) + wrong) + out


def _bytes(content: bytes | None) -> bytes:
    return _varint(-1) if content is None else _varint(len(content)) + content


def _varint(number: int) -> bytes:
    rest = number << 1 if number >= 0 else (-number << 1) - 1
    out = bytearray()
    while rest > 0x7F:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    out.append(rest)
    return bytes(out)
