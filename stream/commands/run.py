"""``tracecomb run``: the learner as a service on Kafka, until a signal."""

from __future__ import annotations

import logging
import os
import signal
from argparse import Namespace

import anyio
import structlog

from stream.config import Config
from stream.exits import FAILED, OK
from stream.kafka.address import at_cluster
from stream.kafka.errors import StopHung
from stream.kafka.quiet import Seldom
from stream.kafka.service import Service
from stream.logs import configure
from stream.terminal import counted, flush, line, say

log = structlog.get_logger()


def run(options: Namespace, config: Config) -> int:
    """Learn from the topic of traces until SIGTERM or Ctrl-C."""
    configure("debug" if options.verbose else "info")
    for name, level in (("aiokafka", logging.WARNING), ("aiokafka.producer.sender", logging.ERROR)):
        # The sender warns of every transaction that has to wait a moment for the one before it.
        logging.getLogger(name).setLevel(logging.DEBUG if options.verbose else level)
    if not options.verbose:
        for handler in logging.getLogger().handlers:
            handler.addFilter(Seldom())
    try:
        tally = anyio.run(_until_a_signal, at_cluster(config, options.at))
    except StopHung as error:
        say(f"{error}; the process ends{'' if error.drained else ', what it had under way is read again'}")
        flush()
        os._exit(OK if error.drained else FAILED)  # what hangs would hang again in the loop's own clean-up
    if tally is not None:
        line(tally)
    return OK


async def _until_a_signal(config: Config) -> str | None:
    """Run the service; the first signal drains it, a second one cuts that short."""
    service = Service(config)
    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        async with anyio.create_task_group() as tasks:

            async def stop_at_signals() -> None:
                async for number in signals:
                    if service.stopping:
                        say("cut short; what was under way is read again")
                        tasks.cancel_scope.cancel()
                        return
                    say(f"{signal.Signals(number).name}: publishing what is ready; once more cuts that short")
                    service.stop()

            tasks.start_soon(stop_at_signals)
            tally = await service.run()
            tasks.cancel_scope.cancel()
            return (
                f"{counted(tally.learned, 'trace')} learned in {counted(tally.versions, 'version')}, "
                f"{tally.duplicates:,} known already, {tally.refused:,} refused, {tally.rejected:,} rejected, "
                f"{tally.skipped:,} without a trace"
            )
    return None
