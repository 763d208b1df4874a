"""The topics on a cluster: made, looked at and checked, and never made by looking."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import anyio
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.errors import NoError, TopicAlreadyExistsError, for_code
from msgspec.structs import asdict

from stream.kafka.cluster import ClusterError, told
from stream.kafka.connection import connection
from stream.kafka.layout import TopicFound, faults, settings_for
from stream.kafka.tables import Kafka, Topics
from stream.terminal import counted

__all__ = ["DEFAULT_PARTITIONS", "TopicFound", "Topics", "check", "cluster_id", "create", "found"]

DEFAULT_PARTITIONS = 6
_SEEN_WITHIN = 30.0
_POLL = 0.05


async def create(
    kafka: Kafka,
    topics: Topics,
    partitions: int | None = None,
    *,
    replication: int | None = None,
    more: Mapping[str, Mapping[str, str]] | None = None,
) -> list[str]:
    """Make the topics that are missing, and return their names once every broker request sees them.

    :param partitions: of each; as many as the topic of traces when None, and 6 when there is no such topic.
    :param replication: copies of each partition; the brokers' ``default.replication.factor`` when None.
    :param more: more settings for topics that are made, by role.
    :raises ClusterError: when the cluster cannot be reached or does not make one, and when the topic of traces has
        another number of partitions.
    """
    names: dict[str, str] = asdict(topics)
    largest = kafka.max_message_bytes
    async with _admin(kafka) as admin:
        there = await _partitions(admin)
        missing = {role: name for role, name in names.items() if name not in there}
        count = there.get(topics.traces) or partitions or DEFAULT_PARTITIONS
        if partitions not in (None, count):
            raise ClusterError(
                f"{topics.traces} has {counted(count, 'partition')}, so every topic of ours must; nothing was made. "
                "Leave out --partitions, or name another topic of traces under [topics] in the configuration"
            )
        if not missing:
            return []
        copies = replication or await _default_replication(admin)
        new = [
            NewTopic(name, count, copies, topic_configs={**settings_for(role, largest), **(more or {}).get(role, {})})
            for role, name in missing.items()
        ]
        answer = await admin.create_topics(new)
        for name, code, *reason in answer.topic_errors:
            # Somebody else may have been quicker; what it is like is for the check to say.
            if for_code(code) not in (NoError, TopicAlreadyExistsError):
                why = reason[0] if reason and reason[0] else for_code(code).__name__
                raise ClusterError(f"the cluster at {kafka.bootstrap} does not make {name}: {why}")
        await _until_seen(admin, set(missing.values()), kafka)
    return list(missing.values())


async def check(kafka: Kafka, topics: Topics, partitions: int | None = None) -> list[str]:
    """Return what is wrong with the topics, each with how to mend it; nothing when all is well.

    :param partitions: how many each must have; as many as the topic of traces when None.
    :raises ClusterError: when the cluster cannot be reached or does not let us look.
    """
    return faults(topics, await found(kafka, topics), kafka.bootstrap, partitions, kafka.max_message_bytes)


async def found(kafka: Kafka, topics: Topics) -> dict[str, TopicFound]:
    """Return those of the topics that there are, by name.

    :raises ClusterError: when the cluster cannot be reached or does not let us look.
    """
    async with _admin(kafka) as admin:
        there = await _partitions(admin)
        names = [name for name in asdict(topics).values() if name in there]
        settings = {name: await _settings(admin, ConfigResourceType.TOPIC, name) for name in names}
    return {name: TopicFound(there[name], settings[name]) for name in names}


async def cluster_id(kafka: Kafka) -> str:
    """Return the id of the cluster, which new storage changes.

    :raises ClusterError: when it cannot be reached.
    """
    async with _admin(kafka) as admin:
        return str((await admin.describe_cluster())["cluster_id"])


async def partitions(kafka: Kafka) -> dict[str, int]:
    """Return how many partitions each topic of the cluster has.

    :raises ClusterError: when the cluster cannot be reached.
    """
    async with _admin(kafka) as admin:
        return await _partitions(admin)


@asynccontextmanager
async def _admin(kafka: Kafka) -> AsyncIterator[Any]:
    with told(kafka):
        admin = AIOKafkaAdminClient(**connection(kafka))
        try:
            await admin.start()
            yield admin
        finally:
            with anyio.CancelScope(shield=True):
                await admin.close()


async def _partitions(admin: Any) -> dict[str, int]:
    """How many partitions each topic has: of all topics, for to ask for one that is missing would make it."""
    return {topic["topic"]: len(topic["partitions"]) for topic in await admin.describe_topics()}


async def _settings(admin: Any, kind: Any, name: str) -> dict[str, str]:
    (answer,) = await admin.describe_configs([ConfigResource(kind, name)])
    ((code, reason, _, _, entries),) = answer.resources
    if code:
        raise for_code(code)(f"{name}: {reason or for_code(code).__name__}")
    return {entry[0]: entry[1] or "" for entry in entries}


async def _default_replication(admin: Any) -> int:
    """The brokers' own default. The client speaks no version of the request in which a broker fills that in itself."""
    cluster = await admin.describe_cluster()
    settings = await _settings(admin, ConfigResourceType.BROKER, str(cluster["brokers"][0]["node_id"]))
    return int(settings.get("default.replication.factor") or 1)


async def _until_seen(admin: Any, names: set[str], kafka: Kafka) -> None:
    """Wait until topics that were made are known: a broker learns of them a moment after the controller."""
    deadline = time.monotonic() + _SEEN_WITHIN
    while names - set(await _partitions(admin)):
        if time.monotonic() > deadline:
            raise ClusterError(f"the cluster at {kafka.bootstrap} made topics and does not show them: {sorted(names)}")
        await anyio.sleep(_POLL)
