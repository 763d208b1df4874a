"""The configuration of the one-node broker, as its ``server.properties``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

HOST = "127.0.0.1"


def properties(data: Path, port: int, controller_port: int, settings: Mapping[str, str]) -> str:
    """Write out the configuration of a broker that is its own controller and has no peers.

    :param data: its log directory.
    :param settings: more of Kafka's own settings, which go before these.
    """
    known = {
        "process.roles": "broker,controller",
        "node.id": "1",
        "controller.quorum.voters": f"1@{HOST}:{controller_port}",
        "listeners": f"PLAINTEXT://{HOST}:{port},CONTROLLER://{HOST}:{controller_port}",
        "advertised.listeners": f"PLAINTEXT://{HOST}:{port}",
        "controller.listener.names": "CONTROLLER",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "log.dirs": str(data),
        # The defaults ask for three brokers.
        "offsets.topic.replication.factor": "1",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
        "share.coordinator.state.topic.replication.factor": "1",
        "share.coordinator.state.topic.min.isr": "1",
        # Each partition of these is loaded at every start, and 50 are for clusters.
        "offsets.topic.num.partitions": "4",
        "transaction.state.log.num.partitions": "4",
        "share.coordinator.state.topic.num.partitions": "1",
        # After a kill -9 the controller takes the old process for alive until its session ends, 9 s by default.
        "broker.session.timeout.ms": "3000",
        "broker.heartbeat.interval.ms": "500",
        # A group of one machine's processes has nobody to wait for.
        "group.initial.rebalance.delay.ms": "0",
    }
    return "".join(f"{key}={_escaped(value)}\n" for key, value in {**known, **settings}.items())


def _escaped(value: str) -> str:
    """A value as java.util.Properties reads it back."""
    return "".join("\\\\" if char == "\\" else char if char.isascii() else "".join(_units(char)) for char in value)


def _units(char: str) -> list[str]:
    units = char.encode("utf-16-be")
    return [f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2)]
