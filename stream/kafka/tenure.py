"""Tenure: one partition owned for one epoch, from taking it over to letting it go.

All that is under way lives in it and dies with it: windows, ledger, producer. What was finished but not committed is
read again by whoever owns the partition next, in the same order, and makes the same versions.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial

import anyio
import structlog
from aiokafka.structs import ConsumerRecord, TopicPartition

from operators.learner import Learner
from operators.seen import seen_by
from stream.kafka.asking import Asking
from stream.kafka.bounds import Load
from stream.kafka.checks import Ours, Taken
from stream.kafka.errors import PartitionHalted
from stream.kafka.history import bullets_of
from stream.kafka.intake import Intake
from stream.kafka.ledger import SPAN, Ledger
from stream.kafka.loss import face_loss
from stream.kafka.past import Past
from stream.kafka.producing import producer, transactional_id
from stream.kafka.prompts import Prompts
from stream.kafka.publisher import Publisher
from stream.kafka.remembered import Place, Remembering
from stream.kafka.room import Room
from stream.kafka.shared import Shared
from stream.kafka.sink import Sink
from stream.kafka.takeover import take_over

log = structlog.get_logger()

CHUNK = 1_000
"""Records that are decoded between two looks at everything else: some milliseconds of work."""

_WAITING = 2_000
_TICK_SECONDS = 1.0
_TICKS_PER_WAIT = 10


class Tenure:
    """One partition in one epoch; :meth:`run` is its life.

    :param seek: lets the partition be read from an offset on.
    """

    def __init__(self, shared: Shared, ours: Ours, seek: Callable[[int], None]) -> None:
        self._shared = shared
        self.ours = ours
        self._seek = seek
        self._inbox: deque[Sequence[ConsumerRecord]] = deque()
        self._waiting = 0
        self._waiting_bytes = 0
        self._work = asyncio.Event()
        self._running: tuple[Learner, Publisher, Ledger, Intake] | None = None
        self._scope = anyio.CancelScope()
        self._halted = ""
        self.accepting = False
        """Whether records of the partition may be handed over; before and after they are to be dropped."""
        self.is_lost = False
        """Whether it ended because the partition is to be taken over again."""
        self.has_published = False

    async def run(self) -> None:
        """Take the partition over and learn from it until :meth:`let_go`.

        :raises ServiceStopped: when the service may not go on.
        :raises PartitionHalted: when this partition may not.
        :raises TenureLost: when nobody knows what was published.
        """
        try:
            await self._run()
        finally:
            self.accepting = False
            self._running = None
            self._inbox.clear()
            self._waiting = self._waiting_bytes = 0
        if self._halted:
            raise PartitionHalted(self._halted)

    async def _run(self) -> None:
        ours, config = self.ours, self._shared.config
        id = transactional_id(ours.group, ours.topics.traces, ours.partition)
        room = Room(config.kafka.max_message_bytes)
        deltas = TopicPartition(ours.topics.deltas, ours.partition)
        past = Past(ours.lineage, partial(bullets_of, self._shared.reads, deltas))
        with self._scope:
            async with producer(self._shared.connection, id, max_bytes=room.limit) as made:
                taken = await take_over(self._shared.reads, ours)
                face_loss(self._shared, ours, taken.lost)
                if taken.sizes is not None:
                    self._shared.controller.go_on(taken.sizes)
                ledger = Ledger(taken.position, ours.source)
                prompts = Prompts(taken.states, taken.versions, ours.lineage, self._shared.controller.restore)
                publisher = Publisher(
                    made,
                    ours,
                    ledger,
                    taken.controls,
                    self._shared.controller.export,
                    self._progress,
                    largest=room.limit,
                )
                intake = Intake(
                    ours,
                    ledger,
                    prompts,
                    publisher,
                    self._shared.tally,
                    partitioner=config.kafka.partitioner,
                    template=config.service.prompt,
                    room=room,
                    past=past,
                )
                sink = Sink(self._shared, ours, publisher, intake, room=room, past=past)
                await self._learn(taken, prompts, publisher, ledger, intake, sink, past)

    async def _learn(
        self,
        taken: Taken,
        prompts: Prompts,
        publisher: Publisher,
        ledger: Ledger,
        intake: Intake,
        sink: Sink,
        past: Past,
    ) -> None:
        shared, ours = self._shared, self.ours
        learner = Learner(
            Remembering(shared.method, shared.reflections, lambda trace: self._place(intake.offset(trace))),
            sink.publish,
            sizes=shared.sizes,
            clock=shared.clock,
            settings=shared.settings,
            load=prompts.state,
            seen=partial(seen_by, ours.lineage, past=past.bullets),
            lineage=ours.lineage,
            calls=shared.calls,
            arrival=intake.offset,
            span=SPAN // 2,
        )
        asking = Asking(
            shared.reads, ours, shared.settings, learner, publisher, shared.config.kafka.partitioner, sink.over
        )
        async with anyio.create_task_group() as tasks, learner:
            self._running = learner, publisher, ledger, intake
            tasks.start_soon(publisher.run)
            tasks.start_soon(self._pump, learner, ledger, intake)
            tasks.start_soon(self._tick, learner)
            tasks.start_soon(asking.run)
            if taken.lost:
                publisher.lose(taken.lost)
            elif taken.first:
                publisher.begin()
            self._seek(taken.position.offset)
            self.accepting = True
            log.info("partition taken over", offset=taken.position.offset, prompts=len(taken.versions))
            await anyio.sleep_forever()

    def take(self, records: Sequence[ConsumerRecord]) -> None:
        """Take records that were read, in order."""
        for at in range(0, len(records), CHUNK):
            chunk = records[at : at + CHUNK]
            self._inbox.append(chunk)
            self._waiting += len(chunk)
            self._waiting_bytes += sum(record.serialized_value_size for record in chunk)
        self._work.set()

    def passed_to(self, offset: int) -> None:
        """Know that the reader has come to ``offset``, also where no record was."""
        if self._running is not None and self.accepting and not self._inbox:
            self._running[2].pass_to(offset)

    @property
    def traces(self) -> int:
        """How many records were taken and are not done."""
        return self._waiting + (self._running[2].in_flight if self._running else 0)

    @property
    def bytes(self) -> int:
        """Of those, as far as they are traces."""
        return self._waiting_bytes + (self._running[3].bytes if self._running else 0)

    @property
    def load(self) -> Load:
        """What of it is under way."""
        ledger = self._running[2] if self._running else None
        oldest = ledger.oldest if ledger else None
        newest = ledger.newest if ledger else None
        if self._inbox:
            oldest = self._inbox[0][0].offset if oldest is None else oldest
            newest = self._inbox[-1][-1].offset
        span = 0 if oldest is None or newest is None else newest + 1 - oldest
        return Load(self.traces, self.bytes, span)

    @property
    def is_behind(self) -> bool:
        """Whether so much was read and not looked at yet that reading on would only fill memory."""
        return self._waiting > _WAITING

    async def relieve(self) -> None:
        """Close the oldest open windows: they wait for traces, and the partition is not read."""
        if self._running is not None:
            await self._running[0].relieve()

    async def let_go(self, seconds: float, *, drain: bool) -> None:
        """Publish what is ready, then end; what does not get done in time is abandoned.

        :param drain: close the open windows too, as they are.
        """
        self.accepting = False
        self._inbox.clear()
        if self._running is not None and not self._scope.cancel_called:
            learner, publisher, _, _ = self._running
            with anyio.move_on_after(seconds) as scope:
                try:
                    if drain:
                        await learner.drain(end=False)
                    await publisher.flush()
                except Exception as error:  # whatever it is, run() has failed with it
                    log.debug("nothing more could be published", partition=self.ours.source, reason=str(error))
            if scope.cancelled_caught:
                log.warning("let go with work under way, which is read again", partition=self.ours.source)
        self.abandon()

    def lose(self) -> None:
        """End at once, for the partition to be taken over again."""
        self.is_lost = True
        self.abandon()

    def halt(self, reason: str) -> None:
        """End at once, and the partition with it."""
        self._halted = reason
        self.abandon()

    def abandon(self) -> None:
        """End at once."""
        self.accepting = False
        self._scope.cancel()

    def _progress(self) -> None:
        self.has_published = True
        self._work.set()

    async def _pump(self, learner: Learner, ledger: Ledger, intake: Intake) -> None:
        while True:
            await self._work.wait()
            self._work.clear()
            while self._inbox and self.accepting:
                chunk = self._inbox[0]
                await learner.passed(chunk[0].offset)  # before it is taken: what it closes may be all that makes room
                room = ledger.fits([record.offset for record in chunk])
                if not room:
                    break
                part, rest = chunk[:room], chunk[room:]
                if rest:
                    self._inbox[0] = rest
                else:
                    self._inbox.popleft()
                self._waiting -= len(part)
                self._waiting_bytes -= sum(record.serialized_value_size for record in part)
                await intake.take(part, learner)
                await asyncio.sleep(0)

    async def _tick(self, learner: Learner) -> None:
        max_wait = self._shared.settings.max_wait or _TICK_SECONDS
        while True:
            await anyio.sleep(min(_TICK_SECONDS, max_wait / _TICKS_PER_WAIT))
            await learner.tick()

    def _place(self, offset: int) -> Place:
        return self.ours.topics.traces, self.ours.partition, offset
