"""The service: from the configuration to a learner on Kafka, and its life."""

from __future__ import annotations

import gc
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from hashlib import blake2b
from typing import Any

import anyio
import structlog
from aiokafka import AIOKafkaConsumer
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import KafkaError

from operators.calls import Calls
from operators.controller import BatchSizes
from operators.method import Method
from operators.modelfree import ModelFree
from operators.settings import Settings
from operators.sizes import FixedSize
from stream.config import Config, settings
from stream.kafka.cluster import told
from stream.kafka.connection import connection
from stream.kafka.errors import PartitionHalted, WrongTopics, cause_of
from stream.kafka.layout import faults
from stream.kafka.ledger import SPAN
from stream.kafka.member import REVOKE_SECONDS, Member
from stream.kafka.reading import reader
from stream.kafka.remembered import Reflections
from stream.kafka.shared import Shared
from stream.kafka.takeover import Reads
from stream.kafka.tally import Tally
from stream.kafka.topics import found
from stream.kafka.watch import Watch
from stream.sizes import AutoSizes

log = structlog.get_logger()

_COLLECTING = (50_000, 20, 100)
"""Python's garbage collector looks at every trace under way again and again, and finds no cycle among them: at its own
thresholds that is a fifth of all work."""

_AGAIN_SECONDS = 3.0


def lineage_of(cluster: str, group: str, topic: str) -> str:
    """What stands in every update: who has made it, as 32 hex digits."""
    parts = b"".join(len(part.encode()).to_bytes(4, "big") + part.encode() for part in (cluster, group, topic))
    return blake2b(parts, digest_size=16).hexdigest()


def settings_of(config: Config) -> Settings:
    """The operators' settings for a service: windows close by size, by time, and by the span."""
    service = config.service
    return settings(
        config,
        seed=service.seed,
        open_traces=2 * SPAN,  # never reached: a partition's span closes windows first, as the log alone says
        max_wait=config.learning.max_wait,
        straggler_deadline=service.straggler_deadline,
        in_flight=service.in_flight,
    )


class Service:
    """The learner on Kafka: ``await Service(config).run()`` in one process, as many as there are partitions.

    :param method: how lessons are found; the model-free method where there is none.
    :param clock: seconds, monotonic.
    """

    def __init__(
        self, config: Config, *, method: Method | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._config = config
        self._method = method or ModelFree()
        self._clock = clock
        self._stopping = anyio.Event()
        self.tally = Tally(config.rejects)
        self.ready = anyio.Event()
        """Set when the service has begun to ask for partitions."""
        self.member: Member | None = None
        """The consumer it has just now."""

    @property
    def stopping(self) -> bool:
        """Whether it was told to stop."""
        return self._stopping.is_set()

    def stop(self) -> None:
        """Stop taking, publish what can be published within the drain's deadline, leave."""
        self._stopping.set()

    async def run(self) -> Tally:
        """Learn until :meth:`stop`.

        :raises ServiceStopped: when it cannot go on; nothing is lost.
        :raises PartitionHalted: when it was stopped and a partition stands still.
        :raises TooManyRejects: past the configured limits.
        """
        collecting = gc.get_threshold()
        gc.set_threshold(*_COLLECTING)
        try:
            async with self._clients() as (shared, stable):
                while not self._stopping.is_set():
                    self.member = Member(shared)
                    try:
                        await self.member.run(partial(self._until_ended, self.member, stable))
                    except (KafkaError, BaseExceptionGroup) as error:
                        if not isinstance(cause_of(error), KafkaError):
                            raise
                        log.warning("no consumer could be started, trying again", reason=str(cause_of(error)))
                        await self._pause()
        except BaseExceptionGroup as group:
            raise cause_of(group) from None
        finally:
            gc.set_threshold(*collecting)
        if self.member is not None and self.member.halted:
            raise PartitionHalted("; ".join(self.member.halted.values()))
        return self.tally

    async def _pause(self) -> None:
        with anyio.move_on_after(_AGAIN_SECONDS):
            await self._stopping.wait()

    async def _until_ended(self, member: Member, stable: AIOKafkaConsumer) -> bool:
        """Wait for the end of a member; return whether there is time to drain."""
        kafka, service = self._config.kafka, self._config.service
        rebalance = kafka.session_timeout + service.drain + REVOKE_SECONDS
        watch = Watch(member, stable, self._clock, session=kafka.session_timeout, rebalance=rebalance)
        self.ready.set()

        async def look() -> None:
            why = await watch.silent()
            log.warning("building a new consumer", reason=why)
            either.cancel_scope.cancel()

        async with anyio.create_task_group() as either:
            either.start_soon(look)
            await self._stopping.wait()
            either.cancel_scope.cancel()
        return self._stopping.is_set()

    @asynccontextmanager
    async def _clients(self) -> AsyncIterator[tuple[Shared, AIOKafkaConsumer]]:
        config = self._config
        with told(config.kafka):
            there = await found(config.kafka, config.topics)
        troubles = faults(config.topics, there, config.kafka.bootstrap, largest=config.kafka.max_message_bytes)
        if troubles:
            raise WrongTopics(troubles)
        connected: Mapping[str, Any] = connection(config.kafka)
        admin = AIOKafkaAdminClient(**connected)
        try:
            async with AsyncExitStack() as stack:
                with told(config.kafka):
                    await admin.start()
                    cluster = str((await admin.describe_cluster())["cluster_id"])
                    meter = await stack.enter_async_context(reader(connected, isolation_level="read_uncommitted"))
                    stable = await stack.enter_async_context(reader(connected))
                reads = Reads(connected, admin, meter)
                yield self._shared(connected, cluster, there[config.topics.traces].partitions, reads), stable
        finally:
            with anyio.move_on_after(5, shield=True):
                await admin.close()

    def _shared(self, connected: Mapping[str, Any], cluster: str, count: int, reads: Reads) -> Shared:
        config, settings = self._config, settings_of(self._config)
        controller = BatchSizes(
            config.controller.candidates,
            windows_per_size=config.controller.windows_per_size,
            share=config.controller.tau,
            lag=2 * (1 + settings.max_staleness),
        )
        size = config.service.batch_size
        return Shared(
            config=config,
            connection=connected,
            cluster=cluster,
            count=count,
            lineage=lineage_of(cluster, config.kafka.group, config.topics.traces),
            settings=settings,
            method=self._method,
            calls=Calls(settings.in_flight),
            controller=controller,
            sizes=AutoSizes(controller) if size == "auto" else FixedSize(int(size)),
            reads=reads,
            reflections=Reflections(),
            tally=self.tally,
            clock=self._clock,
        )
