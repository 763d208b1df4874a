"""A start with 10,000 prompts: one take-over reads the states of all, and decodes those that are needed."""

from __future__ import annotations

import os
import time
from functools import partial
from typing import Any

import pytest
from aiokafka import AIOKafkaProducer

from operators.learn import Learning
from operators.settings import Settings
from operators.state import PromptState
from operators.version import publish_window
from operators.wire import encode
from operators.writing import StateWriter
from stream.kafka import metadata
from stream.kafka.checks import Ours
from stream.kafka.ledger import Position
from stream.kafka.messages import PARTITION_KEY, Committed, PartitionRecord
from stream.kafka.outgoing import version_messages
from stream.kafka.prompts import Prompts
from stream.kafka.service import Service, lineage_of
from stream.kafka.takeover import take_over
from stream.kafka.topics import cluster_id
from tests.kafka.serving import configured, made, send, serving, trace, until, updates
from tests.operators.test_version import taught

PROMPTS, NAME = 10_000, "prompt-00000"


def name(number: int) -> str:
    return f"prompt-{number:05}"


async def filled(producer: AIOKafkaProducer, ours: Ours) -> None:
    """What 10,000 prompts of twenty lessons each have left behind, all learned from the partition's first record."""
    delta = taught(*(f"lesson {number}: amounts are in cents, never in units" for number in range(20)))
    state = PromptState(NAME)
    published = publish_window(
        state, 1, Learning(None, delta), state.now, Settings(), traces=(("t1", ""),), lineage=ours.lineage
    )
    messages = version_messages(
        ours, published, [0], state=StateWriter().snapshot(published.state), recent=b"", overload=None
    )
    futures = []
    for number in range(PROMPTS):
        key = name(number).encode()
        for message in (messages[0], messages[2]):
            value = (message.value or b"").replace(NAME.encode(), key)
            futures.append(await producer.send(message.topic, value, key, ours.partition))
    commits = [
        Committed(position.offset, metadata.encode(position, ours.count, ours.place(tp)))
        for tp, position in ((ours.traces, Position(1)), (ours.controls, Position(0)))
    ]
    record = PartitionRecord(traces=commits[0], controls=commits[1], partitions=ours.count, lineage=ours.lineage)
    futures.append(await producer.send(ours.topics.state, encode(record), PARTITION_KEY, ours.partition))
    for future in futures:
        await future


@pytest.mark.slow
@pytest.mark.timeout(300)
async def test_ten_thousand_states_are_read_at_once_and_decoded_when_needed(
    kafka: str, unique: str, capsys: pytest.CaptureFixture[str]
) -> None:
    config = configured(kafka, unique, batch_size=1)
    await made(config)
    await send(config, [trace(0, NAME)])
    lineage = lineage_of(await cluster_id(config.kafka), config.kafka.group, config.topics.traces)
    async with Service(config)._clients() as (shared, _):
        ours = shared.ours(0)
        assert ours.lineage == lineage
        async with AIOKafkaProducer(bootstrap_servers=kafka, linger_ms=20, compression_type="zstd") as producer:
            await filled(producer, ours)
        began = time.monotonic()
        taken = await take_over(shared.reads, ours)
        took = time.monotonic() - began
        with capsys.disabled():
            print(f"\n{PROMPTS:,} states taken over in {took:.1f} s, load {os.getloadavg()[0]:.1f}")
        assert len(taken.states) == len(taken.versions) == PROMPTS
        assert (taken.position.offset, taken.first, taken.lost) == (1, False, ())
        restored: list[Any] = []
        prompts = Prompts(taken.states, taken.versions, lineage, partial(restored.append))
        assert prompts.undecoded == PROMPTS
        assert len(prompts.state(name(7)).now.bullets) == 20
        assert prompts.undecoded == PROMPTS - 1
    await send(config, [trace(1, name(7))])
    async with serving(config) as service:
        await until(lambda: service.tally.versions >= 1)
    newest = (await updates(config))[-1]
    assert (newest.prompt, newest.version) == (name(7), 2)
    assert len(newest.bullets) > 20
