"""Records that no well-behaved producer sends, among good ones, as batches to write raw."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import NamedTuple

from tests.kafka.faults.stored import home_of
from tests.kafka.raw import Raw
from tests.stream.logs import Log

OVER_THE_LIMIT = 9 << 20
"""Bytes of a value that passes a topic of 8 MiB because it is compressed, and that no topic of ours takes copied."""

ZSTD = 4
YEAR_2100_MS = 4_102_444_800_000


class Batch(NamedTuple):
    """One record batch for one partition."""

    partition: int
    records: list[Raw]
    codec: int


class Poison:
    """Makes batches of poison.

    :param log: where the good records come from.
    :param number: the next trace's number; each is asked for once.
    """

    def __init__(self, log: Log, count: int, number: Callable[[], int]) -> None:
        self._log = log
        self._count = count
        self._number = number

    def batches(self, random: Random) -> list[Batch]:
        """One batch of each kind of poison, in any order."""
        log = self._log
        found: list[Batch] = []
        for make in (
            self._bad_json,
            self._null_value,
            self._null_key,
            self._both_null,
            self._key_not_utf8,
            self._nameless,
            self._header_not_utf8,
            self._header_not_utf8_and_bad,
            self._future,
            self._several,
            self._nothing,
        ):
            at = self._number()
            before, after = random.randrange(6), random.randrange(6)
            partition = home_of(log.prompt(at), self._count)
            good = [self._good(partition) for _ in range(before + after)]
            found.append(Batch(partition, [*good[:before], make(at, random), *good[before:]], random.randrange(5)))
        at = self._number()
        found.append(
            Batch((home_of(log.prompt(at), self._count) + 1) % self._count, [self._trace(at)], random.randrange(5))
        )
        if random.random() < 0.5:
            big = Raw(self._key(at), random.randbytes(64) + b"x" * OVER_THE_LIMIT)
            found.append(Batch(home_of(log.prompt(at), self._count), [big], ZSTD))
        random.shuffle(found)
        return found

    def _good(self, partition: int) -> Raw:
        """A trace of any prompt that is at home in the partition."""
        while home_of(self._log.prompt(number := self._number()), self._count) != partition:
            pass
        return self._trace(number)

    def _key(self, number: int) -> bytes:
        return self._log.prompt(number).encode()

    def _trace(self, number: int) -> Raw:
        return Raw(self._key(number), self._log.line(number))

    def _bad_json(self, number: int, random: Random) -> Raw:
        bad = random.choice(
            (self._log.line(number)[:-9], b"", b"\xff\xfe %d" % number, b'{"level":"info"}', b"[" * 5000)
        )
        headers: list[tuple[bytes, bytes | None]] = [(b"trace", b"%d" % number), (b"trace", None)]
        return Raw(self._key(number), bad, headers[: random.randrange(3)], random.choice((None, 0, 2**62)))

    def _null_value(self, number: int, random: Random) -> Raw:
        return Raw(self._key(number), None)

    def _null_key(self, number: int, random: Random) -> Raw:
        return self._trace(number)._replace(key=None)

    def _both_null(self, number: int, random: Random) -> Raw:
        return Raw(None, None)

    def _key_not_utf8(self, number: int, random: Random) -> Raw:
        return self._trace(number)._replace(key=b"\xff\xfe")

    def _nameless(self, number: int, random: Random) -> Raw:
        """A trace that names no prompt, under a key that cannot name it either."""
        line = self._log.line(number).replace(b'"prompt"', b'"unprompted"')
        return Raw(b"\xc3\x28", line)

    def _header_not_utf8(self, number: int, random: Random) -> Raw:
        return self._trace(number)._replace(headers=[(b"caf\xe9", b"%d" % number), (b"good", b"")])

    def _header_not_utf8_and_bad(self, number: int, random: Random) -> Raw:
        return Raw(None, b"no JSON %d" % number, [(b"\xff", None), (b"x", b"\xfe")])

    def _future(self, number: int, random: Random) -> Raw:
        return self._trace(number)._replace(timestamp=random.choice((YEAR_2100_MS, 2**62)))

    def _several(self, number: int, random: Random) -> Raw:
        line = self._log.line(number)
        return Raw(self._key(number), b"[%b,%b]" % (line, line))

    def _nothing(self, number: int, random: Random) -> Raw:
        return Raw(self._key(number), b"[]")
