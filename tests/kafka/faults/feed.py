"""The producer: numbered traces and poison, at least once, whatever happens to the broker meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from random import Random

import anyio
from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError

from tests.kafka.faults.poison import Poison
from tests.kafka.faults.stopping import stop
from tests.kafka.raw import produce_raw
from tests.stream.logs import Log

REPEATED = 0.03
"""The share of traces that is sent twice."""

_RECENT = 300  # how far back one of those is, well within what the service remembers of a prompt
_SEND_SECONDS = 15.0
_PAUSE = 0.3

Line = tuple[bytes, bytes]


class Feed:
    """Sends what it is told to, one thing after another.

    :param count: partitions of the topic.
    """

    def __init__(self, bootstrap: str, topic: str, log: Log, count: int) -> None:
        self._bootstrap = bootstrap
        self._topic = topic
        self._log = log
        self._number = 0
        self._poison = Poison(log, count, self._next)
        self._give, self._take = anyio.create_memory_object_stream[tuple[str, int, int]](1000)
        self._producer: AIOKafkaProducer | None = None
        self.acknowledged: set[tuple[str, str]] = set()
        """(prompt, id) of what a broker has said it has."""
        self.done = anyio.Event()

    @property
    def numbered(self) -> int:
        """How many traces have a number."""
        return self._number

    def send(self, traces: int, seed: int) -> None:
        """Send so many new traces, some of them twice."""
        self._give.send_nowait(("traces", traces, seed))

    def poison(self, seed: int) -> None:
        """Send one batch of each kind of poison, once each as far as the broker lets us know."""
        self._give.send_nowait(("poison", 0, seed))

    def close(self) -> None:
        """Send nothing more; :attr:`done` is set when all that was to be sent is acknowledged."""
        self._give.close()

    async def run(self) -> None:
        """Send until closed."""
        async with self._take:
            async for what, traces, seed in self._take:
                if what == "traces":
                    await self._send_all(self._lines(traces, Random(seed)))
                else:
                    await self._send_poison(Random(seed))
        await self._stop()
        self.done.set()

    def _next(self) -> int:
        self._number += 1
        return self._number - 1

    def _lines(self, traces: int, random: Random) -> list[tuple[int, Line]]:
        found = []
        for _ in range(traces):
            number = self._next()
            found.append((number, (self._log.prompt(number).encode(), self._log.line(number))))
            if random.random() < REPEATED:
                back = max(number - random.randrange(_RECENT), 0)
                task = random.choice(("", "Dispute"))
                found.append((back, (self._log.prompt(back).encode(), self._log.line(back, task))))
        return found

    async def _send_all(self, lines: Sequence[tuple[int, Line]]) -> None:
        """Send all, and again what nobody has acknowledged: that is what at least once means."""
        while lines:
            failed = list(lines)
            with suppress(KafkaError, TimeoutError, OSError):
                failed = await self._send_once(lines)
            lines = failed
            if lines:
                await self._stop()
                await anyio.sleep(_PAUSE)

    async def _send_once(self, lines: Sequence[tuple[int, Line]]) -> list[tuple[int, Line]]:
        with anyio.fail_after(2 * _SEND_SECONDS):
            producer = await self._started()
            futures = [await producer.send(self._topic, value, key) for _, (key, value) in lines]
            await asyncio.wait(futures, timeout=_SEND_SECONDS)
        failed = []
        for (number, line), future in zip(lines, futures, strict=True):
            if future.done() and not future.cancelled() and future.exception() is None:
                self.acknowledged.add((self._log.prompt(number), self._log.id(number)))
            else:
                failed.append((number, line))
        return failed

    async def _send_poison(self, random: Random) -> None:
        for batch in self._poison.batches(random):
            while True:
                with suppress(KafkaError, TimeoutError, OSError, ValueError), anyio.fail_after(_SEND_SECONDS):
                    await produce_raw(self._bootstrap, self._topic, batch.partition, batch.records, codec=batch.codec)
                    break
                await anyio.sleep(_PAUSE)

    async def _started(self) -> AIOKafkaProducer:
        if self._producer is None:
            producer = AIOKafkaProducer(
                bootstrap_servers=self._bootstrap,
                acks="all",
                enable_idempotence=True,
                compression_type="zstd",
                linger_ms=2,
            )
            try:
                await producer.start()
            except BaseException:
                await stop(producer)
                raise
            self._producer = producer
        return self._producer

    async def _stop(self) -> None:
        producer, self._producer = self._producer, None
        if producer is not None:
            await stop(producer)
