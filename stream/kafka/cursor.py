"""How far a log was sent: counted by record, and told apart from another log under the same name. Pure.

A log that only grows begins with the records that it had. What was sent of it is therefore a number of records and a
chain of their hashes: when the log of today has another chain at that number, it is another log.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import blake2b

from msgspec import Struct

from stream.records import Bad, Found


class Sent(Struct, frozen=True):
    """What was sent of a log, and acknowledged.

    :param records: how many records, from the first; the last of them is a trace.
    :param chain: of their hashes, in hex.
    :param offsets: the highest offset that was acknowledged, by partition; a topic without it is not the one.
    """

    records: int
    chain: str
    offsets: dict[str, int]


class Cursor:
    """One pass over a log.

    :param known: what was sent of it before.
    """

    def __init__(self, known: Sent | None = None) -> None:
        self._known = known
        self._chain = b""
        self._records = 0
        self._differs = False

    def is_new(self, record: Found | Bad) -> bool:
        """Go on to the next record: was it not sent before?

        Nothing is new in a log that turns out to be another one: see :attr:`changed`.
        """
        content = record.digest + record.trace.id.encode() if isinstance(record, Found) else record.raw
        self._chain = blake2b(self._chain + content, digest_size=16).digest()
        self._records += 1
        known = self._known
        if known is None:
            return True
        if self._records == known.records:
            self._differs = self._chain.hex() != known.chain
        return not self._differs and self._records > known.records

    @property
    def changed(self) -> bool:
        """At the end of the log: whether it is not the log that was sent before, and is to be sent from its start."""
        return self._differs or (self._known is not None and self._records < self._known.records)

    def sent(self, offsets: Mapping[str, int]) -> Sent:
        """What is sent once all records up to this one are acknowledged."""
        return Sent(self._records, self._chain.hex(), dict(offsets))


def is_of_topic(known: Sent, ends: Mapping[str, int]) -> bool:
    """Whether a log may have been sent to a topic whose partitions end at these offsets (one past the newest).

    A topic that was deleted and made again holds less than was acknowledged.
    """
    return all(ends.get(partition, 0) > offset for partition, offset in known.offsets.items())
