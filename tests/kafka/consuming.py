"""Reading a topic from its beginning to its end, for tests."""

from __future__ import annotations

from typing import Any

from aiokafka import AIOKafkaConsumer, TopicPartition

from stream.kafka.tables import Kafka, Topics
from stream.kafka.topics import found


async def consumed(bootstrap: str, topic: str) -> list[Any]:
    """All records of a topic without transactions, partition by partition."""
    kafka = Kafka(bootstrap=bootstrap)
    partitions = (await found(kafka, Topics(traces=topic)))[topic].partitions
    records: list[Any] = []
    async with AIOKafkaConsumer(bootstrap_servers=bootstrap, enable_auto_commit=False) as consumer:
        places = [TopicPartition(topic, number) for number in range(partitions)]
        ends = await consumer.end_offsets(places)
        for place in places:
            consumer.assign([place])
            await consumer.seek_to_beginning(place)
            while await consumer.position(place) < ends[place]:
                batch = await consumer.getmany(place, timeout_ms=200)
                records += batch.get(place, [])
    return records
