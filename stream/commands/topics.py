"""``tracecomb topics``: make and check the topics on a cluster."""

from __future__ import annotations

import shlex
from argparse import Namespace

import anyio

from stream.config import Config
from stream.exits import FAILED, OK
from stream.kafka.address import at_cluster
from stream.kafka.topics import check as look
from stream.kafka.topics import create as make
from stream.terminal import counted, invoked, line, say


def create(options: Namespace, config: Config) -> int:
    """Make the topics that are missing; say what is wrong with those that were there."""
    config = at_cluster(config, options.at)

    async def run() -> tuple[list[str], list[str]]:
        made = await make(config.kafka, config.topics, options.partitions, replication=options.replication)
        return made, await look(config.kafka, config.topics, options.partitions)

    made, wrong = anyio.run(run)
    for name in made:
        line(f"{name} made")
    if not made:
        say("all topics were there already")
    return _ended(wrong, options)


def check(options: Namespace, config: Config) -> int:
    """Say what is wrong with the topics."""
    config = at_cluster(config, options.at)
    wrong = anyio.run(look, config.kafka, config.topics, options.partitions)
    if not wrong:
        line("the topics are as they must be")
    return _ended(wrong, options)


def _ended(wrong: list[str], options: Namespace) -> int:
    for each in wrong:
        line(each)
    flags = [f"--{name} {shlex.quote(value)}" for name in ("at", "config") if (value := getattr(options, name))]
    if wrong:
        say(f"{counted(len(wrong), 'thing')} to mend, then: {' '.join([invoked(), 'topics check', *flags])}")
        return FAILED
    say(f"next: {' '.join([invoked(), 'run', *flags])}; then {' '.join([invoked(), 'send PATH', *flags])}")
    return OK
