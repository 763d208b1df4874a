"""The controls of a partition: read by its owner alone, applied once and in order, each answered."""

from __future__ import annotations

from collections.abc import Callable

import anyio
import structlog
from aiokafka.errors import KafkaError
from aiokafka.structs import ConsumerRecord, TopicPartition

from operators.imports import import_source
from operators.learner import Learner
from operators.people import Undecidable
from operators.settings import Settings
from operators.state import PromptState
from operators.version import Published
from stream.kafka.checks import Ours
from stream.kafka.controls import Control, Declined, control_of, maker
from stream.kafka.history import imports_held, state_at
from stream.kafka.homes import Partitioner, home
from stream.kafka.messages import Answer
from stream.kafka.publisher import Publisher
from stream.kafka.reading import read_through
from stream.kafka.rebuilt import VersionsMissing
from stream.kafka.takeover import Reads

log = structlog.get_logger()

_POLL_SECONDS = 0.5
_READ_SECONDS = 60.0


class Asking:
    """What people ask of one partition's prompts.

    There is no consumer that waits for it: most partitions are never asked anything, so its end is looked at instead.

    :param over: what of a version is too large to publish; nothing when it fits.
    """

    def __init__(
        self,
        reads: Reads,
        ours: Ours,
        settings: Settings,
        learner: Learner,
        publisher: Publisher,
        partitioner: Partitioner,
        over: Callable[[Published], str],
    ) -> None:
        self._reads = reads
        self._ours = ours
        self._settings = settings
        self._learner = learner
        self._publisher = publisher
        self._partitioner = partitioner
        self._over = over

    async def run(self) -> None:
        """Apply controls until cancelled."""
        controls = self._ours.controls
        next = self._publisher.controls
        while True:
            try:
                end = (await self._reads.ends([controls]))[controls]
                if end > next:
                    for record in await self._read(controls, next, end):
                        await self._apply(record)
                    next = end
            except (KafkaError, TimeoutError) as error:
                log.warning("controls cannot be read now", partition=self._ours.partition, reason=str(error))
            next = max(next, self._publisher.controls)
            await anyio.sleep(_POLL_SECONDS)

    async def _read(self, controls: TopicPartition, start: int, end: int) -> list[ConsumerRecord]:
        found: list[ConsumerRecord] = []
        await read_through(self._reads.connection, {controls: (start, end)}, found.append, timeout=_READ_SECONDS)
        return found

    async def _apply(self, record: ConsumerRecord) -> None:
        asked, prompt = "", ""
        try:
            control = control_of(record.value)
            asked, prompt = control.kind, control.prompt
            make = maker(
                control,
                record.offset,
                record.timestamp,
                self._settings,
                self._ours.lineage,
                then=await self._then(control),
            )
            published = await self._learner.amend(prompt, self._fitting(make))
        except (Declined, Undecidable) as error:
            source = f"{self._ours.topics.controls}/{self._ours.partition}"
            held = error.held if isinstance(error, Declined) else None
            answer = Answer(
                source=source, offset=record.offset, asked=asked, prompt=prompt, reason=str(error), held=held
            )
            await self._publisher.publish([self._publisher.answer(answer)], [], record.offset)
            log.warning("a control was declined", kind=asked, prompt=prompt, offset=record.offset, reason=str(error))
        else:
            log.info("a control was applied", kind=asked, prompt=prompt, version=published.update.version)

    def _fitting(self, make: Callable[[PromptState], Published]) -> Callable[[PromptState], Published]:
        def fitting(state: PromptState) -> Published:
            published = make(state)
            if why := self._over(published):
                raise Declined(f"it would make {why}")
            return published

        return fitting

    async def _then(self, control: Control) -> PromptState | None:
        """What a rollback goes back to.

        :raises Declined: when the prompt is not at home here, or an import is in its newest version already.
        """
        here = self._ours
        at = home(control.prompt.encode(), self._partitioner, here.count)
        if at != here.partition:
            raise Declined(f"prompt {control.prompt!r} is at home in partition {at}: send its controls there")
        if control.kind not in ("rollback", "import"):
            return None
        deltas = TopicPartition(here.topics.deltas, here.partition)
        if control.kind == "import":
            imports = await imports_held(self._reads, deltas, control.prompt)
            if import_source(control.bullets) in imports.sources:
                raise Declined(f"version {imports.newest} has all of it already", imports.newest)
            return None
        assert control.to is not None
        try:
            then = await state_at(self._reads, deltas, control.prompt, control.to)
        except VersionsMissing as error:
            raise Declined(str(error)) from None
        if not then.newest:
            raise Declined(f"there is no prompt {control.prompt!r}")
        return then.state
