"""Topics: what is made, what is found wrong, and that looking makes nothing."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anyio
import pytest
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from msgspec.structs import asdict

from stream.config import ConfigError, load
from stream.kafka.address import at_cluster, bootstrap_of
from stream.kafka.cluster import ClusterError
from stream.kafka.connection import connection
from stream.kafka.layout import RULES, TopicFound, faults, settings_for
from stream.kafka.tables import Kafka, Topics
from stream.kafka.topics import check, create, found
from tests.stream.running import process, tracecomb

NAMES: Mapping[str, str] = asdict(Topics())
RIGHT = {NAMES[role]: TopicFound(6, settings_for(role)) for role in RULES}


@pytest.fixture
def topics(unique: str) -> Topics:
    return Topics(**{role: f"{unique}-{role}" for role in NAMES})


@pytest.fixture
def configuration(tmp_path: Path, kafka: str, topics: Topics) -> Path:
    file = tmp_path / "tracecomb.toml"
    names = "\n".join(f'{role} = "{name}"' for role, name in asdict(topics).items())
    file.write_text(f'[kafka]\nbootstrap = "{kafka}"\n[topics]\n{names}\n')
    return file


async def make(kafka: str, name: str, partitions: int, settings: dict[str, str]) -> None:
    admin = AIOKafkaAdminClient(bootstrap_servers=kafka)
    await admin.start()
    try:
        await admin.create_topics([NewTopic(name, partitions, 1, topic_configs=settings)])
        while name not in await admin.list_topics():  # the broker learns of it a moment after the controller
            await anyio.sleep(0.01)
    finally:
        await admin.close()


async def test_what_is_made_is_right(kafka: str, topics: Topics) -> None:
    cluster = Kafka(bootstrap=kafka)
    assert sorted(await create(cluster, topics, 3)) == sorted(asdict(topics).values())
    assert await check(cluster, topics) == []
    assert await check(cluster, topics, 3) == []
    there = await found(cluster, topics)
    assert {each.partitions for each in there.values()} == {3}
    for role in ("updates", "state"):
        settings = there[getattr(topics, role)].settings
        assert settings["cleanup.policy"] == "compact"
        assert settings["segment.bytes"] == str(16 << 20)
        assert float(settings["min.cleanable.dirty.ratio"]) <= 0.1
    for role in ("deltas", "controls"):
        settings = there[getattr(topics, role)].settings
        assert (settings["cleanup.policy"], settings["retention.ms"]) == ("delete", "-1")
    assert {each.settings["max.message.bytes"] for each in there.values()} == {str(8 << 20)}
    assert await create(cluster, topics) == []


async def test_looking_makes_no_topic(kafka: str, topics: Topics) -> None:
    """The brokers make topics that a client asks for by name, unless told otherwise; these are not told."""
    cluster = Kafka(bootstrap=kafka)
    for _ in range(2):
        wrong = await check(cluster, topics)
        assert [each.split()[0] for each in wrong] == list(asdict(topics).values())
        assert all("`tracecomb topics create` makes it" in each for each in wrong)


async def test_partitions_follow_the_topic_of_traces(kafka: str, topics: Topics) -> None:
    cluster = Kafka(bootstrap=kafka)
    await make(kafka, topics.traces, 2, {"cleanup.policy": "delete"})
    with pytest.raises(ClusterError, match="has 2 partitions, so every topic of ours must; nothing was made"):
        await create(cluster, topics, 4)
    assert list(await found(cluster, topics)) == [topics.traces]
    assert len(await create(cluster, topics)) == 5
    assert await check(cluster, topics) == []


async def test_each_fault_of_real_topics_can_be_mended_as_told(kafka: str, topics: Topics) -> None:
    cluster = Kafka(bootstrap=kafka)
    bad = {"cleanup.policy": "delete", "retention.ms": "1000", "max.message.bytes": "1000000"}
    for role in ("updates", "deltas"):
        await make(kafka, getattr(topics, role), 3, bad)
    await create(cluster, topics, 3)
    wrong = await check(cluster, topics)
    assert [(each.split()[0], each.split()[2]) for each in wrong] == [
        (topics.updates, "cleanup.policy"),
        (topics.updates, "segment.bytes"),
        (topics.updates, "min.cleanable.dirty.ratio"),
        (topics.updates, "max.message.bytes"),
        (topics.deltas, "retention.ms"),
        (topics.deltas, "max.message.bytes"),
    ]
    mended: dict[str, dict[str, str]] = {}
    for each in wrong:
        assert f"kafka-configs.sh --bootstrap-server {kafka} --alter --entity-type topics" in each
        (told,) = re.findall(r"--entity-name (\S+) --add-config (\S+)=(\S+)$", each)
        mended.setdefault(told[0], {})[told[1]] = told[2]
    admin: Any = AIOKafkaAdminClient(bootstrap_servers=kafka)
    await admin.start()
    try:
        resources = [ConfigResource(ConfigResourceType.TOPIC, name, settings) for name, settings in mended.items()]
        await admin.alter_configs(resources)
    finally:
        await admin.close()
    while await check(cluster, topics):
        await anyio.sleep(0.01)


async def test_a_cluster_that_is_not_there() -> None:
    with pytest.raises(ClusterError, match=r"no broker answers at 127\.0\.0\.1:1;"):
        await check(Kafka(bootstrap="127.0.0.1:1"), Topics())


def test_the_commands_say_with_their_exit_code(tmp_path: Path, configuration: Path, topics: Topics) -> None:
    missing = process("topics", "check", "--config", configuration, cwd=tmp_path)
    assert missing.code == 1
    assert len(missing.text.splitlines()) == 6
    assert f"6 things to mend, then: tracecomb topics check --config {configuration}" in missing.err

    made = process("topics", "create", "--config", configuration, "--partitions", "2", cwd=tmp_path).succeeded()
    assert made.text.splitlines() == [f"{name} made" for name in asdict(topics).values()]

    checked = process("topics", "check", "--config", configuration, cwd=tmp_path).succeeded()
    assert checked.text == "the topics are as they must be\n"
    fewer = process("topics", "check", "--config", configuration, "--partitions", "3", cwd=tmp_path)
    assert fewer.code == 1
    assert "kafka-topics.sh" in fewer.text


def test_commands_that_reach_nothing() -> None:
    for command in ("create", "check"):
        failed = tracecomb("topics", command, "--at", "kafka://127.0.0.1:1").failed(1)
        assert "no broker answers at 127.0.0.1:1; --at or kafka.bootstrap in the configuration" in failed
    assert "write kafka://host:port" in tracecomb("topics", "check", "--at", "127.0.0.1:1").failed(2)


@pytest.mark.parametrize(
    ("role", "setting", "value", "wrong"),
    [
        ("traces", "cleanup.policy", "compact", True),
        ("traces", "cleanup.policy", "compact,delete", True),
        ("traces", "max.message.bytes", "1000", False),
        ("updates", "cleanup.policy", "delete,compact", True),
        ("updates", "max.message.bytes", str(16 << 20), False),
        ("updates", "segment.bytes", str(1 << 30), True),
        ("updates", "segment.bytes", str(8 << 20), False),
        ("state", "min.cleanable.dirty.ratio", "0.5", True),
        ("state", "min.cleanable.dirty.ratio", "", True),
        ("deltas", "retention.bytes", "1000000", True),
        ("rejects", "message.timestamp.type", "CreateTime", True),
        ("rejects", "retention.ms", "1000", False),
        ("controls", "retention.ms", "604800000", True),
    ],
)
def test_rules(role: str, setting: str, value: str, wrong: bool) -> None:
    name = NAMES[role]
    changed = {**RIGHT, name: TopicFound(6, {**settings_for(role), setting: value})}
    told = faults(Topics(), changed, "b:1")
    assert len(told) == wrong
    assert all(each.startswith(f"{name} has {setting}") for each in told)


def test_numbers_of_partitions() -> None:
    assert faults(Topics(), RIGHT, "b:1") == []
    more, fewer = (
        faults(Topics(), {**RIGHT, NAMES["state"]: TopicFound(count, settings_for("state"))}, "b:1") for count in (7, 5)
    )
    assert "cannot be taken away" in more[0]
    assert "kafka-topics.sh --bootstrap-server b:1 --alter --topic prompt-state --partitions 6" in fewer[0]
    assert (len(more), len(fewer)) == (1, 1)
    assert len(faults(Topics(), RIGHT, "b:1", 5)) == 6


@pytest.mark.parametrize("servers", ["broker:9092", "a.b-c:1,10.0.0.1:65535", "[::1]:9092"])
def test_addresses(servers: str) -> None:
    assert bootstrap_of(f"kafka://{servers}") == bootstrap_of(f"kafka://{servers}/") == servers
    assert at_cluster(load(), f"kafka://{servers}").kafka.bootstrap == servers
    assert connection(Kafka(bootstrap=servers))["bootstrap_servers"] == servers.split(",")


@pytest.mark.parametrize(
    "at", ["kafka://", "kafka://host", "kafka://h:0", "kafka://h:65536", "kafka://h:1,", "h:1", "kafka://h:1/x"]
)
def test_what_is_no_address(at: str) -> None:
    with pytest.raises(ConfigError, match="write kafka://host:port"):
        bootstrap_of(at)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("[kafka]\nbootstrap = 'here'", 'kafka.bootstrap is "here"; allowed: host:port'),
        ("[kafka]\npartitioner = 'random'", 'kafka.partitioner is "random"; allowed: "murmur2" or "crc32"'),
        ("[kafka]\nsession_timeout = 1", "kafka.session_timeout is 1; allowed: seconds, from 6"),
        ("[topics]\nstate = 'a b'", 'topics.state is "a b"; allowed: a topic'),
        ("[topics]\nstate = '..'", 'topics.state is ".."; allowed: a topic'),
        ("[topics]\nstate = 'prompt-updates'", 'topics.state is "prompt-updates"; allowed: a topic\'s name, another'),
        ("[topics]\nupdate = 'x'", "topics.update is not a setting; the nearest one is topics.updates"),
    ],
)
def test_configuration(tmp_path: Path, text: str, error: str) -> None:
    file = tmp_path / "tracecomb.toml"
    file.write_text(text)
    with pytest.raises(ConfigError, match=re.escape(error)):
        load(file)
