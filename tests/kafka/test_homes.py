"""Homes are those of the clients: murmur2 of Java and aiokafka, crc32 of librdkafka."""

from __future__ import annotations

from zlib import crc32

import pytest
from aiokafka.partitioner import DefaultPartitioner
from hypothesis import given
from hypothesis import strategies as st

from stream.kafka.homes import home, murmur2


@pytest.mark.parametrize(
    ("key", "hashed"),  # Kafka's own: UtilsTest.testMurmur2
    [
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        (b"abc", 479470107),
    ],
)
def test_murmur2_is_kafkas(key: bytes, hashed: int) -> None:
    assert murmur2(key) == hashed & 0xFFFFFFFF


@given(st.binary(max_size=70), st.integers(1, 500))
def test_murmur2_homes_are_aiokafkas(key: bytes, n: int) -> None:
    partitions = list(range(n))
    assert home(key, "murmur2", n) == DefaultPartitioner()(key, partitions, partitions)


@pytest.mark.parametrize(("key", "hashed"), [(b"123456789", 0xCBF43926), (b"", 0), (b"a", 0xE8B7BE43)])
def test_crc32_is_the_one_of_zip(key: bytes, hashed: int) -> None:
    assert home(key, "crc32", 1 << 32) == hashed


@given(st.binary(max_size=70), st.integers(1, 500))
def test_crc32_homes_are_the_hash_modulo_n(key: bytes, n: int) -> None:
    assert home(key, "crc32", n) == crc32(key) % n


def test_the_two_disagree_for_most_keys() -> None:
    keys = [f"support/{at}".encode() for at in range(1000)]
    agree = sum(home(key, "murmur2", 3) == home(key, "crc32", 3) for key in keys)
    assert 250 < agree < 420
