"""``tracecomb demo``: agents that get better."""

from __future__ import annotations

from argparse import Namespace

from stream.config import Config
from stream.demo.run import demo as closed_loop


def demo(options: Namespace, config: Config) -> int:
    """Run the closed loop on this terminal; it has settings of its own."""
    return closed_loop(options.at, seed=options.seed, agents=options.agents)
