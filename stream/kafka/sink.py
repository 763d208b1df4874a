"""The sink of a partition: a version is made durable with what became of its traces, and returns when it is."""

from __future__ import annotations

from typing import Any

import structlog
from msgspec.structs import replace

from operators.smaller import passed, smaller
from operators.version import Published
from stream.kafka.checks import Ours
from stream.kafka.intake import Intake, Known
from stream.kafka.messages import Answer
from stream.kafka.outgoing import Message, version_messages
from stream.kafka.past import Past
from stream.kafka.publisher import Publisher
from stream.kafka.room import Room, sized
from stream.kafka.shared import Shared

log = structlog.get_logger()


class Sink:
    """Hands versions to the publisher, and lets go of their traces once they are committed.

    :param past: told of each version's bullets.
    """

    def __init__(
        self, shared: Shared, ours: Ours, publisher: Publisher, intake: Intake, *, room: Room, past: Past
    ) -> None:
        self._shared = shared
        self._ours = ours
        self._publisher = publisher
        self._intake = intake
        self._room = room
        self._past = past

    def over(self, published: Published) -> str:
        """What of a version is too large for the topics, for people; nothing when it fits."""
        recent = self._intake.known(published.entry.prompt).recent.published
        return self._room.over(self._messages(published, [], recent))

    async def publish(self, published: Published) -> Published:
        """Have a version committed, or a smaller one in its place where it does not fit the topics.

        :return: what stands.
        :raises TooManyRejects: past the configured limits.
        """
        entry, intake = published.entry, self._intake
        known = intake.known(entry.prompt)
        ids = [id for id, _ in entry.traces] if entry.kind == "window" else []
        under_way = [known.under_way[id] for id in ids]
        recent = known.recent.publish(b"".join([hash for _, hash in under_way]))
        offsets = [record.offset for record, _ in under_way]
        messages = self._messages(published, offsets, recent)
        if why := self._room.over(messages):
            for each in smaller(published, self._room.share(messages[0]), why):
                messages = self._messages(each, offsets, recent)
                if not self._room.over(messages):
                    log.warning("version too large, published smaller", prompt=entry.prompt, reason=why)
                    published, entry = each, each.entry
                    break
            else:
                return await self._pass(published, known, why)
        state = sized(messages[2])
        rejected = [(known.under_way[id][0], reason) for id, reason in entry.rejected]
        messages += [intake.rejection(record, reason) for record, reason in rejected]
        control = entry.audit.get("control")
        if control is not None:
            answer = Answer(
                source=f"{self._ours.topics.controls}/{self._ours.partition}",
                offset=control,
                asked=entry.audit.get("asked", entry.kind),
                prompt=entry.prompt,
                version=entry.version,
            )
            messages.append(self._publisher.answer(answer))
        await self._publisher.publish(messages, offsets, control)
        known.recent.stand(recent)
        self._past.put(entry.prompt, entry.version, published.update.bullets)
        intake.done(entry.prompt, ids)
        intake.hold(entry.prompt, self._room.full(state))
        self._count(published, offsets)
        log.info(
            "version published",
            prompt=entry.prompt,
            window=entry.window,
            version=entry.version,
            kind=entry.kind,
            batch_size=entry.batch_size,
            changed=entry.changed,
        )
        self._bad(rejected)
        return published

    def _messages(self, published: Published, offsets: list[int], recent: bytes) -> list[Message]:
        return version_messages(
            self._ours,
            published,
            offsets,
            state=self._shared.writers.snapshot(published.state),
            recent=recent,
            overload=self._shared.controller.overload(published.entry.prompt),
        )

    async def _pass(self, published: Published, known: Known, why: str) -> Published:
        """Have the traces of a window refused that can make no version at all, and hold its prompt."""
        entry, intake = published.entry, self._intake
        intake.hold(entry.prompt, why)
        reasons = dict(entry.rejected)
        rejected = []
        for id, _ in entry.traces:
            record = known.under_way[id][0]
            if id in reasons:
                rejected.append((record, reasons[id]))
                self._publisher.reject(intake.rejection(record, reasons[id]), record.offset)
            else:
                self._publisher.refuse(record.offset, entry.prompt, id, why)
                self._shared.tally.refused += 1
        await self._publisher.flush()
        intake.done(entry.prompt, [id for id, _ in entry.traces])
        self._bad(rejected)
        return replace(published, state=passed(published))

    def _bad(self, rejected: list[tuple[Any, str]]) -> None:
        for record, reason in rejected:
            self._shared.tally.bad(f"{self._ours.source} offset {record.offset}", reason)

    def _count(self, published: Published, offsets: list[int]) -> None:
        if self._shared.reflections.found:
            topic, partition = self._ours.topics.traces, self._ours.partition
            for offset in offsets:
                self._shared.reflections.drop((topic, partition, offset))
        tally, entry = self._shared.tally, published.entry
        tally.versions += 1
        taught = len(offsets) - len(entry.rejected)
        if entry.refused:
            tally.refused += taught
        else:
            tally.learned += taught
        tally.early += published.update.stats.get("closed_by") in ("bound", "span")
