"""Which partition is a prompt's home: what the producers' partitioners make of its key. Pure."""

from __future__ import annotations

from struct import iter_unpack
from typing import Literal
from zlib import crc32

Partitioner = Literal["murmur2", "crc32"]

_WORD = 0xFFFFFFFF
_MIX = 0x5BD1E995


def home(key: bytes, partitioner: Partitioner, n: int) -> int:
    """The partition that a producer sends a record of this key to.

    The two agree for one key of three only, so all producers of a topic must use one.

    :param partitioner: ``murmur2`` as the Java client and aiokafka by default, ``crc32`` as librdkafka by default (its
        ``consistent_random``, which spreads empty keys at random).
    :param n: how many partitions the topic has.
    """
    if partitioner == "crc32":
        return crc32(key) % n
    return (murmur2(key) & 0x7FFFFFFF) % n


def murmur2(key: bytes) -> int:
    """The 32-bit MurmurHash2 (A. Appleby) with the seed of Kafka's ``Utils.murmur2``, as an unsigned number."""
    whole = len(key) & ~3
    hashed = 0x9747B28C ^ len(key)
    for (word,) in iter_unpack("<I", memoryview(key)[:whole]):
        mixed = word * _MIX & _WORD
        mixed = (mixed ^ mixed >> 24) * _MIX & _WORD
        hashed = (hashed * _MIX & _WORD) ^ mixed
    if len(key) > whole:
        hashed = (hashed ^ int.from_bytes(key[whole:], "little")) * _MIX & _WORD
    hashed = (hashed ^ hashed >> 13) * _MIX & _WORD
    return hashed ^ hashed >> 15
