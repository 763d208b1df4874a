"""The raw loop, a process: consume, decode, fill windows by prompt, publish one summary a window; what aiokafka allows.

``python -m tests.bench.kafka.raw BOOTSTRAP TRACES OUT GROUP COUNT [--transactional]``

Every send is awaited before its offsets are committed. It is no equal of the service: what is committed counts traces
of open windows that a crash would lose, and nothing is fenced.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import time
from typing import Any

import msgspec
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

from operators.values import Trace
from tests.bench.kafka.load import WINDOW
from tests.bench.kafka.measured import Measured, memory

_BACKOFF_MS = 5


class Summary(msgspec.Struct):
    """What is published of a window."""

    prompt: str
    traces: list[str]


async def run(options: argparse.Namespace) -> Measured:
    """Read ``count`` traces and return what that took."""
    more: dict[str, Any] = {}
    if options.transactional:
        more = {"transactional_id": options.group, "retry_backoff_ms": _BACKOFF_MS}
    producer = AIOKafkaProducer(
        bootstrap_servers=options.bootstrap, acks="all", enable_idempotence=True, compression_type="zstd", **more
    )
    consumer = AIOKafkaConsumer(
        options.traces,
        bootstrap_servers=options.bootstrap,
        group_id=options.group,
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        isolation_level="read_committed",
    )
    decode = msgspec.json.Decoder(Trace).decode
    windows: dict[str, list[Trace]] = {}
    read = 0
    began = cpu = 0.0
    async with producer, consumer:
        while read < options.count:
            found = await consumer.getmany(timeout_ms=200)
            if found and not read:
                began, cpu = time.monotonic(), time.process_time()
            full: list[list[Trace]] = []
            for records in found.values():
                read += len(records)
                for record in records:
                    trace = decode(record.value)
                    window = windows.setdefault(trace.prompt, [])
                    window.append(trace)
                    if len(window) == WINDOW:
                        full.append(window)
                        windows[trace.prompt] = []
            offsets = {tp: records[-1].offset + 1 for tp, records in found.items()}
            if offsets and options.transactional:
                async with producer.transaction():
                    await _publish(producer, options.out, full)
                    await producer.send_offsets_to_transaction(offsets, options.group)
            elif offsets:
                await _publish(producer, options.out, full)
                await consumer.commit(offsets)
        return Measured(read, time.monotonic() - began, time.process_time() - cpu, memory("VmHWM"))


async def _publish(producer: Any, topic: str, full: list[list[Trace]]) -> None:
    futures = []
    for window in full:
        summary = Summary(window[0].prompt, [trace.id for trace in window])
        futures.append(await producer.send(topic, msgspec.json.encode(summary), summary.prompt.encode()))
    for future in futures:
        await future


def main() -> None:
    """Run, and print what it took as JSON."""
    parser = argparse.ArgumentParser()
    for name in ("bootstrap", "traces", "out", "group"):
        parser.add_argument(name)
    parser.add_argument("count", type=int)
    parser.add_argument("--transactional", action="store_true")
    # It warns of every transaction that has to wait a moment for the one before it.
    logging.getLogger("aiokafka").setLevel(logging.ERROR)
    print(msgspec.json.encode(asyncio.run(run(parser.parse_args()))).decode())


if __name__ == "__main__":
    main()
