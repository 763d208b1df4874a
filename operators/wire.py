"""Values as bytes: JSON, UTF-8, with sets sorted, so that equal values are equal bytes."""

from __future__ import annotations

from typing import ClassVar, Protocol, TypeVar

import msgspec

T = TypeVar("T")

_DEFAULT_SCHEMA = 1


class Message(Protocol):
    """A Struct whose field ``schema``, 1 by default, is the version of its schema document."""

    __struct_config__: ClassVar[msgspec.structs.StructConfig]

    @property
    def schema(self) -> int: ...


_encoder = msgspec.json.Encoder(order="deterministic")


def message(value: Message) -> bytes:
    """One line of JSON of a message, whose ``schema`` is written also where defaults are left out."""
    body = encode(value)
    if not value.__struct_config__.omit_defaults or value.schema != _DEFAULT_SCHEMA:
        return body
    return b'{"schema":%d' % _DEFAULT_SCHEMA + (b"}" if body == b"{}" else b"," + body[1:])


def encode(value: object) -> bytes:
    """One line of JSON."""
    return _encoder.encode(value)
