"""A plain read_committed reader of versions that runs all the time, as any consumer of the service's topics would."""

from __future__ import annotations

import time
from collections.abc import Callable

import anyio
import msgspec
from aiokafka import AIOKafkaConsumer
from aiokafka.errors import KafkaError
from aiokafka.structs import ConsumerRecord, TopicPartition

from tests.kafka.faults.steady import Sight
from tests.kafka.faults.stopping import stop
from tests.kafka.faults.stored import digest

_POLL_MS = 300
_SILENT_SECONDS = 20.0
_START_SECONDS = 30.0
_PAUSE = 0.5


class Version(msgspec.Struct):
    """What is looked at of an update, and of a record of ``prompt-deltas``."""

    prompt: str = ""
    version: int | None = None
    kind: str = ""


_version = msgspec.json.Decoder(Version).decode


class Reader:
    """Reads updates and deltas from their start, and notes what it gets, as it gets it.

    :param say: told when versions do not follow each other.
    """

    def __init__(self, bootstrap: str, count: int, say: Callable[[str], None]) -> None:
        self._bootstrap = bootstrap
        self._say = say
        self._positions = {
            TopicPartition(topic, number): 0 for topic in ("prompt-updates", "prompt-deltas") for number in range(count)
        }
        self._newest: dict[tuple[str, str], int] = {}
        self.sights: list[Sight] = []
        self.versions = 0
        self.clients = 0
        """How many clients it took: one that has gone silent, as aiokafka's may after an outage, is replaced."""
        self.stopping = False

    async def run(self) -> None:
        """Read until told to stop."""
        while not self.stopping:
            self.clients += 1
            consumer = AIOKafkaConsumer(
                bootstrap_servers=self._bootstrap,
                group_id=None,
                enable_auto_commit=False,
                auto_offset_reset="none",
                isolation_level="read_committed",
            )
            try:
                with anyio.fail_after(_START_SECONDS):
                    await consumer.start()
                await self._read(consumer)
            except (KafkaError, TimeoutError, OSError):
                await anyio.sleep(_PAUSE)
            finally:
                await stop(consumer)

    async def caught_up(self, ends: dict[TopicPartition, int]) -> None:
        """Wait until it has come to these offsets, of topics that it reads."""
        while any(self._positions[tp] < end for tp, end in ends.items() if tp in self._positions):
            await anyio.sleep(0.1)

    async def _read(self, consumer: AIOKafkaConsumer) -> None:
        consumer.assign(list(self._positions))
        for tp, position in self._positions.items():
            consumer.seek(tp, position)
        heard = time.monotonic()
        while not self.stopping:
            polled = await consumer.getmany(timeout_ms=_POLL_MS)
            for records in polled.values():
                for record in records:
                    self._see(record)
            moved = False
            for tp, before in self._positions.items():
                # Markers of transactions move it too.
                position = await consumer.position(tp)
                moved |= position != before
                self._positions[tp] = position
            if moved:
                heard = time.monotonic()
            elif time.monotonic() - heard > _SILENT_SECONDS:
                return

    def _see(self, record: ConsumerRecord) -> None:
        try:
            found = _version(record.value or b"")
        except msgspec.MsgspecError:
            found = Version()
        version = (found.version or 0) if found.kind != "answer" else 0
        self.sights.append(
            Sight(record.topic, record.partition, record.offset, found.prompt, version, digest(record.value))
        )
        if not version:
            return
        self.versions += record.topic == "prompt-deltas"
        last = self._newest.get((record.topic, found.prompt), 0)
        if version != last + 1:
            self._say(
                f"FAULT: {record.topic}/{record.partition}@{record.offset} is version {version} of {found.prompt}, "
                f"after version {last}"
            )
        self._newest[record.topic, found.prompt] = version
