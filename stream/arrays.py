"""A document that is an array: one trace as a whole, or one a row."""

from __future__ import annotations

from typing import Any

from stream.decode import BadJson, decode
from stream.frames import MAX_RAW, MAX_VALUE, Cut, Value
from stream.readers import pick


class Array:
    """An array being read.

    :ivar whole: a reader claims a list that begins so, and all of it is one value; else each element is one.
    :ivar reason: why the whole cannot be read; empty when it can.
    """

    def __init__(self, first: Value) -> None:
        self.line = first.line
        self.values: list[Any] = []
        self.repaired: tuple[str, ...] = ()
        self.reason = ""
        self.raw = b""
        self._size = 0
        try:
            self.whole = pick([decode(first.raw).value]) is not None
        except BadJson:
            self.whole = False

    def add(self, frame: Value | Cut) -> None:
        raw = frame.head if isinstance(frame, Cut) else frame.raw
        if len(self.raw) < MAX_RAW:
            self.raw = (self.raw + (b"," if self.raw else b"") + raw)[:MAX_RAW]
        self._size += len(raw)
        if self.reason:
            return
        if isinstance(frame, Cut):
            self.reason = frame.reason
        elif self._size > MAX_VALUE:
            self.reason, self.values = f"more than {MAX_VALUE} bytes long", []
        else:
            try:
                value, repaired = decode(frame.raw)
            except BadJson as error:
                self.reason = f"element {len(self.values) + 1}: {error}"
            else:
                self.values.append(value)
                self.repaired += tuple(what for what in repaired if what not in self.repaired)
