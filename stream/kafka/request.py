"""Asking a service for a version: a control is sent, and its answer awaited."""

from __future__ import annotations

from math import ceil
from typing import NamedTuple

import anyio
import msgspec
from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError, MessageSizeTooLargeError
from aiokafka.structs import TopicPartition

from stream.config import Config
from stream.kafka.cluster import ClusterError, Unanswered, answering
from stream.kafka.connection import connection
from stream.kafka.controls import Control, encode_control
from stream.kafka.layout import MAX_MESSAGE_BYTES
from stream.kafka.lookup import ANSWER_SECONDS, Lookup, name_of
from stream.kafka.messages import Answer, Made, decode_delta

_POLL_MS = 200
_AGAIN_SECONDS = 0.2
_SEND_SECONDS = 15.0


class Sent(NamedTuple):
    """A control that stands in its topic.

    :param since: the offset of the home's deltas after which its answer comes.
    """

    place: TopicPartition
    offset: int
    deltas: TopicPartition
    since: int

    def __str__(self) -> str:
        return (
            f"the control is in {name_of(self.place)} at offset {self.offset} and will be applied when a service runs "
            "(`tracecomb run`), so do not ask again"
        )


class Answered(NamedTuple):
    """What a service made of a control; ``made`` is the entry of its version."""

    answer: Answer
    made: Made | None


async def send(lookup: Lookup, config: Config, control: Control) -> Sent:
    """Write a control to the home of its prompt.

    :raises ClusterError: when it is not written; the message says so where that is not known.
    """
    place = lookup.home(config.topics.controls, control.prompt)
    deltas = lookup.home(config.topics.deltas, control.prompt)
    _, since = await lookup.span(deltas)
    value = encode_control(control)
    if len(value) > MAX_MESSAGE_BYTES:
        raise ClusterError(
            f"the control would have {len(value):,} bytes, and {place.topic} takes {MAX_MESSAGE_BYTES:,}; import the "
            "playbook in parts"
        )
    producer = AIOKafkaProducer(
        **connection(config.kafka),
        acks="all",
        enable_idempotence=True,
        compression_type="zstd",
        max_request_size=2 * MAX_MESSAGE_BYTES,
        request_timeout_ms=int(ANSWER_SECONDS * 1_000),
    )
    try:
        with answering(config.kafka, ANSWER_SECONDS, "whether it takes a control"):
            await producer.start()
        # Longer than a request may take, so that its outcome is known before we give up.
        doing = f"whether {name_of(place)} holds the control now, which `tracecomb history` will show"
        with answering(config.kafka, _SEND_SECONDS, doing):
            try:
                written = await producer.send_and_wait(place.topic, value, control.prompt.encode(), place.partition)
            except MessageSizeTooLargeError as error:
                raise ClusterError(
                    f"{place.topic} does not take a control of {len(value):,} bytes; import the playbook in parts"
                ) from error
    finally:
        with anyio.move_on_after(ANSWER_SECONDS, shield=True):
            await producer.stop()
    return Sent(place, written.offset, deltas, since)


async def answer_to(lookup: Lookup, sent: Sent, timeout: float) -> Answered:
    """What a service answers.

    :param timeout: seconds to wait for it.
    :raises Unanswered: when none has answered by then.
    """
    consumer, tp = lookup.consumer, sent.deltas
    lookup.reading = sent
    consumer.assign([tp])
    consumer.seek(tp, sent.since)
    made: Made | None = None
    began = anyio.current_time()
    with anyio.move_on_after(timeout):
        while True:
            waited = int(anyio.current_time() - began)
            lookup.progress.at("waiting for a service to answer", waited, ceil(timeout))
            try:
                found = await consumer.getmany(tp, timeout_ms=_POLL_MS)
            except KafkaError:  # the control is safe, and a broker that is away may come back in time
                await anyio.sleep(_AGAIN_SECONDS)
                continue
            for record in found.get(tp, ()):
                try:
                    delta = decode_delta(record.value or b"")
                except msgspec.MsgspecError:
                    continue
                if isinstance(delta, Made) and delta.audit.get("control") == sent.offset:
                    made = delta
                elif isinstance(delta, Answer) and (delta.source, delta.offset) == (name_of(sent.place), sent.offset):
                    return Answered(delta, made)
    raise Unanswered(f"no service has answered within {timeout:g} s: {sent}")
