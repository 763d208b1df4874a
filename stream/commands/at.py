"""Where the prompts of a command live: what ``--at`` names."""

from __future__ import annotations

import os
from argparse import Namespace

from stream.config import Config, ConfigError, load
from stream.kafka.address import at_cluster, is_address
from stream.place import Place
from stream.storeplace import StorePlace


def opened(options: Namespace, config: Config) -> Place:
    """The place at ``--at``: a cluster by its address or by a configuration that names it, else a store.

    :raises ConfigError: when that is no address, or no configuration.
    """
    at: str = options.at
    if is_address(at):
        cluster = at_cluster(config, at)
    elif is_config(at):
        if options.config is not None:
            raise ConfigError(f"two configurations, --at {at} and --config {options.config}; give one of them")
        cluster = load(at)
    else:
        return StorePlace(at, config, given=options.config is not None)
    # Whoever has a store need not wait for the client to be imported.
    from stream.commands.watching import Watching
    from stream.kafka.place import ClusterPlace

    return ClusterPlace(cluster, Watching(options.verbose), timeout=getattr(options, "timeout", 0.0))


def is_config(at: str) -> bool:
    """Whether ``at`` names a configuration file: by its suffix, for a store may have any other name."""
    return at.endswith(".toml") and not os.path.isdir(at)
