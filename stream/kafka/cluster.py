"""Clusters that cannot be used.

ClusterError    no broker answers, or one refuses what was asked
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from stream.kafka.tables import Kafka


class ClusterError(Exception):
    """A cluster cannot be used; the message says which, why, and what to do."""


@contextmanager
def told(kafka: Kafka) -> Iterator[None]:
    """Make what aiokafka raises about a cluster a :class:`ClusterError` that a person can act on."""
    # Commands without Kafka import the error for their exit codes, and need not wait for the client.
    from aiokafka.errors import KafkaConnectionError, KafkaError

    try:
        yield
    except KafkaConnectionError as error:
        raise ClusterError(
            f"no broker answers at {kafka.bootstrap}; --at or kafka.bootstrap in the configuration names the cluster, "
            "`tracecomb kafka start` runs a broker for trying out"
        ) from error
    except KafkaError as error:
        raise ClusterError(f"the cluster at {kafka.bootstrap} refuses: {error}") from error
