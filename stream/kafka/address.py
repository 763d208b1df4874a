"""Addresses of clusters: ``kafka://host:port``."""

from __future__ import annotations

from msgspec.structs import replace

from stream.config import Config, ConfigError
from stream.kafka.tables import is_servers

SCHEME = "kafka://"


def is_address(at: str) -> bool:
    """Whether ``at`` names a cluster, and not a store or a file."""
    return at.startswith(SCHEME)


def bootstrap_of(at: str) -> str:
    """Return the servers of ``kafka://host:port[,host:port]``.

    :raises ConfigError: when it names none.
    """
    servers = at.removeprefix(SCHEME).removesuffix("/")
    if not is_address(at) or not is_servers(servers):
        raise ConfigError(f"{at!r} is no address of a cluster; write kafka://host:port, with commas between several")
    return servers


def at_cluster(config: Config, at: str | None) -> Config:
    """The configuration for the cluster at ``at``; for its own without one.

    :raises ConfigError: when ``at`` is no address.
    """
    return config if at is None else replace(config, kafka=replace(config.kafka, bootstrap=bootstrap_of(at)))
