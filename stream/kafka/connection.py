"""How every client of ours is connected: the configuration as keyword arguments of aiokafka's clients."""

from __future__ import annotations

from typing import Any

from stream.kafka.tables import Kafka

CLIENT_ID = "tracecomb"


def connection(kafka: Kafka) -> dict[str, Any]:
    """The keyword arguments that aiokafka's producer, consumer and admin client have in common."""
    return {"bootstrap_servers": kafka.bootstrap.split(","), "client_id": CLIENT_ID}
