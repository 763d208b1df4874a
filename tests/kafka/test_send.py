"""Sending trace logs: what arrives where, what is sent once and what again, and what a kill costs."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import anyio
import pytest
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from msgspec.structs import asdict

from operators.values import Trace
from stream.kafka.cursor import Cursor, Sent, is_of_topic
from stream.kafka.homes import Partitioner, home
from stream.kafka.memory import Memory, state_folder
from stream.kafka.pace import Pace
from stream.kafka.tables import Topics
from stream.records import Bad, Found
from tests.kafka.conftest import MakeTopics
from tests.kafka.consuming import consumed
from tests.stream.logs import Log
from tests.stream.running import PYTHON, environment, shell, tracecomb, wait_for


class Cluster:
    """A broker's topics and a configuration that names them, for the command ``send``."""

    def __init__(self, kafka: str, topics: Topics, folder: Path) -> None:
        self.kafka = kafka
        self.traces = topics.traces
        self.file = folder / "tracecomb.toml"
        self._names = "\n".join(f'{role} = "{name}"' for role, name in asdict(topics).items())
        self.configure("")

    def configure(self, more: str) -> None:
        self.file.write_text(f'[topics]\n{self._names}\n[kafka]\nbootstrap = "{self.kafka}"\n{more}')

    def send(self, *arguments: str | Path) -> Any:
        """Send, and give back what ``--json`` tells."""
        return tracecomb("send", *arguments, "--config", self.file, "--json").succeeded().json

    def arrived(self) -> list[Any]:
        return anyio.run(consumed, self.kafka, self.traces)

    def ids(self) -> Counter[str]:
        """How often the topic holds each trace."""
        return Counter(json.loads(record.value)["id"] for record in self.arrived())


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What is remembered, of this test alone."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state" / "tracecomb"


@pytest.fixture
def cluster(kafka: str, make_topics: MakeTopics, tmp_path: Path) -> Cluster:
    return Cluster(kafka, anyio.run(make_topics, kafka), tmp_path)


@pytest.mark.parametrize("partitioner", ["murmur2", "crc32"])
def test_every_trace_arrives_at_the_home_of_its_prompt(
    cluster: Cluster, tmp_path: Path, partitioner: Partitioner
) -> None:
    cluster.configure(f'partitioner = "{partitioner}"')
    log = Log(count=1200, prompts=20, bare=True)
    log.write(tmp_path / "log.jsonl")
    told = cluster.send(tmp_path / "log.jsonl")
    assert (told["sent"], told["known"], told["rejected"]) == (1200, 0, 0)
    records = cluster.arrived()
    assert {record.partition for record in records} == {0, 1, 2}
    for record in records:
        trace = json.loads(record.value)
        assert record.key.decode() == trace["prompt"]
        assert record.partition == home(record.key, partitioner, 3)
    assert cluster.ids() == Counter({log.id(number): 1 for number in range(1200)})
    order = [json.loads(record.value)["id"] for record in records if record.partition == 1]
    assert order == sorted(order, key=lambda id: int(id.rpartition("-")[2]))


def test_the_clients_own_partitioner_agrees(kafka: str) -> None:
    from aiokafka.partitioner import DefaultPartitioner

    for number in range(200):
        key = f"support/{number}".encode()
        assert DefaultPartitioner()(key, [*range(7)], [*range(7)]) == home(key, "murmur2", 7)


def test_what_is_no_trace_is_told_with_its_place_and_not_sent(cluster: Cluster, tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    lines = [b'{"id": "a", "steps": [{"content": "x"}]}', b"{broken", b'{"id": "b", "steps": [{"content": "y"}]}']
    (folder / "a.jsonl").write_bytes(b"\n".join(lines))
    (folder / "notes.txt").write_text("nothing\n")
    ran = tracecomb("send", folder, "--config", cluster.file).succeeded()
    assert f"2 traces sent to {cluster.traces}, 0 sent before, 1 rejected" in ran.text
    assert f"{folder}/a.jsonl:2: not sent: " in ran.err
    assert "1 file skipped, with no trace in it" in ran.err
    assert cluster.ids() == Counter(a=1, b=1)
    assert {record.key for record in cluster.arrived()} == {b"default"}


def test_prompts_are_chosen_as_in_a_replay(cluster: Cluster, tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    log.write_text('{"agent": "bot", "steps": [{"content": "x"}]}\n{"prompt": "own", "steps": [{"content": "x"}]}\n')
    cluster.send(log, "--prompt", "support/{agent}")
    cluster.send(log, "--force-prompt", "one", "--again")
    assert Counter(record.key for record in cluster.arrived()) == {b"support/bot": 1, b"own": 1, b"one": 2}
    assert all(json.loads(record.value)["id"] for record in cluster.arrived())


def test_a_log_is_sent_once_and_then_what_it_has_grown_by(cluster: Cluster, tmp_path: Path) -> None:
    log, file = Log(count=700, bare=True, bad=20), tmp_path / "log.jsonl"
    log.write(file)
    whole = file.read_bytes()
    lines = whole.splitlines(keepends=True)
    file.write_bytes(b"".join(lines[:600]) + lines[600][:30])  # the last one is still being written
    first = cluster.send(file)
    assert first["rejected"] >= 1
    again = cluster.send(file)
    assert (again["sent"], again["known"]) == (0, first["sent"])
    file.write_bytes(whole)
    third = cluster.send(tmp_path / "." / "log.jsonl")
    assert third["sent"] + third["known"] == 700
    assert third["known"] == first["sent"]
    assert cluster.ids() == Counter({log.id(number): 1 for number in range(700)})
    assert cluster.send(file, "--again")["sent"] == 700
    assert set(cluster.ids().values()) == {2}


@pytest.mark.parametrize("change", ["rewritten", "shorter"])
def test_another_log_of_the_same_name_is_sent_whole(cluster: Cluster, tmp_path: Path, change: str) -> None:
    file = tmp_path / "log.jsonl"
    Log(count=50, bare=True).write(file)
    cluster.send(file)
    other = Log(count=60 if change == "rewritten" else 40, seed=1, bare=True)
    other.write(file)
    ran = tracecomb("send", file, "--config", cluster.file, "--json").succeeded()
    assert (ran.json["sent"], ran.json["known"]) == (other.count, 0)
    assert f"{file} is not the log that was sent before; all of it was sent" in ran.err
    assert set(cluster.ids().values()) == {1}


def test_a_topic_that_was_made_again_gets_all(cluster: Cluster, tmp_path: Path) -> None:
    file = tmp_path / "log.jsonl"
    Log(count=50, bare=True).write(file)
    cluster.send(file)

    async def make_again() -> None:
        admin: Any = AIOKafkaAdminClient(bootstrap_servers=cluster.kafka)
        await admin.start()
        try:
            await admin.delete_topics([cluster.traces])
            while cluster.traces in await admin.list_topics():
                await anyio.sleep(0.01)
            await admin.create_topics([NewTopic(cluster.traces, 3, 1)])
            while cluster.traces not in await admin.list_topics():
                await anyio.sleep(0.01)
        finally:
            await admin.close()

    anyio.run(make_again)
    assert cluster.send(file)["sent"] == 50


def begin(cluster: Cluster, file: Path, folder: Path, *more: str) -> subprocess.Popen[bytes]:
    arguments = ["send", str(file), "--config", str(cluster.file), "--json", *more]
    return subprocess.Popen(
        [*PYTHON, *arguments], cwd=folder, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )


def remembered(state: Path) -> int:
    """How many records are remembered as sent."""
    return sum(json.loads(file.read_bytes())["records"] for file in state.rglob("*.json"))


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_one_that_was_cut_short_goes_on(cluster: Cluster, tmp_path: Path, state: Path, how: signal.Signals) -> None:
    log, file = Log(count=2000, bare=True), tmp_path / "log.jsonl"
    log.write(file)
    with begin(cluster, file, tmp_path, "--rate", "400") as sender:
        wait_for(lambda: remembered(state))
        sender.send_signal(how)
        _, talk = sender.communicate()
    ids = cluster.ids()
    assert 0 < len(ids) < 2000
    if how != signal.SIGKILL:
        assert sender.returncode == 130
        assert b"run the same command again to go on" in talk
        # What was under way has arrived, so nothing need be sent again.
        assert remembered(state) == len(ids)
    rest = cluster.send(file)
    assert rest["known"] + rest["sent"] == 2000
    assert rest["known"] <= len(ids)
    assert rest["known"] > 0
    assert set(cluster.ids()) == {log.id(number) for number in range(2000)}
    if how != signal.SIGKILL:
        assert set(cluster.ids().values()) == {1}
    assert cluster.send(file)["sent"] == 0


def test_a_trace_too_large_for_the_topic_is_rejected(cluster: Cluster, tmp_path: Path) -> None:
    file = tmp_path / "log.jsonl"
    large = {"id": "large", "steps": [{"content": "x" * (8 << 20)}]}
    file.write_text(json.dumps(large) + "\n" + '{"id": "small", "steps": [{"content": "x"}]}\n')
    ran = tracecomb("send", file, "--config", cluster.file, "--json").succeeded()
    assert (ran.json["sent"], ran.json["rejected"]) == (1, 1)
    assert f"{file}:1: not sent: " in ran.err
    assert "(max.message.bytes)" in ran.err
    assert cluster.ids() == Counter(small=1)


def test_what_comes_through_a_pipe_is_sent_each_time(cluster: Cluster, tmp_path: Path, state: Path) -> None:
    Log(count=20, bare=True).write(tmp_path / "log.jsonl")
    for _ in range(2):
        ran = shell(f"cat log.jsonl | tracecomb send - --config {cluster.file} --json", tmp_path)
        assert ran.json["sent"] == 20, ran
    assert remembered(state) == 0


def test_a_pipe_that_stays_open_holds_up_no_trace_and_no_interrupt(cluster: Cluster, tmp_path: Path) -> None:
    line = b'{"id": "%d", "steps": [{"content": "x"}]}\n'
    command = [*PYTHON, "send", "-", "--config", str(cluster.file)]
    pipes = {"stdin": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, cwd=tmp_path, env=environment(), **pipes) as sender:  # type: ignore[call-overload]
        sender.stdin.write(line % 1)
        sender.stdin.flush()
        wait_for(lambda: cluster.ids() == Counter({"1": 1}))
        sender.send_signal(signal.SIGINT)
        talk = sender.stderr.read()
        assert sender.wait() == 130, talk
    assert b"Fatal" not in talk


def test_a_topic_that_is_missing_is_not_made(kafka: str, tmp_path: Path, unique: str) -> None:
    log = Log(count=1).write(tmp_path / "log.jsonl")
    file = tmp_path / "tracecomb.toml"
    file.write_text(f'[topics]\ntraces = "{unique}"\n')
    for _ in range(2):
        failed = tracecomb("send", log, "--at", f"kafka://{kafka}", "--config", file).failed(1)
        assert f"{unique} does not exist at {kafka}; `tracecomb topics create` makes it" in failed


def test_a_cluster_or_a_path_that_is_not_there(tmp_path: Path) -> None:
    log = Log(count=1).write(tmp_path / "log.jsonl")
    at = "--at", "kafka://127.0.0.1:1"
    assert "no broker answers at 127.0.0.1:1" in tracecomb("send", log, *at).failed(1)
    assert "nothing" in tracecomb("send", tmp_path / "nothing", *at).failed(1)
    for flag in ("--rate", "--speed"):
        assert "is no number over 0" in tracecomb("send", log, flag, "0", *at).failed(2)


def trace(ended: str | None = None, started: str | None = None) -> Trace:
    return Trace(id="x", started=started, ended=ended)


def test_pace() -> None:
    assert [Pace().due(trace()) for _ in range(3)] == [0, 0, 0]
    at_rate = Pace(rate=4)
    assert [at_rate.due(trace()) for _ in range(4)] == [0, 0.25, 0.5, 0.75]
    recorded = Pace(speed=10)
    times = ["2026-01-01T00:00:00Z", "2026-01-01T00:01:00Z", "2026-01-01T00:00:30Z", None, "2026-01-01T00:02:00+00:00"]
    assert [recorded.due(trace(time)) for time in times] == [0, 6, 6, 6, 12]
    assert [Pace(speed=1).due(trace(time)) for time in (None, "no time")] == [0, 0]
    started = Pace(speed=1)
    assert [started.due(trace(started=time)) for time in times[:2]] == [0, 60]


def found(number: int) -> Found:
    return Found(Trace(id=f"t-{number}"), "log", number, number.to_bytes(8, "big"))


def passed(cursor: Cursor, records: list[Found | Bad]) -> list[Found | Bad]:
    return [record for record in records if cursor.is_new(record)]


def test_cursor() -> None:
    records: list[Found | Bad] = [found(1), Bad("log", 2, "why", b"{"), found(3)]
    cursor = Cursor()
    assert passed(cursor, records) == records
    sent = cursor.sent({"0": 7})
    assert (sent.records, sent.offsets, cursor.changed) == (3, {"0": 7}, False)

    grown = Cursor(sent)
    assert passed(grown, [*records, found(4)]) == [found(4)]
    assert not grown.changed
    for other in ([found(1), found(2), found(3), found(4)], [*records[:2], found(5), found(6)], records[:2]):
        cursor = Cursor(sent)
        assert passed(cursor, list(other)) == []
        assert cursor.changed

    assert is_of_topic(sent, {"0": 8})
    assert not is_of_topic(sent, {"0": 7})
    assert not is_of_topic(sent, {})


def test_memory(tmp_path: Path) -> None:
    memory, sent = Memory(tmp_path, "cluster", "topic"), Sent(3, "ab", {"0": 1})
    assert memory.get("log") is None
    memory.put("log", sent)
    assert memory.get("log") == memory.get(os.path.abspath("log")) == sent
    assert Memory(tmp_path, "cluster", "other").get("log") is None
    assert Memory(tmp_path, "other", "topic").get("log") is None
    (file,) = tmp_path.rglob("*.json")
    file.write_bytes(b"{}")
    assert memory.get("log") is None


@pytest.mark.parametrize(
    ("environ", "folder"),
    [
        ({"XDG_STATE_HOME": "/state", "HOME": "/home"}, "/state/tracecomb"),
        ({"XDG_STATE_HOME": "relative", "HOME": "/home"}, "/home/.local/state/tracecomb"),
        ({"HOME": "/home"}, "/home/.local/state/tracecomb"),
    ],
)
def test_state_folder(environ: dict[str, str], folder: str) -> None:
    assert state_folder(environ) == Path(folder)
