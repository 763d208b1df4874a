"""Intake: what becomes of each record of a partition, chunk by chunk in the order of the log."""

from __future__ import annotations

from collections.abc import Sequence

import structlog
from aiokafka.structs import ConsumerRecord
from msgspec.structs import replace

from operators.learner import Learner
from operators.values import Trace
from stream.config import fill
from stream.kafka import rejected
from stream.kafka.checks import Ours
from stream.kafka.homes import Partitioner, home
from stream.kafka.ledger import Ledger
from stream.kafka.outgoing import Message
from stream.kafka.past import Past
from stream.kafka.prompts import Prompts
from stream.kafka.publisher import Publisher
from stream.kafka.recent import Recent, hash_of
from stream.kafka.room import Room
from stream.kafka.sift import NoTrace, trace_of
from stream.kafka.tally import Tally

log = structlog.get_logger()

DEFAULT_PROMPT = "default"

UnderWay = tuple[ConsumerRecord, bytes]
"""A trace that was taken and has no version yet: its record, and its id's hash."""


class Known:
    """What is known of the traces of one prompt.

    :param recent: its last trace ids.
    """

    __slots__ = ("held", "recent", "under_way")

    def __init__(self, recent: Recent) -> None:
        self.recent = recent
        self.under_way: dict[str, UnderWay] = {}
        """Traces that were fed and have no version yet, by id."""
        self.held = ""
        """Why no window of the prompt starts; nothing when one may."""


class Intake:
    """Gives each record its fate: fed to the learner, a duplicate, skipped, refused, or rejected.

    :param past: looks up the versions that traces name.
    :param template: the prompt of traces that name none.
    """

    def __init__(
        self,
        ours: Ours,
        ledger: Ledger,
        prompts: Prompts,
        publisher: Publisher,
        tally: Tally,
        *,
        partitioner: Partitioner,
        template: str | None,
        room: Room,
        past: Past,
    ) -> None:
        self._ours = ours
        self._ledger = ledger
        self._prompts = prompts
        self._publisher = publisher
        self._tally = tally
        self._partitioner = partitioner
        self._template = template
        self._room = room
        self._past = past
        self._known: dict[str, Known] = {}
        self.bytes = 0
        """Of the records of traces under way."""

    async def take(self, records: Sequence[ConsumerRecord], learner: Learner) -> None:
        """Give each record its fate.

        :param records: as many as the ledger has room for, in order.
        :raises TooManyRejects: past the configured limits.
        """
        offsets = [record.offset for record in records]
        last = offsets[-1]
        wanted = self._ledger.deliver(offsets)
        if len(wanted) < len(offsets):
            left = set(wanted)
            records = [record for record in records if record.offset in left]
        traces: list[Trace] = []
        places: list[int] = []
        for record in records:
            try:
                trace = trace_of(record.value)
                if trace is None:
                    self._publisher.skip(record.offset)
                    self._tally.skipped += 1
                    continue
                known = self._known.get(trace.prompt)
                if known is None:
                    trace, known = self._at_home(trace, record)
            except NoTrace as error:
                self.reject(record, str(error))
                continue
            id = trace.id
            hash = hash_of(id)
            if id in known.under_way or not known.recent.take(hash):
                self._publisher.duplicate(record.offset, trace.prompt, id)
                self._tally.duplicates += 1
                continue
            if known.held:
                self._publisher.refuse(record.offset, trace.prompt, id, known.held)
                self._tally.refused += 1
                continue
            known.under_way[id] = record, hash
            self.bytes += record.serialized_value_size
            traces.append(trace)
            places.append(record.offset)
        self._tally.good(len(traces))
        if traces:
            if missing := self._past.missing(traces, learner):
                await self._past.find(missing)
            await learner.feed(traces, places)
        await learner.passed(last)

    def known(self, prompt: str) -> Known:
        """What is known of a prompt's traces."""
        found = self._known.get(prompt)
        if found is None:
            found = self._known[prompt] = Known(self._prompts.recent(prompt))
            self.hold(prompt, self._room.full(self._prompts.size(prompt)))
        return found

    def hold(self, prompt: str, why: str) -> None:
        """Start no window of a prompt any more, or start them again where there is no reason against it."""
        known = self.known(prompt)
        if why and not known.held:
            log.error(
                "prompt held, its traces are refused",
                prompt=prompt,
                reason=why,
                instead="roll it back or remove bullets, or raise max_message_bytes under [kafka]",
            )
        elif known.held and not why:
            log.info("prompt not held any more", prompt=prompt)
        known.held = why

    def offset(self, trace: Trace) -> int:
        """Where a trace under way stood."""
        return int(self._known[trace.prompt].under_way[trace.id][0].offset)

    def reject(self, record: ConsumerRecord, reason: str) -> None:
        """Reject a record that is in no window.

        :raises TooManyRejects: past the configured limits.
        """
        self._publisher.reject(self.rejection(record, reason), record.offset)
        self._tally.bad(f"{self._ours.source} offset {record.offset}", reason)

    def rejection(self, record: ConsumerRecord, reason: str) -> Message:
        """What ``trace-rejects`` gets of a record."""
        encoded = rejected.encode(
            rejected.Rejected(
                topic=record.topic,
                partition=record.partition,
                offset=record.offset,
                timestamp=record.timestamp,
                reason=reason,
                key=record.key,
                value=record.value,
                headers=tuple(record.headers),
            ),
            self._room.limit,
        )
        return Message(self._ours.topics.rejects, encoded.key, encoded.value, encoded.headers)

    def done(self, prompt: str, ids: Sequence[str]) -> None:
        """Let go of traces whose version is committed."""
        under_way = self._known[prompt].under_way
        for id in ids:
            self.bytes -= under_way.pop(id)[0].serialized_value_size

    def _at_home(self, trace: Trace, record: ConsumerRecord) -> tuple[Trace, Known]:
        """The trace under the prompt that it belongs to, if that is at home in this partition."""
        prompt = trace.prompt
        if not prompt:
            prompt = self._prompt_of(trace, record.key)
            trace = replace(trace, prompt=prompt)
        if prompt not in self._known:
            at = home(prompt.encode(), self._partitioner, self._ours.count)
            if at != self._ours.partition:
                self._tally.foreign += 1
                raise NoTrace(
                    f"foreign: prompt {prompt!r} is at home in partition {at} ({self._partitioner}); "
                    "key traces by their prompt, with that partitioner"
                )
        return trace, self.known(prompt)

    def _prompt_of(self, trace: Trace, key: bytes | None) -> str:
        named = fill(self._template, trace.agent) if self._template else ""
        if named or not key:
            return named or DEFAULT_PROMPT
        try:
            return key.decode()
        except UnicodeDecodeError:
            raise NoTrace("it names no prompt, and its key is not UTF-8") from None
