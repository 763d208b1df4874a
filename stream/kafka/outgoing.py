"""What one transaction publishes, made of what is ready. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, cast

from msgspec import Raw
from msgspec.structs import replace

from operators.overload import Overload
from operators.version import Published
from operators.wire import encode
from stream.kafka.checks import Ours
from stream.kafka.messages import PromptRecord, encode_delta, learned_of, made_of, pack

Headers = Sequence[tuple[str, bytes]]


class Message(NamedTuple):
    """One record to send; ``partition`` is that of everything in the transaction."""

    topic: str
    key: bytes | None
    value: bytes | None
    headers: Headers = ()


def version_messages(
    ours: Ours,
    published: Published,
    offsets: Sequence[int],
    *,
    state: Raw,
    recent: bytes,
    overload: Overload | None,
) -> list[Message]:
    """A version as its update, its delta and its state.

    :param offsets: of the traces of its entry, one each in their order.
    :param state: the JSON of its state's snapshot.
    :param recent: hashes of the prompt's last trace ids, those of this version included.
    """
    made = made_of(published.entry, ours.source, offsets)
    update = replace(published.update, learned=learned_of(made))
    record = PromptRecord(
        snapshot=cast(Any, state),  # encoded as it stands
        recent=pack(recent),
        overload=overload,
        partitions=ours.count,
        lineage=ours.lineage,
    )
    key, topics = made.prompt.encode(), ours.topics
    return [
        Message(topics.updates, key, encode(update)),
        Message(topics.deltas, key, encode_delta(made)),
        Message(topics.state, key, b'{"schema":%d,' % record.schema + encode(record).removeprefix(b"{")),
    ]


def size_of(messages: Sequence[Message]) -> int:
    """The bytes of all their keys and values."""
    return sum(len(each.key or b"") + len(each.value or b"") for each in messages)
