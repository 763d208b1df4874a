"""A record that is no trace, as it is kept in the topic of rejects, and back. Pure.

Key and value are the original bytes. All else is in headers of ours, as text, for a person with a console consumer:

    tracecomb-reject      1, the version of this layout
    tracecomb-reason      why
    tracecomb-topic, -partition, -offset, -timestamp    where it came from; its own time, in milliseconds
    tracecomb-headers     its headers in order, as JSON: [[name, value or null], …], each in base64
    tracecomb-null        "value": it had none. It is written empty then: with a null key beside it no client would send
                          it, and on a compacted topic it would delete other rejects of its key
    tracecomb-cut         of what was too large to copy, as JSON: {"value": {"bytes": …, "sha256": …}, …}. Of a value
                          the first 64 kB are kept, of a key 4 kB, of headers nothing
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Iterable, Sequence
from hashlib import sha256
from typing import NamedTuple

import msgspec
from msgspec import Struct

VERSION = 1
KEPT_VALUE = 64 << 10
KEPT_KEY = 4 << 10

_PREFIX = "tracecomb-"
_OVERHEAD = 1024  # of a record and its batch, with the names of all our headers
_REASON = 4000

Header = tuple[str, bytes | None]


class NotRejected(ValueError):
    """The record is not one that :func:`encode` made; the message says what is wrong with it."""


class Cut(Struct, frozen=True):
    """What is known of a part that was too large to copy: its size, and its SHA-256 in hex."""

    bytes: int
    sha256: str


class Rejected(Struct, frozen=True, kw_only=True):
    """A record that was rejected, where it stood, and why.

    :param headers: names that are not UTF-8 have surrogate escapes.
    :param timestamp: its own, in milliseconds; it may be any number.
    :param cut: by ``key``, ``value`` and ``headers``, the parts of which only the beginning, or nothing, is here.
    """

    topic: str
    partition: int
    offset: int
    timestamp: int
    reason: str
    key: bytes | None = None
    value: bytes | None = None
    headers: tuple[Header, ...] = ()
    cut: dict[str, Cut] = {}


class Encoded(NamedTuple):
    """What to send to the topic of rejects, without a timestamp: the broker's time is when it was rejected."""

    key: bytes | None
    value: bytes
    headers: list[tuple[str, bytes]]


def encode(rejected: Rejected, limit: int) -> Encoded:
    """The record for the topic of rejects.

    :param limit: in bytes, uncompressed; a larger one is cut down to under 90 kB.
    """
    kept, headers = rejected, _headers(rejected.headers)
    reason = _printable(rejected.reason)
    size = len(rejected.key or b"") + len(rejected.value or b"") + len(headers) + 4 * len(reason) + _OVERHEAD
    if size > limit:
        kept, headers = _cut(rejected, headers)
    own = {
        "reject": str(VERSION),
        "reason": reason,
        "topic": rejected.topic,
        "partition": str(rejected.partition),
        "offset": str(rejected.offset),
        "timestamp": str(rejected.timestamp),
    }
    if headers:
        own["headers"] = headers.decode()
    if kept.value is None:
        own["null"] = "value"
    if kept.cut:
        own["cut"] = msgspec.json.encode(kept.cut).decode()
    return Encoded(kept.key, kept.value or b"", [(_PREFIX + name, text.encode()) for name, text in own.items()])


def decode(key: bytes | None, value: bytes | None, headers: Sequence[tuple[str, bytes | None]]) -> Rejected:
    """The original of a record of the topic of rejects.

    :raises NotRejected: when it is none of ours.
    """
    own = {name.removeprefix(_PREFIX): content or b"" for name, content in headers if name.startswith(_PREFIX)}
    if own.get("reject") != str(VERSION).encode():
        raise NotRejected(f"it has no header {_PREFIX}reject with version {VERSION}")
    try:
        return Rejected(
            topic=own["topic"].decode(),
            partition=int(own["partition"]),
            offset=int(own["offset"]),
            timestamp=int(own["timestamp"]),
            reason=own["reason"].decode(),
            key=key,
            value=None if own.get("null") == b"value" else value,
            headers=_original(own.get("headers", b"[]")),
            cut=msgspec.json.decode(own.get("cut", b"{}"), type=dict[str, Cut]),
        )
    except KeyError as error:
        raise NotRejected(f"the header {_PREFIX}{error.args[0]} is missing") from error
    except ValueError as error:
        raise NotRejected(f"a header cannot be read: {error}") from error


def _cut(rejected: Rejected, headers: bytes) -> tuple[Rejected, bytes]:
    cut: dict[str, Cut] = {}
    key, value = rejected.key, rejected.value
    if key is not None and len(key) > KEPT_KEY:
        cut["key"], key = _told(key), key[:KEPT_KEY]
    if value is not None and len(value) > KEPT_VALUE:
        cut["value"], value = _told(value), value[:KEPT_VALUE]
    if headers and len(headers) > KEPT_KEY:
        cut["headers"], headers = _told(headers), b""
    return Rejected(
        topic=rejected.topic,
        partition=rejected.partition,
        offset=rejected.offset,
        timestamp=rejected.timestamp,
        reason=rejected.reason,
        key=key,
        value=value,
        headers=rejected.headers,
        cut=cut,
    ), headers


def _told(part: bytes) -> Cut:
    return Cut(len(part), sha256(part).hexdigest())


def _headers(headers: Iterable[Header]) -> bytes:
    pairs = [
        (_base64(name.encode("utf-8", "surrogateescape")), None if content is None else _base64(content))
        for name, content in headers
    ]
    return msgspec.json.encode(pairs) if pairs else b""


def _original(headers: bytes) -> tuple[Header, ...]:
    pairs = msgspec.json.decode(headers, type=list[tuple[str, str | None]])
    return tuple(
        (
            b64decode(name, validate=True).decode("utf-8", "surrogateescape"),
            None if content is None else b64decode(content, validate=True),
        )
        for name, content in pairs
    )


def _base64(content: bytes) -> str:
    return b64encode(content).decode()


def _printable(reason: str) -> str:
    text = reason.encode("utf-8", "backslashreplace").decode()
    return text if len(text) <= _REASON else text[: _REASON - 1] + "…"
