"""Clusters that cannot be used, or that did not do what was asked of them.

ClusterError             no broker answers, or one refuses what was asked
 ├─ NoSuchTopic          a topic of ours is missing
 ├─ HistoryIncomplete    versions of a prompt are missing in a topic that keeps all of them
 ├─ Unanswered           a control is written, and no service has answered it in time
 └─ ControlDeclined      a service has answered a control, and made no version of it
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import anyio

from stream.kafka.tables import Kafka


class ClusterError(Exception):
    """A cluster cannot be used; the message says which, why, and what to do."""


class NoSuchTopic(ClusterError):
    """A topic of ours is missing."""


class HistoryIncomplete(ClusterError):
    """Versions of a prompt are missing in a topic that keeps all of them."""


class Unanswered(ClusterError):
    """A control is written, and no service has answered it in time; one that runs later will apply it."""


class ControlDeclined(ClusterError):
    """A service has answered a control, and made no version of it."""


@contextmanager
def told(kafka: Kafka) -> Iterator[None]:
    """Make what aiokafka raises about a cluster a :class:`ClusterError` that a person can act on."""
    # Commands without Kafka import the error for their exit codes, and need not wait for the client.
    from aiokafka.errors import (
        KafkaConnectionError,
        KafkaError,
        KafkaTimeoutError,
        NodeNotReadyError,
        RequestTimedOutError,
    )

    try:
        yield
    except (KafkaConnectionError, KafkaTimeoutError, NodeNotReadyError, RequestTimedOutError) as error:
        raise ClusterError(
            f"no broker answers at {kafka.bootstrap}; --at or kafka.bootstrap in the configuration names the cluster, "
            "`tracecomb kafka start` runs a broker for trying out"
        ) from error
    except KafkaError as error:
        raise ClusterError(f"the cluster at {kafka.bootstrap} refuses: {error}") from error


@contextmanager
def answering(kafka: Kafka, seconds: float, doing: str) -> Iterator[None]:
    """As :func:`told`, and give up when what is done takes longer than this.

    :param doing: what, for the message.
    """
    with told(kafka):
        try:
            with anyio.fail_after(seconds):
                yield
        except TimeoutError as error:
            raise ClusterError(
                f"the cluster at {kafka.bootstrap} has not answered within {seconds:g} s ({doing}); see whether its "
                "brokers run and can be reached from here"
            ) from error
