"""What a read_committed reader of the updates sees, and when."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import anyio
import msgspec
from aiokafka import AIOKafkaConsumer
from aiokafka.structs import TopicPartition
from msgspec import Struct


class _Head(Struct, frozen=True):
    prompt: str
    version: int


class Sight(NamedTuple):
    """An update that could be read; ``time`` is by the clock that all processes of a machine share."""

    prompt: str
    version: int
    offset: int
    time: float


class Sights:
    """All updates of a topic of one partition, as they come."""

    def __init__(self, consumer: Any, tp: TopicPartition) -> None:
        self._consumer = consumer
        self._tp = tp
        self._changed = anyio.Event()
        self.seen: list[Sight] = []

    async def look(self) -> None:
        """Read on for ever."""
        decode = msgspec.json.Decoder(_Head).decode
        while True:
            found = await self._consumer.getmany(self._tp, timeout_ms=200)
            now = time.monotonic()
            for record in found.get(self._tp, ()):
                head = decode(record.value)
                self.seen.append(Sight(head.prompt, head.version, record.offset, now))
            if found:
                self._changed.set()
                self._changed = anyio.Event()

    async def until(self, count: int) -> None:
        """Wait until so many were seen."""
        while len(self.seen) < count:
            await self._changed.wait()

    async def first_from(self, offset: int) -> Sight:
        """Wait for the first at or past an offset."""
        while not self.seen or self.seen[-1].offset < offset:
            await self._changed.wait()
        return next(sight for sight in self.seen if sight.offset >= offset)


@asynccontextmanager
async def sights(bootstrap: str, topic: str) -> AsyncIterator[Sights]:
    """Look at the updates of a topic of one partition, from its start, for as long as the context lasts."""
    tp = TopicPartition(topic, 0)
    consumer = AIOKafkaConsumer(
        bootstrap_servers=bootstrap,
        group_id=None,
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        isolation_level="read_committed",
    )
    async with consumer, anyio.create_task_group() as tasks:
        consumer.assign([tp])
        reader = Sights(consumer, tp)
        tasks.start_soon(reader.look)
        yield reader
        tasks.cancel_scope.cancel()


async def high_watermark(bootstrap: str, topic: str) -> int:
    """One past the last record of a topic of one partition, committed or not."""
    tp = TopicPartition(topic, 0)
    async with AIOKafkaConsumer(bootstrap_servers=bootstrap, group_id=None, enable_auto_commit=False) as consumer:
        return int((await consumer.end_offsets([tp]))[tp])
