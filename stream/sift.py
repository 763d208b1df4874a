"""What in one file is a trace and what is not, and whether there is a trace in it at all."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from hashlib import blake2b
from typing import Any

import msgspec

from operators.values import Trace
from stream.arrays import Array
from stream.decode import BadJson, decode
from stream.documents import begin, documents
from stream.frames import MAX_RAW, Cut, End, Value, lines
from stream.readers import NotATrace, Reader, Reading, own, pick
from stream.records import Bad, Found, Record, Skipped
from stream.shape import binary, shape

GIVE_UP_VALUES = 1_000
GIVE_UP_BYTES = 32 << 20
"""A file whose first so many values, or bytes of them, hold no trace is skipped without reading on."""

_ENCODER = msgspec.json.Encoder(order="deterministic")
_NO_OUTCOME = Trace().outcome


class Sift:
    """One file being read. What is bad is held back until a trace shows that the file is one of traces."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._readings: dict[str, Reading] = {}
        self._records: list[Record] = []
        self._held: list[Bad] = []
        self._held_bytes = 0
        self._found = False
        self._own = True
        self._unknown = ""
        self._json = False

    def read(self, blocks: Iterator[bytes]) -> Iterator[list[Record]]:
        """Yield the file's records in order, as its blocks come in; or one ``Skipped``."""
        kind, head, rest = begin(blocks)
        if what := binary(head):
            yield [Skipped(self._name, what)]
            return
        for _ in self._lines(rest) if kind == "lines" else self._documents(rest):
            if self._hopeless:
                yield [self._skipped(f"its first {len(self._held):,} values")]
                return
            if self._found and self._records:
                yield self._take()
        yield self._end()

    def pair(self, request: object, response: object) -> list[Record]:
        """The records of a request and its response, in two files: empty when no reader knows them as one trace."""
        value, self._json = {"request": request, "response": response}, True
        if pick(value) is None:
            return []
        self._value(1, value, b"")
        return self._end()

    def _lines(self, blocks: Iterable[bytes]) -> Iterator[None]:
        for batch in lines(blocks):
            if isinstance(batch, Cut):
                self._bad(batch.line, batch.reason, batch.head)
            else:
                for line, raw in enumerate(batch.raws, batch.first):
                    if raw and not raw.isspace():
                        self._raw(line, raw)
                    if self._hopeless:
                        break
            yield

    def _documents(self, blocks: Iterable[bytes]) -> Iterator[None]:
        array: Array | None = None
        for frame in documents(blocks):
            if isinstance(frame, End):
                if array is None:
                    self._bad(frame.line, "an empty list", b"[]")
                elif array.whole:
                    self._array(array)
                array = None
            elif isinstance(frame, Value) and not frame.element:
                self._raw(frame.line, frame.raw)
            else:
                if array is None and isinstance(frame, Value):
                    array = Array(frame)
                if array is None or not array.whole:
                    self._cut(frame) if isinstance(frame, Cut) else self._raw(frame.line, frame.raw)
                else:
                    array.add(frame)
            yield
        if array is not None and array.whole:
            self._array(array)
            yield

    def _array(self, array: Array) -> None:
        if array.reason:
            self._bad(array.line, array.reason, array.raw)
        else:
            self._json = True
            self._value(array.line, array.values, array.raw, array.repaired)

    def _cut(self, cut: Cut) -> None:
        self._bad(cut.line, cut.reason, cut.head)

    def _raw(self, line: int, raw: bytes) -> None:
        if self._own and (trace := own.fast(raw)) is not None:
            self._trace(line, trace, raw)
            return
        try:
            value, repaired = decode(raw)
        except BadJson as error:
            self._bad(line, str(error), raw)
        else:
            self._json = True
            self._value(line, value, raw, repaired)

    def _value(self, line: int, value: object, raw: bytes, repaired: tuple[str, ...] = ()) -> None:
        if isinstance(value, list) and value and pick(value[:1]) is None:
            # Not a trace but a list of them.
            for element in value:
                self._one(line, element, msgspec.json.encode(element), repaired)
                if self._hopeless:
                    break
        else:
            self._one(line, value, raw, repaired)

    def _one(self, line: int, value: Any, raw: bytes, repaired: tuple[str, ...]) -> None:
        reader = pick(value[:1] if isinstance(value, list) else value)
        if reader is None:
            reason = f"{shape(value)}: no reader knows it"
            self._unknown = self._unknown or reason
            self._bad(line, reason, raw)
            return
        self._own = reader is own.READER
        try:
            placed = self._reading(reader).take(value, line)
        except (NotATrace, RecursionError) as error:
            self._bad(line, f"{reader.name}: {error}", raw)
            return
        for start, trace in placed:
            self._trace(start, trace, raw, repaired)

    def _reading(self, reader: Reader) -> Reading:
        if reader.name not in self._readings:
            self._readings[reader.name] = reader.start()
        return self._readings[reader.name]

    def _trace(self, line: int, trace: Trace, raw: bytes, repaired: tuple[str, ...] = ()) -> None:
        named = trace.id != ""
        if trace.outcome is not _NO_OUTCOME and trace.outcome == _NO_OUTCOME:
            # msgspec leaves out a default only when it is the same object, and equal traces must have one digest.
            trace = msgspec.structs.replace(trace, outcome=_NO_OUTCOME)
        try:
            content = _ENCODER.encode(msgspec.structs.replace(trace, id="") if named else trace)
        except (OverflowError, RecursionError, ValueError) as error:
            self._bad(line, f"cannot be written as JSON: {error}", raw)
            return
        if not named:
            trace = msgspec.structs.replace(trace, id=blake2b(content, digest_size=16).hexdigest())
        if not self._found:
            self._found = True
            self._records += self._held
            self._held, self._held_bytes = [], 0
        digest = blake2b(content, digest_size=8).digest()
        self._records.append(Found(trace, self._name, line, digest, repaired))

    @property
    def _hopeless(self) -> bool:
        return len(self._held) >= GIVE_UP_VALUES or self._held_bytes >= GIVE_UP_BYTES

    def _bad(self, line: int, reason: str, raw: bytes) -> None:
        bad = Bad(self._name, line, reason, raw[:MAX_RAW])
        if self._found:
            self._records.append(bad)
        else:
            self._held.append(bad)
            self._held_bytes += len(bad.raw)

    def _take(self) -> list[Record]:
        records, self._records = self._records, []
        return records

    def _end(self) -> list[Record]:
        for reading in self._readings.values():
            for line, trace in reading.close():
                self._trace(line, trace, b"")
        return self._take() if self._found else [self._skipped("it")]

    def _skipped(self, where: str) -> Skipped:
        if not self._held:
            return Skipped(self._name, "no whole trace in it" if self._readings else "empty")
        first = self._held[0]
        reason = self._unknown or f"line {first.line}: {first.reason}"
        return Skipped(self._name, f"no {'trace' if self._json else 'JSON'} in {where}: {reason}")
