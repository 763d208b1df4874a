"""The delivery ledger: which records of a partition are done, and the position that may be committed for them. Pure.

A ledger lives for one assignment epoch. It knows deliveries by their order, for offsets have holes: what lies between
two deliveries was never a record for us. One byte an offset is cheaper here than any set, because finding the oldest
trace in flight, marking a chunk and cutting off the done prefix then all run at the speed of memory.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import islice
from operator import lt

from msgspec import Struct

SPAN = 20_000
"""How far past the oldest record not done intake may go, in offsets: what is done then fits a commit's metadata."""

_HOLE, _FLYING, _DONE = range(3)
_BITS = bytes.maketrans(bytes((_HOLE, _FLYING, _DONE)), b"001")
_STATES = bytes.maketrans(b"01", bytes((_HOLE, _DONE)))
_ONE = bytes((_FLYING,))


class Misused(RuntimeError):
    """The ledger was told what cannot be: a mistake of the caller, after which nothing may be committed."""


class Position(Struct, frozen=True):
    """What a commit says: all below ``offset`` is done, and what is done beyond it.

    :param offset: of the next record to be read.
    :param beyond: a set as an integer: bit i is set when ``offset`` + i is done.
    """

    offset: int
    beyond: int = 0

    def __repr__(self) -> str:
        return f"Position({self.offset}, {self.beyond:#x})"  # decimal digits raise beyond 4,300 of them

    @property
    def end(self) -> int:
        """The smallest offset at and past which nothing is done."""
        return self.offset + self.beyond.bit_length()

    def covers(self, first: int, last: int | None = None) -> bool:
        """Whether all offsets from ``first`` to ``last``, both included, are done."""
        last = first if last is None else last
        start = max(first, self.offset) - self.offset
        mask = (1 << max(last + 1 - self.offset - start, 0)) - 1
        return (self.beyond >> start) & mask == mask

    def ranges(self) -> Iterator[tuple[int, int]]:
        """What is done beyond, as (first, last) offsets, both included."""
        for run in re.finditer("1+", _text(self.beyond)):
            yield self.offset + run.start(), self.offset + run.end() - 1


class Ledger:
    """Deliveries of one partition in one assignment epoch.

    :param position: what was committed when the epoch began; the first delivery is at its offset or past it.
    :param where: names the partition in errors, as ``agent-traces/3``.
    :raises Misused: when more is done beyond the offset than the span allows.
    """

    def __init__(self, position: Position, where: str = "") -> None:
        self._where = where
        if position.offset < 0 or position.beyond < 0 or position.beyond.bit_length() > SPAN:
            raise self._misused(f"no ledger starts at offset {position.offset} with what is done up to {position.end}")
        self._committed = position
        # Invariant: the byte at index 0 is in flight, or nothing below `_next` is and that offset is not known done.
        self._base = position.offset
        self._states = bytearray(_text(position.beyond).encode().translate(_STATES))
        self._next = position.offset
        self._newest: int | None = None
        self._flying = 0
        self._trim()

    @property
    def committed(self) -> Position:
        """What the group holds, as far as :meth:`commit` was told."""
        return self._committed

    @property
    def oldest(self) -> int | None:
        """The offset of the oldest delivery that is not done."""
        return self._base if self._flying else None

    @property
    def newest(self) -> int | None:
        """The offset of the newest delivery, done or not; None before the first."""
        return self._newest

    @property
    def in_flight(self) -> int:
        """How many deliveries are not done."""
        return self._flying

    @property
    def limit(self) -> int | None:
        """The first offset that may not be taken now; None when nothing is in flight, so that any may."""
        return self._base + SPAN if self._flying else None

    def fits(self, offsets: Sequence[int]) -> int:
        """How many of these ascending offsets, from the first on, may be delivered now."""
        if not offsets:
            return 0
        return bisect_left(offsets, self._base + SPAN if self._flying else offsets[0] + SPAN)

    def deliver(self, offsets: Sequence[int]) -> Sequence[int]:
        """Take records that were read, in order; returns those to work on, without the ones done in an earlier epoch.

        :param offsets: ascending, past all that were delivered before; a ``range`` is cheapest.
        :raises Misused: when they are out of order, or go further than :meth:`fits` allows.
        """
        if not offsets:
            return offsets
        first, last = offsets[0], offsets[-1]
        if first < self._next:
            raise self._misused(f"offset {first} was delivered after {self._next - 1}")
        if not isinstance(offsets, range) and not all(map(lt, offsets, islice(offsets, 1, None))):
            raise self._misused(f"the offsets from {first} to {last} are not ascending")
        if self.fits(offsets) < len(offsets):
            raise self._misused(f"offset {last} is over {SPAN} past {self.oldest or first}, the oldest not done")
        if not self._flying:
            self._pass_to(first)
        taken = self._take(offsets[bisect_left(offsets, self._base) :]) if first < self._base else self._take(offsets)
        self._next = last + 1
        self._newest = last
        self._flying += len(taken)
        self._trim()
        return taken

    def pass_to(self, offset: int) -> None:
        """Know that no record below ``offset`` is to come that was not delivered: aborted, compacted, lost or skipped.

        Without it a partition whose last records were aborted would be committed before them, until they expire.
        """
        if offset > self._next:
            if not self._flying:
                self._pass_to(offset)
            self._next = offset
            self._trim()

    def done(self, offsets: Sequence[int]) -> None:
        """Mark deliveries as done, in any order.

        :raises Misused: when one was never delivered here or is done already; nothing is marked then.
        """
        self._states = self._marked(offsets)
        self._flying -= len(offsets)
        self._trim()

    def position(self) -> Position:
        """What may be committed for all that is done."""
        return self._read(self._states, self._base)

    def preview(self, offsets: Sequence[int]) -> Position:
        """What may be committed once these are done too; marks nothing, for a transaction may yet fail.

        :raises Misused: as :meth:`done` does.
        """
        states = self._marked(offsets)
        return self._read(states, self._base + _prefix(states, self._next - self._base))

    def commit(self, position: Position) -> None:
        """Know that ``position`` was committed.

        :raises Misused: when it is behind the position committed before, or counts what is not done here.
        """
        now = self.position()
        if position.offset < self._committed.offset:
            raise self._misused(f"offset {position.offset} was committed after {self._committed.offset}")
        if position.offset > now.offset or (position.beyond >> (now.offset - position.offset)) & ~now.beyond:
            raise self._misused(f"what was committed at offset {position.offset} is not all done")
        self._committed = position

    def _take(self, offsets: Sequence[int]) -> Sequence[int]:
        if not offsets:
            return offsets
        base, states = self._base, self._states
        known = len(states)
        start, stop = offsets[0] - base, offsets[-1] + 1 - base
        if stop > known:
            states.extend(bytes(stop - known))
        if start >= known or states.find(_DONE, start, min(stop, known)) < 0:
            if stop - start == len(offsets):
                states[start:stop] = _ONE * len(offsets)
            else:
                for offset in offsets:
                    states[offset - base] = _FLYING
            return offsets
        taken = [offset for offset in offsets if states[offset - base] != _DONE]
        for offset in taken:
            states[offset - base] = _FLYING
        return taken

    def _marked(self, offsets: Sequence[int]) -> bytearray:
        """A copy of the states, which costs less than what undoing half of a bad call would, with these done."""
        base, states, offset = self._base, self._states[:], -1
        try:
            for offset in offsets:
                at = offset - base
                if at < 0 or states[at] != _FLYING:
                    raise IndexError
                states[at] = _DONE
        except IndexError:
            raise self._misused(f"offset {offset} cannot be done: {self._why(offset)}") from None
        return states

    def _why(self, offset: int) -> str:
        if offset >= self._next:
            return f"nothing past {self._next - 1} was delivered"
        if offset >= self._base and self._states[offset - self._base] == _HOLE:
            return "it is a hole in the log, no record was delivered there"
        return "it is done already, or named twice"

    def _pass_to(self, offset: int) -> None:
        """Move the base up where nothing is in flight, or a large hole would be filled byte by byte."""
        if offset > self._base:
            del self._states[: offset - self._base]
            self._base = offset

    def _trim(self) -> None:
        states = self._states
        if states and states[0] == _FLYING:
            return
        passed = _prefix(states, self._next - self._base)
        del states[:passed]
        self._base += passed

    def _read(self, states: bytearray, offset: int) -> Position:
        done = states[offset - self._base :].translate(_BITS)
        done.reverse()
        return Position(offset, int(done, 2) if done else 0)

    def _misused(self, what: str) -> Misused:
        return Misused(f"{self._where}: {what}" if self._where else what)


def _prefix(states: bytearray, delivered: int) -> int:
    """How many offsets from the base on are done, or passed by.

    :param delivered: how many offsets from the base on lie below the next delivery; negative when it is behind.
    """
    flying = states.find(_FLYING)
    if flying >= 0:
        return flying
    start = max(delivered, 0)
    rest = states[start:]
    return start + len(rest) - len(rest.lstrip(bytes((_DONE,))))


def _text(bits: int) -> str:
    """A set as one character an offset, from its first on; linear, as loops over a long integer are not."""
    return bin(bits)[:1:-1] if bits else ""
