"""A real Kafka broker of one node: its jars from Maven, its storage, its process."""

from stream.kafka.broker.broker import Broker
from stream.kafka.broker.errors import BrokerError, Missing, NotStarted
from stream.kafka.broker.jars import jars, java

__all__ = ("Broker", "BrokerError", "Missing", "NotStarted", "jars", "java")
