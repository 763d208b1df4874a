"""What one transaction publishes, made of what is ready. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from msgspec.structs import replace

from operators.overload import Overload
from operators.snapshot import dump
from operators.values import Learned
from operators.version import Published
from operators.wire import encode
from stream.kafka.checks import Ours
from stream.kafka.messages import PromptRecord, encode_delta, made_of, pack, ranges

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
    recent: bytes,
    overload: Overload | None,
) -> list[Message]:
    """A version as its update, its delta and its state.

    :param offsets: of the traces of its entry, one each in their order.
    :param recent: hashes of the prompt's last trace ids, those of this version included.
    """
    entry, update = published.entry, published.update
    if entry.kind == "window":
        rejected = {id for id, _ in entry.rejected}
        learned = [offset for (id, _), offset in zip(entry.traces, offsets, strict=True) if id not in rejected]
        update = replace(update, learned=Learned(len(learned), {ours.source: ranges(learned)} if learned else {}))
    record = PromptRecord(
        snapshot=dump(published.state),
        recent=pack(recent),
        overload=overload,
        partitions=ours.count,
        lineage=ours.lineage,
    )
    key, topics = entry.prompt.encode(), ours.topics
    return [
        Message(topics.updates, key, encode(update)),
        Message(topics.deltas, key, encode_delta(made_of(entry, ours.source, offsets))),
        Message(topics.state, key, b'{"schema":%d,' % record.schema + encode(record).removeprefix(b"{")),
    ]


def size_of(messages: Sequence[Message]) -> int:
    """The bytes of all their keys and values."""
    return sum(len(each.key or b"") + len(each.value or b"") for each in messages)
