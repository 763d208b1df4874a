"""Free ports that stay free while a broker is down."""

from __future__ import annotations

import random
import socket
from pathlib import Path

from stream.kafka.broker.errors import NotStarted
from stream.kafka.broker.properties import HOST

_RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")
_LOWEST = 10_000
_TRIES = 1_000


def free_ports(count: int, chance: random.Random) -> list[int]:
    """Return ports on which nothing listens, from below those that the system gives to outgoing connections.

    A port among those would be lost to a client's connection while the broker restarts, even to one that a client
    makes to the broker's own port: it then connects to itself.
    """
    try:
        highest = int(_RANGE.read_text().split()[0])
    except (OSError, ValueError, IndexError):
        highest = 49_152  # RFC 6335: dynamic ports begin here
    if highest <= _LOWEST + count:
        highest = 65_536
    found: list[int] = []
    for _ in range(_TRIES):
        port = chance.randrange(_LOWEST, highest)
        if port not in found and is_free(port):
            found.append(port)
            if len(found) == count:
                return found
    raise NotStarted(f"no {count} free ports found on {HOST} between {_LOWEST} and {highest}")


def is_free(port: int) -> bool:
    """Whether a server could listen on a port now."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
    return True
