"""What goes wrong in one round: done to the workers, to the broker, or to the topic of traces."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import anyio
from aiokafka import AIOKafkaConsumer
from aiokafka.errors import KafkaError

from stream.kafka.broker import Broker, NotStarted
from tests.kafka.faults import dump
from tests.kafka.faults.feed import Feed
from tests.kafka.faults.schedule import Round
from tests.kafka.faults.stopping import stop
from tests.kafka.faults.workers import Fleet, Worker

_SPOT_SECONDS = 15.0
_TRIES = 3
_BEYOND = 0.5  # over the session, so that a frozen worker has lost it for sure


class Harm:
    """Does what a round says.

    :param session: seconds that a worker may be silent.
    :param fewest: workers that there are at least, and ``most`` at most.
    """

    def __init__(
        self, broker: Broker, fleet: Fleet, feed: Feed, *, partitions: int, session: float, fewest: int, most: int
    ) -> None:
        self._broker = broker
        self._fleet = fleet
        self._feed = feed
        self._partitions = partitions
        self._session = session
        self._fewest = fewest
        self._most = most

    async def do(self, this: Round) -> str:
        """Send the round's traces, and do what it says; returns what that was."""
        self._feed.send(this.traces, this.seed)
        if "in transaction" in this.kind:
            return await self._in_transaction(this)
        await anyio.sleep(this.delay)
        if this.kind == "poison":
            self._feed.poison(this.seed)
            return "poison"
        if "broker" in this.kind:
            return await self._to_broker(this)
        return self._to_workers(this)

    def _chosen(self, this: Round) -> Worker | None:
        awake = self._fleet.awake
        return awake[int(this.which * len(awake))] if awake else None

    def _to_workers(self, this: Round) -> str:
        fleet, chosen = self._fleet, self._chosen(this)
        if this.kind == "kill all":
            killed = fleet.awake
            for each in killed:
                each.kill()
            started = [fleet.start() for _ in range(self._fewest)]
            return f"kill -9 {_names(killed)} after {this.delay:.2f} s, {_names(started)} started"
        if chosen is None:
            return f"{this.kind}: no worker is awake"
        if this.kind == "kill":
            chosen.kill()
            return f"kill -9 {chosen} after {this.delay:.2f} s, {fleet.start()} started"
        if this.kind == "stop":
            chosen.stop()
            return f"SIGTERM to {chosen}, {fleet.start()} started"
        if this.kind == "freeze":
            seconds = self._session + _BEYOND + this.lasts
            chosen.freeze(seconds)
            return f"SIGSTOP to {chosen} for {seconds:.1f} s"
        if len(fleet.there) < (self._most if this.kind == "add" else self._fewest + 1):
            return f"{fleet.start()} added"
        chosen.stop()
        return f"SIGTERM to {chosen}"

    async def _to_broker(self, this: Round) -> str:
        broker = self._broker
        if this.kind == "stop broker":
            await self._restart()
            return "broker stopped and started"
        if this.kind == "freeze broker":
            broker.freeze()
            await anyio.sleep(2 * this.lasts)
            broker.thaw()
            return f"SIGSTOP to the broker for {2 * this.lasts:.1f} s"
        broker.kill()
        await anyio.sleep(this.lasts / 2)
        await self._restart()
        return f"kill -9 broker after {this.delay:.2f} s, started {this.lasts / 2:.1f} s later"

    async def _restart(self) -> None:
        for attempt in range(_TRIES):
            try:
                await self._broker.restart()
            except NotStarted:  # a start that takes too long on a busy machine ends by Kafka's own timeouts
                if attempt == _TRIES - 1:
                    raise
            else:
                return

    async def _in_transaction(self, this: Round) -> str:
        """Kill the broker, or the worker that writes, when a transaction has written something and not ended."""
        owners, chosen = self._fleet.owners(), self._chosen(this)
        async with self._written() as partition:
            when = "though nothing was written" if partition is None else f"in a transaction of partition {partition}"
            if "broker" in this.kind:
                self._broker.kill()
                told = f"kill -9 broker {when}, started {this.lasts / 2:.1f} s later"
            else:
                worker = owners.get(-1 if partition is None else partition, chosen)
                if worker is None or worker.ended is not None:
                    return f"{this.kind}: no worker is awake"
                worker.kill()
                told = f"kill -9 {worker} {when}, {self._fleet.start()} started"
        if "broker" in this.kind:
            await anyio.sleep(this.lasts / 2)
            await self._restart()
        return told

    @asynccontextmanager
    async def _written(self) -> AsyncIterator[int | None]:
        """The partition that a transaction has just begun to write a delta to; None when none does for long.

        A read_uncommitted reader gets the first record of a transaction while the rest of it is still to come.
        """
        consumer = AIOKafkaConsumer(
            bootstrap_servers=self._broker.bootstrap,
            group_id=None,
            enable_auto_commit=False,
            fetch_max_wait_ms=2000,
        )
        partition: int | None = None
        try:
            with suppress(KafkaError, OSError), anyio.move_on_after(_SPOT_SECONDS):
                await consumer.start()
                consumer.assign(dump.partitions(dump.DELTAS, self._partitions))
                await consumer.seek_to_end()
                while partition is None:
                    for tp in await consumer.getmany(timeout_ms=500):
                        partition = int(tp.partition)
            yield partition
        finally:
            await stop(consumer)


def _names(workers: list[Worker]) -> str:
    numbers = ", ".join(str(each.number) for each in workers)
    return f"workers {numbers}"
