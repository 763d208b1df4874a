"""What is rejected can be had back, byte for byte, whatever it was; what is too large is told by size and hash."""

from __future__ import annotations

from hashlib import sha256

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from hypothesis import given
from hypothesis import strategies as st

from stream.kafka.rejected import KEPT_KEY, KEPT_VALUE, NotRejected, Rejected, decode, encode
from tests.kafka.raw import Raw, batch

LIMIT = 1 << 20

some = st.none() | st.binary(max_size=40)
names = st.binary(max_size=12).map(lambda name: name.decode("utf-8", "surrogateescape"))
originals = st.builds(
    Rejected,
    topic=st.text(min_size=1, max_size=20),
    partition=st.integers(0, 1 << 31),
    offset=st.integers(0, 1 << 62),
    timestamp=st.integers(-1, 1 << 62),
    reason=st.text(max_size=60),
    key=some,
    value=some,
    headers=st.lists(st.tuples(names, some), max_size=5).map(tuple),
)


@given(originals)
def test_the_original_comes_back(rejected: Rejected) -> None:
    sent = encode(rejected, LIMIT)
    assert decode(*sent) == rejected
    assert sent.key is not None or sent.value is not None
    assert sent.key == rejected.key
    assert sent.value == (rejected.value or b"")
    for name, content in sent.headers:
        name.encode("ascii")
        content.decode()


@given(originals, st.integers(0, 200), st.data())
def test_what_is_too_large_is_cut_and_told(rejected: Rejected, limit: int, data: st.DataObject) -> None:
    size = data.draw(st.sampled_from([0, KEPT_VALUE, KEPT_VALUE + 1, 300_000]))
    long = data.draw(st.sampled_from([0, KEPT_KEY, KEPT_KEY + 1, 100_000]))
    value, key = b"v" * size, b"k" * long
    original = Rejected(
        topic="t", partition=1, offset=2, timestamp=3, reason="r" * 9000, key=key, value=value, headers=(("h", key),)
    )
    sent = encode(original, limit)
    found = decode(*sent)
    assert len(sent.key or b"") + len(sent.value) + sum(len(name) + len(text) for name, text in sent.headers) < 90_000
    assert (found.topic, found.partition, found.offset, found.timestamp) == ("t", 1, 2, 3)
    assert found.value == value[:KEPT_VALUE]
    assert found.key == key[:KEPT_KEY]
    assert ("value" in found.cut) == (size > KEPT_VALUE)
    assert ("key" in found.cut) == (long > KEPT_KEY)
    if size > KEPT_VALUE:
        assert (found.cut["value"].bytes, found.cut["value"].sha256) == (size, sha256(value).hexdigest())
    assert found.headers == (() if "headers" in found.cut else original.headers)


def test_what_fits_is_not_cut() -> None:
    original = Rejected(topic="t", partition=1, offset=2, timestamp=3, reason="", value=b"v" * 900_000)
    assert decode(*encode(original, LIMIT)) == original
    assert encode(original, 900_000).value == b"v" * KEPT_VALUE


@given(st.integers(0, 3000), st.lists(st.tuples(names, some), max_size=5).map(tuple), st.text(max_size=5000))
def test_what_is_not_cut_fits_into_a_batch_of_the_limit(
    less: int, headers: tuple[tuple[str, bytes | None], ...], reason: str
) -> None:
    original = Rejected(
        topic="t" * 249, partition=1 << 31, offset=1 << 62, timestamp=1 << 62, reason=reason,
        key=b"k" * 100, value=b"v" * (LIMIT - less), headers=headers,
    )  # fmt: skip
    key, value, ours = encode(original, LIMIT)
    assert len(batch([Raw(key, value, [(name.encode(), content) for name, content in ours])])) <= LIMIT


def test_a_reason_is_text_always() -> None:
    sent = dict(
        encode(Rejected(topic="t", partition=1, offset=2, timestamp=3, reason="caf\udce9 \ud800"), LIMIT).headers
    )
    assert sent["tracecomb-reason"] == rb"caf\udce9 \ud800"


@given(some, some, st.lists(st.tuples(st.text(max_size=20) | st.just("tracecomb-reject"), some), max_size=5))
def test_anothers_record_is_none(
    key: bytes | None, value: bytes | None, headers: list[tuple[str, bytes | None]]
) -> None:
    with pytest.raises(NotRejected):
        decode(key, value, headers)


@pytest.mark.parametrize(
    ("name", "content", "why"),
    [
        ("reject", b"2", "no header tracecomb-reject with version 1"),
        ("offset", None, "the header tracecomb-offset is missing"),
        ("offset", b"x", "a header cannot be read: invalid literal"),
        ("headers", b'[["a!", null]]', "a header cannot be read"),
        ("headers", b"{}", "a header cannot be read"),
    ],
)
def test_a_damaged_one_says_what_is_wrong(name: str, content: bytes | None, why: str) -> None:
    original = Rejected(topic="t", partition=1, offset=2, timestamp=3, reason="no JSON", headers=(("h", b"v"),))
    key, value, headers = encode(original, LIMIT)
    changed = [each for each in headers if each[0] != f"tracecomb-{name}"]
    if content is not None:
        changed.append((f"tracecomb-{name}", content))
    with pytest.raises(NotRejected, match=why):
        decode(key, value, changed)


async def test_aiokafka_sends_what_came_without_key_and_value(kafka: str, unique: str) -> None:
    original = Rejected(
        topic="t", partition=1, offset=2, timestamp=1 << 60, reason="no value", headers=(("caf\udce9", None),)
    )
    key, value, headers = encode(original, LIMIT)
    producer = AIOKafkaProducer(bootstrap_servers=kafka)
    consumer = AIOKafkaConsumer(unique, bootstrap_servers=kafka, auto_offset_reset="earliest")
    await producer.start()
    await producer.send_and_wait(unique, value, key, headers=headers)
    await producer.stop()
    await consumer.start()
    found = await consumer.getone()
    await consumer.stop()
    assert decode(found.key, found.value, found.headers) == original
