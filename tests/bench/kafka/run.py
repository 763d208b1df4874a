"""All measurements on Kafka, one after another on one broker."""

from __future__ import annotations

import logging
import os
import tempfile
from collections.abc import Callable
from pathlib import Path

from stream.kafka.broker import Broker
from tests.bench.kafka import failover, latency, rates, waiting
from tests.bench.kafka.bench import Bench
from tests.bench.kafka.load import whole
from tests.bench.kafka.report import Load, Results

PARTITIONS = 1
_MANY = 6
COUNTS = {1_000: 200_000, 10_000: 40_000}
"""Traces by their size in bytes."""


async def measure(told: Callable[[str], None], *, quick: bool) -> Results:
    """Measure everything.

    :param told: gets what is being done.
    :param quick: with a tenth of the traces, once.
    :raises Missing: without what a broker is made of.
    """
    # A topic that was just made has no leader for a moment, and each client that meets that says so.
    logging.getLogger("aiokafka").setLevel(logging.CRITICAL)
    scale, before = 10 if quick else 1, os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as folder:
        async with Broker() as broker:
            bench = Bench(broker.bootstrap, Path(folder))
            by_size = {
                size: await rates.run(bench, whole(count // scale), size, 1 if quick else 3, PARTITIONS, told)
                for size, count in COUNTS.items()
            }
            return Results(
                by_size,
                await latency.run(bench, 2 if quick else 12, 2_500.0, told),
                await failover.run(bench, 1 if quick else 3, told),
                await waiting.run(bench, 1_000_000 // scale, 10.0 if quick else 60.0, _MANY, told),
                Load(before, os.getloadavg()[0]),
                PARTITIONS,
            )
