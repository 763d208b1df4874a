"""The last trace ids of a prompt, so that one sent twice by an at-least-once producer teaches once. Pure."""

from __future__ import annotations

from hashlib import blake2b

from stream.kafka.messages import HASH

KEPT = 1_000
"""How many trace ids of a prompt are remembered."""


def hash_of(id: str) -> bytes:
    """The eight bytes that stand for a trace id."""
    return blake2b(id.encode(), digest_size=HASH).digest()


class Recent:
    """Which of a prompt's last traces were taken, and which of them its versions hold.

    What was taken decides on duplicates, in the order of the log. What was published is written with each version, so
    after a crash, when the traces in flight come again, the same ones are found to be duplicates.

    :param published: hashes of the ids of the last version's state, oldest first.
    """

    def __init__(self, published: bytes = b"") -> None:
        self._published = published
        hashes = (published[at : at + HASH] for at in range(0, len(published), HASH))
        self._taken = dict.fromkeys(hashes)

    @property
    def published(self) -> bytes:
        """The hashes to write with the newest version."""
        return self._published

    def take(self, id: bytes) -> bool:
        """Remember that a trace was taken; False when it is one of the last that were."""
        taken = self._taken
        if id in taken:
            return False
        taken[id] = None
        if len(taken) > KEPT:
            del taken[next(iter(taken))]
        return True

    def publish(self, ids: bytes) -> bytes:
        """What to write with a version that holds these too, oldest first; they count once :meth:`stand` is told."""
        return (self._published + ids)[-KEPT * HASH :]

    def stand(self, published: bytes) -> None:
        """Know that a version with these was committed."""
        self._published = published
