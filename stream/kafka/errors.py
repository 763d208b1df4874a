"""What goes wrong on Kafka, by what follows from it.

ServiceStopped          the whole service stops; the message says why and what to do
 ├─ WrongTopics         topics are missing or not as they must be
 ├─ OtherLineage        another service has written into our topics
 ├─ OtherPartitions     the topics have another number of partitions than when the state was written
 ├─ PositionLost        there are versions, but nobody knows which traces they hold
 ├─ RecordsLost         records expired before they were read
 ├─ CannotRead          the brokers do not let us read
 ├─ CannotPublish       what can never be published, however often it is tried
 └─ StopHung            a consumer that would not stop
PartitionHalted         one partition stops; the others go on
TenureLost              the outcome of a partition's transaction is unknown: take over again
"""

from __future__ import annotations

from collections.abc import Iterator

from operators.lane import WindowLost
from stream.replay import TooManyRejects


class ServiceStopped(Exception):
    """The service cannot go on."""


class WrongTopics(ServiceStopped):
    """Topics are missing or not as they must be."""

    def __init__(self, troubles: list[str]) -> None:
        super().__init__("; ".join(troubles))
        self.troubles = troubles


class OtherLineage(ServiceStopped):
    """An update in our topic was written by another service."""


class OtherPartitions(ServiceStopped):
    """The topics have another number of partitions than when the state was written."""


class PositionLost(ServiceStopped):
    """There are versions, but no committed position."""


class RecordsLost(ServiceStopped):
    """Records expired, or were deleted, before they were read."""


class CannotRead(ServiceStopped):
    """The brokers do not let us read the topic of traces."""


class CannotPublish(ServiceStopped):
    """The broker will never take what is to be published."""


class StopHung(ServiceStopped):
    """A consumer did not stop in time.

    :param drained: everything was published and let go before.
    """

    def __init__(self, seconds: float, *, drained: bool) -> None:
        super().__init__(f"the consumer did not stop within {seconds:.0f} s")
        self.drained = drained


class PartitionHalted(Exception):
    """What Kafka holds about a partition does not fit together; nothing may be learned from it until someone looks."""


class TenureLost(Exception):
    """A producer failed, so nobody knows what it has published: all that was under way is dropped."""


def cause_of(error: BaseException) -> BaseException:
    """The most telling error of a group: one task fails first, and takes others with it."""
    leaves = list(_leaves(error))
    for kinds in ((ServiceStopped, TooManyRejects), (PartitionHalted,), (TenureLost,)):
        for leaf in leaves:
            if isinstance(leaf, kinds):
                return leaf
    return next((leaf for leaf in leaves if not isinstance(leaf, WindowLost)), leaves[0])


def _leaves(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for each in error.exceptions:
            yield from _leaves(each)
    else:
        yield error
