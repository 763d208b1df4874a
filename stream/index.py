"""An index on disk: which ids are known and the digest of each one's content, in flat memory at any number of ids.

A hash table in a file: a header, then slots of 24 bytes, the key (16 bytes) and the digest (8). Linear probing with the
keys of a run kept in order, and no wrapping round: the slots, read from first to last, are sorted. So the table's bytes
depend on the set of ids alone, whatever the order and grouping in which they came, and growing is one pass over both
files. Nothing is mapped or cached: what is in memory is one descriptor.

The index is derived from a log, so it is never synced and never trusted: its header says up to which byte of which log
it goes, and holds the exclusive or of all entries, which ``sound`` compares with the table. Whoever owns the log builds
the index anew when that fails.
"""

from __future__ import annotations

import os
import struct
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from hashlib import blake2b
from pathlib import Path

from stream.atomic import Disk, temporary

KEY = 16
DIGEST = 8

_ENTRY = KEY + DIGEST
_EMPTY = bytes(_ENTRY)
_MAGIC = b"combids\n"
_FORMAT = 1
_HEADER = struct.Struct("<8sIIQQ16s24s")  # magic, format, bits, count, covered, anchor, exclusive or; then a checksum
_CHECKSUM = 8
_START = 4 * _ENTRY  # slots begin here
_LEAST_BITS = 6  # header and smallest table share one page of most file systems
_WINDOW = 16 * _ENTRY  # read at once: at half load a run of slots that is longer is rare
_CHUNK = _ENTRY << 12

_hasher = blake2b(digest_size=KEY, person=b"tracecomb.id")


def key(id: str) -> bytes:
    """The key of an id, which may be any string, lone surrogates included."""
    hasher = _hasher.copy()
    hasher.update(id.encode("utf-8", "surrogatepass"))
    return hasher.digest()


class IdIndex:
    """The table in one file, with one descriptor open.

    ``count`` is the number of ids; ``covered`` the length in bytes of the log that went into it, ``anchor`` 16 bytes
    that tell that log's last line from others.
    """

    __slots__ = ("_bits", "_disk", "_fd", "_folded", "_path", "anchor", "count", "covered")

    def __init__(self, disk: Disk, path: Path, fd: int, header: tuple[int, int, int, bytes, bytes]) -> None:
        self._disk = disk
        self._path = path
        self._fd = fd
        self._bits, self.count, self.covered, self.anchor, folded = header
        self._folded = int.from_bytes(folded, "little")

    @classmethod
    def open(cls, disk: Disk, path: Path) -> IdIndex | None:
        """Open an index; None when there is none, or what is there has no header of ours."""
        if not path.exists():
            return None
        fd = disk.open(path)
        header = _unpacked(os.pread(fd, _START, 0))
        if header is None:
            os.close(fd)
            return None
        return cls(disk, path, fd, header)

    @classmethod
    def create(cls, disk: Disk, path: Path) -> IdIndex:
        """Make an empty index, in place of what is there."""
        index = cls(disk, path, -1, (_LEAST_BITS, 0, 0, bytes(16), bytes(24)))
        index._rewrite(_LEAST_BITS)
        return index

    def find(self, keys: Iterable[bytes]) -> list[bytes | None]:
        """The digest of each key that is known, else None, in the order asked."""
        found: list[bytes | None] = []
        pread, fd, shift = os.pread, self._fd, 64 - self._bits
        for wanted in keys:
            at = _START + (int.from_bytes(wanted[:8], "big") >> shift) * _ENTRY
            size = _WINDOW
            while True:
                window = pread(fd, size, at)
                # A search by bytes instead of slot by slot: 16 bytes of hash do not occur by chance between two slots.
                place = window.find(wanted)
                if place >= 0:
                    found.append(window[place + KEY : place + _ENTRY])
                    break
                if len(window) < size or window.find(_EMPTY) >= 0:
                    found.append(None)
                    break
                size *= 4
        return found

    def insert(self, pairs: Iterable[tuple[bytes, bytes]], covered: int, anchor: bytes) -> None:
        """Add keys with their digests; of a key that is known, or comes twice, the first digest stays.

        :param covered: length of the log with these pairs in it.
        :param anchor: tells the log's last line from others.
        """
        fresh: dict[bytes, bytes] = {}
        for wanted, digest in pairs:
            fresh.setdefault(wanted, digest)
        if _bits_for(self.count + len(fresh)) > self._bits:  # how large the table gets depends on the new ones alone
            for wanted, known in zip(list(fresh), self.find(fresh), strict=True):
                if known is not None:
                    del fresh[wanted]
            bits = _bits_for(self.count + len(fresh))
            if bits > self._bits:
                self._rewrite(bits)
        for wanted, digest in sorted(fresh.items()):  # neighbours in the file one after the other
            if self._place(wanted, digest):
                self.count += 1
                self._folded ^= int.from_bytes(wanted + digest, "little")
        self.covered, self.anchor = covered, anchor
        self._disk.write(self._fd, self._header(self._bits), 0)

    def sound(self) -> bool:
        """Whether the table holds what the header says; reads all of it."""
        folded = 0
        size = os.fstat(self._fd).st_size - _START
        if size < _ENTRY << self._bits or size % _ENTRY:
            return False
        for chunk in self._chunks():
            folded ^= _fold(chunk)
        return folded == self._folded

    def close(self) -> None:
        """Close the file. What was inserted is in it already."""
        os.close(self._fd)

    def _place(self, wanted: bytes, digest: bytes) -> bool:
        """Put an entry into its run of slots, moving those with greater keys on by one; False when the key is known."""
        at = _START + (int.from_bytes(wanted[:8], "big") >> (64 - self._bits)) * _ENTRY
        size = _WINDOW
        while True:
            window = os.pread(self._fd, size, at)
            free = window.find(_EMPTY)
            if free >= 0 or len(window) < size:
                break
            size *= 4
        if window.find(wanted) >= 0:
            return False
        end = len(window) if free < 0 else -(-free // _ENTRY) * _ENTRY
        cut = 0
        while cut < end and window[cut : cut + KEY] < wanted:
            cut += _ENTRY
        self._disk.write(self._fd, wanted + digest + window[cut:end], at + cut)
        return True

    def _rewrite(self, bits: int) -> None:
        """Move into a table of ``2**bits`` slots, in a new file that takes the name when it is whole."""
        draft = temporary(self._path)
        fd = self._disk.create(draft)
        try:
            self._copy(fd, bits)
            self._disk.write(fd, self._header(bits), 0)
            self._disk.rename(draft, self._path)
        except BaseException:
            os.close(fd)
            raise
        old, self._fd, self._bits = self._fd, fd, bits
        if old >= 0:
            os.close(old)

    def _copy(self, fd: int, bits: int) -> None:
        """Write all entries to where they belong in a table of ``2**bits`` slots."""
        shift = 64 - bits
        next_slot = 0
        written = 0
        parts = [bytes(_START)]
        for chunk in self._chunks():
            heads, entries = struct.iter_unpack(f">Q{_ENTRY - 8}x", chunk), struct.iter_unpack(f"{_ENTRY}s", chunk)
            for (head,), (entry,) in zip(heads, entries, strict=True):
                if entry == _EMPTY:
                    continue
                slot = head >> shift
                if slot > next_slot:
                    parts.append(bytes((slot - next_slot) * _ENTRY))
                    next_slot = slot
                parts.append(entry)
                next_slot += 1
            block = b"".join(parts)
            self._disk.write(fd, block, written)
            written += len(block)
            parts.clear()
        self._disk.truncate(fd, max(written, _START + (_ENTRY << bits)))

    def _header(self, bits: int) -> bytes:
        folded = self._folded.to_bytes(_ENTRY, "little")
        packed = _HEADER.pack(_MAGIC, _FORMAT, bits, self.count, self.covered, self.anchor, folded)
        return (packed + blake2b(packed, digest_size=_CHECKSUM).digest()).ljust(_START, b"\0")

    def _chunks(self) -> Iterator[bytes]:
        at = _START
        while self._fd >= 0 and (chunk := os.pread(self._fd, _CHUNK, at)):
            yield chunk
            at += len(chunk)


class IndexPool:
    """The indexes that are open, at most ``limit``: the one that was used longest ago is closed for the next."""

    def __init__(self, limit: int = 128) -> None:
        self._limit = limit
        self._open: OrderedDict[Path, IdIndex] = OrderedDict()

    def get(self, path: Path) -> IdIndex | None:
        """The index of ``path`` if it is open."""
        index = self._open.get(path)
        if index is not None:
            self._open.move_to_end(path)
        return index

    def put(self, path: Path, index: IdIndex) -> None:
        """Keep an index open as that of ``path``."""
        self.drop(path)
        self._open[path] = index
        if len(self._open) > self._limit:
            self._open.popitem(last=False)[1].close()

    def drop(self, path: Path) -> None:
        """Close the index of ``path`` if it is open."""
        index = self._open.pop(path, None)
        if index is not None:
            index.close()

    def close(self) -> None:
        """Close all."""
        for path in list(self._open):
            self.drop(path)


def _bits_for(count: int) -> int:
    """How many bits of slots hold ``count`` ids at half load or less."""
    return max(_LEAST_BITS, (2 * count - 1).bit_length())


def _unpacked(raw: bytes) -> tuple[int, int, int, bytes, bytes] | None:
    packed = raw[: _HEADER.size]
    if len(raw) < _START or raw[_HEADER.size :][:_CHECKSUM] != blake2b(packed, digest_size=_CHECKSUM).digest():
        return None
    magic, layout, bits, count, covered, anchor, folded = _HEADER.unpack(packed)
    return (bits, count, covered, anchor, folded) if (magic, layout) == (_MAGIC, _FORMAT) else None


def _fold(data: bytes) -> int:
    """The exclusive or of all entries in ``data``, by halves: few operations on long numbers replace many on short."""
    value, slots = int.from_bytes(data, "little"), len(data) // _ENTRY
    while slots > 1:
        slots = (slots + 1) // 2
        value = (value >> (slots * _ENTRY * 8)) ^ (value & ((1 << (slots * _ENTRY * 8)) - 1))
    return value
