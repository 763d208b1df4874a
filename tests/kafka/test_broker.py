"""The broker that tests and newcomers start: what it survives, what it leaves behind, and what it says."""

from __future__ import annotations

import json
import os
import random
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

from stream.kafka.broker import Broker, Missing, NotStarted, jars, java
from stream.kafka.broker.answers import answers
from stream.kafka.broker.jars import POM
from stream.kafka.broker.ports import free_ports
from stream.kafka.broker.properties import properties
from tests.conftest import ROOT
from tests.stream.running import process, start, wait_for

TOPIC = TopicPartition("things", 0)


async def put(bootstrap: str, value: bytes) -> None:
    async with AIOKafkaProducer(bootstrap_servers=bootstrap, acks="all") as producer:
        await producer.send_and_wait(TOPIC.topic, value, partition=0)


async def held(bootstrap: str) -> list[bytes | None]:
    async with AIOKafkaConsumer(bootstrap_servers=bootstrap, enable_auto_commit=False) as consumer:
        consumer.assign([TOPIC])
        await consumer.seek_to_beginning()
        end = (await consumer.end_offsets([TOPIC]))[TOPIC]
        return [(await consumer.getone()).value for _ in range(end)]


def is_there(pid: int) -> bool:
    """Whether a process runs; one that has ended and waits for its parent to look does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


async def test_a_port_that_was_lost_is_not_insisted_on(startable: None, monkeypatch: pytest.MonkeyPatch) -> None:
    broker = Broker()
    with socket.create_server(("127.0.0.1", 0)) as taken:  # by someone quicker than the broker
        ports = iter([[taken.getsockname()[1], free_ports(1, random.Random())[0]], free_ports(2, random.Random())])
        monkeypatch.setattr("stream.kafka.broker.broker.free_ports", lambda count, chance: next(ports))
        await broker.start()
    assert next(ports, None) is None
    assert broker.running
    await broker.stop()


async def test_a_broker_is_stopped_frozen_killed_and_goes_on_where_it_was(own_broker: Broker) -> None:
    broker = own_broker
    address, first = broker.bootstrap, broker.pid
    await put(address, b"before")

    broker.freeze()
    assert is_there(first)
    while await answers(address):  # a process of many threads takes a moment to stop
        pass
    broker.thaw()
    while not await answers(address):
        pass

    broker.kill()
    assert not broker.running
    assert not is_there(first)
    await broker.restart()
    assert broker.bootstrap == address
    assert broker.pid != first
    assert await held(address) == [b"before"]
    assert broker.log.read_text().count("Kafka Server started") == 2

    last, folder = broker.pid, broker.folder
    await broker.stop()
    assert not is_there(last)
    assert not folder.exists()


def test_it_ends_with_its_parent(tmp_path: Path, startable: None) -> None:
    """Also when nobody can tell it to: the parent is killed while the broker starts."""
    script = (
        "import anyio, os, threading, time\n"
        "from stream.kafka.broker import Broker\n"
        "broker = Broker()\n"
        "def tell():\n"
        "    while broker._process is None: time.sleep(0.01)\n"
        "    print(broker.pid, broker.folder, flush=True)\n"
        "threading.Thread(target=tell).start()\n"
        "anyio.run(broker.start)\n"
    )
    environ = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, env=environ) as parent:
        assert parent.stdout is not None
        pid, folder = parent.stdout.readline().decode().split()
        assert is_there(int(pid))
        parent.kill()
    wait_for(lambda: not is_there(int(pid)))
    wait_for(lambda: not Path(folder).exists())


def test_tracecomb_kafka_start(tmp_path: Path, startable: None) -> None:
    """It says where it listens and what to do next, ends at Ctrl-C, and keeps its data where it is told to."""
    data = tmp_path / "kept"
    for made in ("agent-traces made", "all topics were there already"):
        with start("kafka", "start", "--port", "0", "--data", data, "--json", cwd=tmp_path) as command:
            assert command.stdout is not None
            assert command.stderr is not None
            told = json.loads(command.stdout.readline())
            assert is_there(told["pid"])
            address = f"kafka://{told['bootstrap']}"
            created = process("topics", "create", "--at", address, cwd=tmp_path).succeeded()
            assert made in created.text + created.err
            command.send_signal(signal.SIGINT)
            _, talk = command.communicate()
        assert command.returncode == 0
        assert f"topics create --at {address}" in talk.decode()
        assert not is_there(told["pid"])
    assert (data / "kafka.log").read_text()


def test_a_port_that_is_taken(tmp_path: Path, startable: None) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        refused = process("kafka", "start", "--port", str(port), cwd=tmp_path)
    assert refused.code == 1
    assert f"port {port} of 127.0.0.1 is in use" in refused.err


async def test_a_broker_that_ends_at_once_shows_its_log(startable: None) -> None:
    broker = Broker(settings={"process.roles": "nobody"})
    with pytest.raises(NotStarted, match=r"(?s)exit code 1.*end of its log.*process\.roles"):
        await broker.start()
    assert not broker.running


def test_ports_are_below_those_of_outgoing_connections() -> None:
    lowest = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    ports = free_ports(20, random.Random(1))
    assert len(set(ports)) == 20
    assert max(ports) < lowest


def test_properties_survive_odd_paths(tmp_path: Path) -> None:
    text = properties(Path("/a\\b/é\U0001f600"), 1, 2, {"node.id": "7"})
    assert "log.dirs=/a\\\\b/\\u00e9\\ud83d\\ude00\n" in text
    assert "node.id=7\n" in text
    assert text.count("node.id=") == 1
    assert text.isascii()


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    """An environment with a cache of its own, and a ``mvn`` that a test writes with :func:`maven`."""
    (tmp_path / "bin").mkdir()
    return {"PATH": f"{tmp_path / 'bin'}:/usr/bin:/bin", "XDG_CACHE_HOME": str(tmp_path / "cache")}


def command(environ: dict[str, str], name: str, script: str) -> None:
    file = Path(environ["PATH"].partition(":")[0]) / name
    file.write_text(f"#!/bin/sh\n{script}\n")
    file.chmod(0o755)


RESOLVES = (
    'for each in "$@"; do case $each in -DoutputDirectory=*) to=${each#*=};; esac; done; '
    'echo run >> "$XDG_CACHE_HOME/runs"; sleep 0.2; mkdir -p "$to"; : > "$to/kafka_2.13-0.jar"'
)


def test_jars_are_resolved_once_by_many_at_once(environ: dict[str, str]) -> None:
    command(environ, "mvn", RESOLVES)
    found: list[Path] = []
    threads = [threading.Thread(target=lambda: found.append(jars(environ))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    cache = Path(environ["XDG_CACHE_HOME"])
    assert len(set(found)) == 1
    assert len(found) == 4
    assert (found[0] / "kafka_2.13-0.jar").exists()
    assert (cache / "runs").read_text() == "run\n"
    assert jars({**environ, "PATH": "/nowhere"}) == found[0]


def test_what_a_killed_maven_left_is_not_taken_for_whole(environ: dict[str, str]) -> None:
    command(environ, "mvn", "exit 1")
    with pytest.raises(Missing):
        jars(environ)
    command(environ, "mvn", RESOLVES + "; exit 9")
    with pytest.raises(Missing, match="exit code 9"):
        jars(environ)
    command(environ, "mvn", '[ -z "$(ls -d "$XDG_CACHE_HOME"/tracecomb/*.part 2>/dev/null)" ] || exit 1; ' + RESOLVES)
    assert [file.name for file in jars(environ).iterdir()] == ["kafka_2.13-0.jar"]


def test_missing_java_and_maven_say_what_to_install(environ: dict[str, str]) -> None:
    nothing = {**environ, "PATH": "/nowhere"}
    with pytest.raises(Missing, match="install Java 17"):
        java(nothing)
    with pytest.raises(Missing, match=r"JAVA_HOME \(/nowhere\) has no bin/java"):
        java({**environ, "JAVA_HOME": "/nowhere"})
    with pytest.raises(Missing, match="install Maven"):
        jars(nothing)
    command(environ, "mvn", "echo '[ERROR] no such repository'; exit 1")
    with pytest.raises(Missing, match=r"exit code 1\):\n\[ERROR\] no such repository"):
        jars(environ)


def test_the_pom_is_where_the_issue_wants_it() -> None:
    assert (ROOT / "deploy" / "kafka" / "pom.xml").samefile(POM)
