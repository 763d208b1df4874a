"""What goes wrong on Kafka, by what follows from it.

ServiceStopped          the whole service stops; the message says why and what to do
 ├─ WrongTopics         topics are missing or not as they must be
 ├─ OtherLineage        another service has written into our topics
 ├─ OtherPartitions     the topics have another number of partitions than when the state was written
 ├─ PositionLost        there are versions, but nobody knows which traces they hold
 ├─ RecordsLost         records expired before they were read
 ├─ CannotPublish       what can never be published, however often it is tried
 └─ StopHung            a consumer that would not stop, or a drain past its deadline
PartitionHalted         one partition stops; the others go on
TenureLost              the outcome of a partition's transaction is unknown: take over again
"""

from __future__ import annotations


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


class CannotPublish(ServiceStopped):
    """The broker will never take what is to be published."""


class StopHung(ServiceStopped):
    """A client did not stop in time; what it had under way is read again by the next worker."""


class PartitionHalted(Exception):
    """What Kafka holds about a partition does not fit together; nothing may be learned from it until someone looks."""


class TenureLost(Exception):
    """A producer failed, so nobody knows what it has published: all that was under way is dropped."""
