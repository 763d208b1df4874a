"""``tracecomb kafka start``: a broker for trying out."""

from __future__ import annotations

import json
import signal
from argparse import Namespace

import anyio

from stream.config import Config
from stream.exits import INTERRUPTED, OK
from stream.kafka.broker import Broker, NotStarted
from stream.kafka.tables import Kafka
from stream.terminal import flush, invoked, line, say

_POLL = 0.2


def start(options: Namespace, config: Config) -> int:
    """Run a one-node broker until Ctrl-C (or SIGTERM, or the end of the terminal).

    :raises BrokerError: when it cannot be started, or ends by itself.
    """
    return anyio.run(_run, options)


async def _run(options: Namespace) -> int:
    ready = False
    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM, signal.SIGHUP) as signals:
        async with anyio.create_task_group() as tasks:

            async def end_at_a_signal() -> None:
                async for _ in signals:
                    say("stopping Kafka")
                    tasks.cancel_scope.cancel()
                    return

            tasks.start_soon(end_at_a_signal)
            say("starting Kafka, which takes some seconds (the first time a minute, for Maven to fetch it)")
            async with Broker(port=options.port, data=options.data) as broker:
                ready = True
                _tell(broker, options)
                while broker.running:
                    await anyio.sleep(_POLL)
                raise NotStarted(f"the broker has ended by itself\n{broker.tail()}")
    return OK if ready else INTERRUPTED


def _tell(broker: Broker, options: Namespace) -> None:
    if options.json:
        line(json.dumps({"bootstrap": broker.bootstrap, "pid": broker.pid, "log": str(broker.log)}))
    else:
        line(f"Kafka listens on {broker.bootstrap}; its log is {broker.log}")
    flush()
    at = "" if broker.bootstrap == Kafka().bootstrap else f" --at kafka://{broker.bootstrap}"
    say(f"Ctrl-C stops it{'' if options.data else ', and its data is gone then'}")
    say(f"next, in another terminal: {invoked()} topics create{at}")
