"""What the benchmarks send: traces of one size, of 100 prompts, in the orders that each measurement needs."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Iterator
from random import Random
from typing import Any, NamedTuple

from aiokafka import AIOKafkaProducer

from stream.kafka.homes import home

PROMPTS, WINDOW = 100, 50
_WORDS = ("the", "agent", "called", "a", "tool", "with", "an", "amount", "that", "was", "refused", "then", "unit")
_STEPS = b'{"role":"user","content":"%b"},{"role":"assistant","content":"%b"}]}'
_TEXT = 1 << 20
_TICK_SECONDS = 0.01


class Sendable(NamedTuple):
    """A record of the topic of traces."""

    prompt: str
    value: bytes


def whole(count: int) -> int:
    """The nearest number of traces that fills the windows of all prompts, at least one each."""
    unit = PROMPTS * WINDOW
    return max(1, round(count / unit)) * unit


def mixed(count: int, size: int, seed: int = 0) -> Iterator[Sendable]:
    """Traces of all prompts in a random order, as many of each.

    :param size: of a value, in bytes.
    """
    order = [number % PROMPTS for number in range(count)]
    Random(seed).shuffle(order)
    return _traces(order, size, seed)


def steady(windows: int, size: int, seed: int = 0) -> Iterator[Sendable]:
    """Traces by turns, prompts so far apart in their windows that one closes about every 50 traces.

    :param windows: that each prompt fills, at least.
    """
    ahead = [prompt for prompt in range(PROMPTS) for _ in range(prompt % WINDOW)]
    turns = [number % PROMPTS for number in range(windows * WINDOW * PROMPTS)]
    return _traces(ahead + turns, size, seed)


def steady_windows(windows: int) -> int:
    """How many windows :func:`steady` fills: no prompt is a whole window ahead."""
    return windows * PROMPTS


def _traces(order: Iterable[int], size: int, seed: int) -> Iterator[Sendable]:
    random = Random(seed)
    # Words at random: one letter over and over would be compressed to nothing.
    text = " ".join(random.choices(_WORDS, k=_TEXT // 4)).encode()
    names = [f"prompt-{number}" for number in range(PROMPTS)]
    for number, prompt in enumerate(order):
        head = b'{"id":"trace-%d","prompt":"prompt-%d","session":"s-%d","steps":[' % (number, prompt, number % 997)
        rest = size - len(head) - len(_STEPS % (b"", b""))
        at, half = random.randrange(len(text) - size), rest // 2
        user, said = text[at : at + half], text[at + half : at + rest]
        yield Sendable(names[prompt], head + _STEPS % (user, said))


async def produce(bootstrap: str, topic: str, partitions: int, records: Iterable[Sendable]) -> None:
    """Send as fast as it goes, each to its prompt's home, in batches as a producer of defaults makes them."""
    async with AIOKafkaProducer(bootstrap_servers=bootstrap, acks="all", compression_type="zstd") as producer:
        batches: dict[int, Any] = {}
        names = [f"prompt-{number}" for number in range(PROMPTS)]
        homes = {name: home(name.encode(), "murmur2", partitions) for name in names}
        futures: list[asyncio.Future[Any]] = []
        for prompt, value in records:
            at = homes[prompt]
            batch = batches.get(at) or producer.create_batch()
            if batch.append(key=prompt.encode(), value=value, timestamp=None) is None:
                futures.append(await producer.send_batch(batch, topic, partition=at))
                batch = producer.create_batch()
                assert batch.append(key=prompt.encode(), value=value, timestamp=None) is not None
            batches[at] = batch
        futures += [await producer.send_batch(batch, topic, partition=at) for at, batch in batches.items()]
        for future in futures:
            await future


async def pace(bootstrap: str, topic: str, records: Iterable[Sendable], rate: float) -> None:
    """Send to a topic of one partition at a rate in traces a second, and wait for no acknowledgement until the end."""
    async with AIOKafkaProducer(bootstrap_servers=bootstrap, acks="all", compression_type="zstd") as producer:
        began = time.monotonic()
        futures = []
        for sent, (prompt, value) in enumerate(records):
            while sent >= (time.monotonic() - began) * rate:
                await asyncio.sleep(_TICK_SECONDS)
            futures.append(await producer.send(topic, value, prompt.encode(), 0))
        await asyncio.gather(*futures)
