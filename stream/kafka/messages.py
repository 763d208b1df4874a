"""What the service writes besides updates, as values and as bytes.

``prompt-deltas`` holds three kinds of records, told apart by ``kind``: a version (``window``, ``import``, ``rollback``,
``edit``: :class:`Made`), what became of records that made no version (``fates``: :class:`Fates`, without a key, for it
is about a partition), and the answer to a control (``answer``: :class:`Answer`). ``prompt-state`` holds a
:class:`PromptRecord` by prompt and one :class:`PartitionRecord` under :data:`PARTITION_KEY`.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Iterable
from typing import Any, Literal, TypeVar

import msgspec
from msgspec import Struct

from operators.entry import Entry
from operators.explanation import SizesState
from operators.overload import Overload
from operators.snapshot import Snapshot
from operators.values import Learned
from operators.wire import encode

SCHEMA = 1

PARTITION_KEY = b"\xfftracecomb/partition"
"""The key of what is kept about a partition: no prompt has it, for prompts' names are UTF-8."""

HASH = 8
"""Bytes of a trace id's hash."""

T = TypeVar("T", bound=Struct)


class Made(Entry, frozen=True, omit_defaults=True, kw_only=True):
    """A version's entry, with where its traces stood.

    :param source: ``topic/partition`` of its traces.
    :param offsets: of ``traces``, one each in the same order.
    """

    source: str = ""
    offsets: tuple[int, ...] = ()


class Fates(Struct, frozen=True, omit_defaults=True, kw_only=True):
    """What became of records that are in no window; rejected ones are in ``trace-rejects``.

    :param source: ``topic/partition`` of them all.
    :param duplicates: (offset, prompt, trace id) of traces that were learned from already.
    :param skipped: offsets of records with no trace in them.
    :param refused: (offset, prompt, trace id, reason) of traces of a prompt that can hold no more.
    :param lost: (first, last) of offsets that expired, or were deleted, before they were read.
    """

    source: str
    kind: Literal["fates"] = "fates"
    duplicates: tuple[tuple[int, str, str], ...] = ()
    skipped: tuple[int, ...] = ()
    refused: tuple[tuple[int, str, str, str], ...] = ()
    lost: tuple[tuple[int, int], ...] = ()


class Answer(Struct, frozen=True, omit_defaults=True, kw_only=True):
    """What became of a control.

    :param source: ``topic/partition`` of the control, and ``offset`` its offset.
    :param asked: the kind of control.
    :param version: the version it made; None when it made none, for the ``reason``.
    :param held: the version that had all that was asked for already, where that is the reason.
    """

    source: str
    offset: int
    kind: Literal["answer"] = "answer"
    asked: str = ""
    prompt: str = ""
    version: int | None = None
    reason: str = ""
    held: int | None = None


class PromptRecord(Struct, frozen=True, omit_defaults=True, kw_only=True):
    """All that a prompt's next version depends on.

    :param recent: 8-byte hashes of the last trace ids that were learned from, oldest first, as base64.
    :param overload: the prompt's clamp.
    :param partitions: N.
    """

    snapshot: Snapshot
    schema: int = SCHEMA
    recent: str = ""
    overload: Overload | None = None
    partitions: int = 0
    lineage: str = ""


class Committed(Struct, frozen=True):
    """A committed pair."""

    offset: int
    metadata: str


class PartitionRecord(Struct, frozen=True, omit_defaults=True, kw_only=True):
    """What was committed for a partition, as Kafka may forget it, and what the batch size controller knew then."""

    traces: Committed
    controls: Committed
    schema: int = SCHEMA
    partitions: int = 0
    lineage: str = ""
    sizes: SizesState | None = None


class UpdateHead(Struct, frozen=True):
    """What a take-over must know of an update."""

    class Learned(Struct, frozen=True):
        offsets: dict[str, list[tuple[int, int]]] = {}

    version: int
    lineage: str = ""
    learned: Learned = Learned()


decode_made = msgspec.json.Decoder(Made).decode
decode_prompt_record = msgspec.json.Decoder(PromptRecord).decode
decode_partition_record = msgspec.json.Decoder(PartitionRecord).decode
decode_update_head = msgspec.json.Decoder(UpdateHead).decode


class _Kind(Struct, frozen=True):
    kind: str = ""


_kind = msgspec.json.Decoder(_Kind).decode
_fates = msgspec.json.Decoder(Fates).decode
_answer = msgspec.json.Decoder(Answer).decode


def decode_delta(data: bytes) -> Made | Fates | Answer:
    """A record of ``prompt-deltas``.

    :raises msgspec.MsgspecError: when it is none of ours.
    """
    kind = _kind(data).kind
    return _fates(data) if kind == "fates" else _answer(data) if kind == "answer" else decode_made(data)


def encode_delta(record: Made | Fates | Answer) -> bytes:
    """A record of ``prompt-deltas`` as bytes, with the version of its schema and its kind, though they are defaults."""
    head: dict[str, Any] = {"schema": SCHEMA}
    if not isinstance(record, Made):
        head["kind"] = record.kind
    return msgspec.json.encode(head)[:-1] + b"," + encode(record).removeprefix(b"{")


def made_of(entry: Entry, source: str, offsets: Iterable[int]) -> Made:
    """A version's entry as it stands in ``prompt-deltas``; its audit names the control that asked for it."""
    known = {name: getattr(entry, name) for name in entry.__struct_fields__}
    return Made(**known, source=source, offsets=tuple(offsets))


def learned_of(made: Made) -> Learned:
    """What an update says that it was learned from."""
    if made.kind != "window" or made.refused:
        return Learned()
    rejected = {id for id, _ in made.rejected}
    learned = [offset for (id, _), offset in zip(made.traces, made.offsets, strict=True) if id not in rejected]
    return Learned(len(learned), {made.source: ranges(learned)} if learned else {})


def pack(hashes: bytes) -> str:
    """Hashes of trace ids, one after another, as text."""
    return b64encode(hashes).decode()


def unpack(text: str) -> bytes:
    """The hashes that :func:`pack` was given.

    :raises ValueError: when it is no such text.
    """
    data = b64decode(text, validate=True)
    if len(data) % HASH:
        raise ValueError(f"{len(data)} bytes are no hashes of {HASH} bytes each")
    return data


def ranges(offsets: Iterable[int]) -> list[tuple[int, int]]:
    """Offsets as (first, last) of each run of them, both included, ascending."""
    found: list[tuple[int, int]] = []
    first = last = -2
    for offset in sorted(offsets):
        if offset == last + 1:
            last = offset
            continue
        if first >= 0:
            found.append((first, last))
        first = last = offset
    if first >= 0:
        found.append((first, last))
    return found
