"""The sink of a partition: a version is made durable with what became of its traces, and returns when it is."""

from __future__ import annotations

import structlog

from operators.version import Published
from stream.kafka.checks import Ours
from stream.kafka.intake import Intake
from stream.kafka.messages import Answer
from stream.kafka.outgoing import version_messages
from stream.kafka.publisher import Publisher
from stream.kafka.shared import Shared

log = structlog.get_logger()


class Sink:
    """Hands versions to the publisher, and lets go of their traces once they are committed."""

    def __init__(self, shared: Shared, ours: Ours, publisher: Publisher, intake: Intake) -> None:
        self._shared = shared
        self._ours = ours
        self._publisher = publisher
        self._intake = intake

    async def publish(self, published: Published) -> None:
        """Have a version committed.

        :raises TooManyRejects: past the configured limits.
        """
        entry, ours, intake = published.entry, self._ours, self._intake
        known = intake.known(entry.prompt)
        ids = [id for id, _ in entry.traces] if entry.kind == "window" else []
        under_way = [known.under_way[id] for id in ids]
        recent = known.recent.publish(b"".join([hash for _, hash in under_way]))
        offsets = [record.offset for record, _ in under_way]
        messages = version_messages(
            ours,
            published,
            offsets,
            state=self._shared.writers.snapshot(published.state),
            recent=recent,
            overload=self._shared.controller.overload(entry.prompt),
        )
        rejected = [(known.under_way[id][0], reason) for id, reason in entry.rejected]
        messages += [intake.rejection(record, reason) for record, reason in rejected]
        control = entry.audit.get("control")
        if control is not None:
            answer = Answer(
                source=f"{ours.topics.controls}/{ours.partition}",
                offset=control,
                asked=entry.audit.get("asked", entry.kind),
                prompt=entry.prompt,
                version=entry.version,
            )
            messages.append(self._publisher.answer(answer))
        await self._publisher.publish(messages, offsets, control)
        known.recent.stand(recent)
        intake.done(entry.prompt, ids)
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
        for record, reason in rejected:
            self._shared.tally.bad(f"{ours.source} offset {record.offset}", reason)

    def _count(self, published: Published, offsets: list[int]) -> None:
        if self._shared.reflections.found:
            topic, partition = self._ours.topics.traces, self._ours.partition
            for offset in offsets:
                self._shared.reflections.drop((topic, partition, offset))
        tally, entry = self._shared.tally, published.entry
        tally.versions += 1
        tally.learned += len(offsets) - len(entry.rejected)
        tally.early += published.update.stats.get("closed_by") in ("bound", "span")
