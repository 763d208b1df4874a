"""Commands on a cluster: the same output as on files, and changes that the service makes."""

from __future__ import annotations

import json
import re
import signal
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from functools import partial
from itertools import pairwise
from pathlib import Path
from secrets import token_hex
from typing import Any, NamedTuple

import anyio
import pytest
from aiokafka import AIOKafkaProducer
from msgspec import to_builtins

from stream.config import Config
from stream.formats import FORMATS
from stream.kafka import lookup, request
from stream.kafka.broker import Broker
from stream.kafka.controls import Control, control_of, encode_control
from stream.kafka.homes import home
from stream.kafka.messages import Answer, Made
from tests.kafka.serving import configured, deltas, made, read_all, send, serving, until
from tests.stream.logs import Log
from tests.stream.running import Ran, start, tracecomb

PARTITIONS = 3
PROMPTS = ("shop/0", "shop/1")
PROMPT = PROMPTS[0]
BATCH = 10
LOG = Log(count=260, prompts=2, named=tuple(f"err-{number:05}" for number in range(1, 6)), bare=True)
BOOK = "## STRATEGIES & INSIGHTS\n[str-00077] helpful=4 harmful=1 :: Ask before you refund\n\n## OTHERS\n"


class Learned(NamedTuple):
    """The same log learned into a store and on a cluster, with an import and a rollback half way.

    :param at: what ``--at`` says of the cluster: a configuration, for its topics have names of their own.
    :param windows: how many each prompt has.
    """

    store: Path
    at: Path
    config: Config
    windows: dict[str, int]
    published: list[bytes]


def written(folder: Path, config: Config) -> Path:
    """The configuration as a file."""
    tables = {name: to_builtins(getattr(config, name)) for name in ("kafka", "topics")}
    lines = [
        line
        for name, table in tables.items()
        for line in (f"[{name}]", *(f"{key} = {json.dumps(value)}" for key, value in table.items()))
    ]
    path = folder / "cluster.toml"
    path.write_text("\n".join(lines) + "\n")
    return path


async def run(*arguments: str | Path, **options: Any) -> Ran:
    """Run a command beside a service in this process."""
    return await anyio.to_thread.run_sync(partial(tracecomb, *arguments, **options))


def whole_windows(lines: list[bytes], of: Callable[[int], str]) -> tuple[list[bytes], list[bytes], dict[str, int]]:
    """Two halves of a log in which each prompt has as many traces as fill its windows."""
    places: dict[str, list[int]] = {}
    for place in range(len(lines)):
        places.setdefault(of(place), []).append(place)
    halves: tuple[set[int], set[int]] = (set(), set())
    windows = {}
    for prompt, found in places.items():
        windows[prompt] = len(found) // BATCH
        middle = windows[prompt] // 2 * BATCH
        halves[0].update(found[:middle])
        halves[1].update(found[middle : windows[prompt] * BATCH])
    first, second = ([line for place, line in enumerate(lines) if place in half] for half in halves)
    return first, second, windows


@pytest.fixture(scope="module")
def learned(kafka: str, tmp_path_factory: pytest.TempPathFactory) -> Learned:
    folder = tmp_path_factory.mktemp("at")
    config = configured(kafka, f"at-{token_hex(4)}", batch_size=BATCH)
    store, at, book = folder / "store", written(folder, config), folder / "book.txt"
    book.write_text(BOOK)
    first, second, windows = whole_windows(list(LOG.lines()), LOG.prompt)
    logs = folder / "1.jsonl", folder / "2.jsonl"
    for path, lines in zip(logs, (first, second), strict=True):
        path.write_bytes(b"\n".join(lines) + b"\n")
    changes = f"import {book} --prompt {PROMPT}", f"rollback {PROMPT} --to 2"

    for command in (f"replay {logs[0]}", *changes, f"replay {logs[1]}"):
        size = ["--batch-size", str(BATCH)] if command.startswith("replay") else []
        tracecomb(*command.split(), *size, "--at", store).succeeded()

    async def learn() -> list[bytes]:
        await made(config, PARTITIONS)
        async with serving(config) as service:
            await send(config, map(json.loads, first), partitions=PARTITIONS)
            await until(lambda: service.tally.versions >= len(first) // BATCH)
            for command in changes:
                (await run(*command.split(), "--at", at)).succeeded()
            await send(config, map(json.loads, second), partitions=PARTITIONS)
            await until(lambda: service.tally.versions >= sum(windows.values()) + len(changes))
        records = await read_all(config, config.topics.updates)
        return [record.value for record in records if record.key == PROMPT.encode()]

    return Learned(store, at, config, windows, anyio.run(learn))


def _neighbour(prompt: str) -> str:
    """A prompt that there is not, at home where another one is."""
    where = home(prompt.encode(), "murmur2", PARTITIONS)
    return next(name for name in map(str, range(99)) if home(name.encode(), "murmur2", PARTITIONS) == where)


def both(learned: Learned, *arguments: str) -> Iterator[str]:
    """What a command prints on files, and what on the cluster."""
    for at in (learned.store, learned.at):
        yield tracecomb(*arguments, "--at", at).succeeded().text


def without_times(text: str) -> str:
    return re.sub(r"(  |\\t)\d{4}-\d\d-\d\dT[0-9:.]+Z", "", text)


class TestTheSameAsOnFiles:
    @pytest.mark.parametrize("prompt", PROMPTS)
    def test_history(self, learned: Learned, prompt: str) -> None:
        on_files, on_kafka = both(learned, "history", prompt)
        assert without_times(on_kafka) == without_times(on_files)
        extra = 2 if prompt == PROMPT else 0
        assert len(on_kafka.splitlines()) == 1 + learned.windows[prompt] + extra
        files, kafka = (
            [json.loads(line) for line in text.splitlines()] for text in both(learned, "history", prompt, "--json")
        )
        assert [{**each, "at": None} for each in kafka] == [{**each, "at": None} for each in files]
        assert [list(each) for each in kafka] == [list(each) for each in files]
        assert all(each["at"] for each in kafka)

    @pytest.mark.parametrize("format", FORMATS)
    def test_show_and_export_of_every_version(self, learned: Learned, tmp_path: Path, format: str) -> None:
        last = len(learned.published)
        for number in range(last + 1) if format == "text" else (0, 3, last - 1):
            shown = list(both(learned, "show", PROMPT, "--format", format, "--version", str(number)))
            if format == "json":
                known = [json.loads(text) for text in shown]
                for each in known:
                    for name in ("at", "lineage", "stats"):
                        each.pop(name, None)
                    each["learned"].pop("offsets", None)
                assert known[0] == known[1]
            else:
                assert shown[0] == shown[1]
        file = tmp_path / "book"
        options = ["--format", format, "--version", str(number)]
        tracecomb("export", PROMPT, *options, "-o", file, "--at", learned.at).succeeded()
        assert file.read_text() == shown[1]
        if format != "json":
            on_files, on_kafka = both(learned, "show", PROMPT, "--format", format)
            assert on_kafka == on_files

    def test_what_an_import_brought_besides_bullets(self, learned: Learned) -> None:
        version = learned.windows[PROMPT] // 2 + 1
        on_files, on_kafka = both(learned, "export", PROMPT, "--version", str(version))
        assert on_kafka == on_files
        assert "## OTHERS" in on_kafka

    def test_every_version_to_the_byte(self, learned: Learned) -> None:
        assert len(learned.published) > 9
        for number, value in enumerate(learned.published, 1):
            ran = tracecomb("show", PROMPT, "--format", "json", "--version", str(number), "--at", learned.at)
            assert ran.succeeded().out == value + b"\n"

    def test_from_stretches_of_any_length(self, learned: Learned, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(lookup, "_RECORDS", 1)
        for first, growth in ((1, 1), (1, 2), (5, 3)):
            monkeypatch.setattr(lookup, "_FIRST_STRETCH", first)
            monkeypatch.setattr(lookup, "_GROWTH", growth)
            for number in (len(learned.published), 1, 4, 9):
                ran = tracecomb("show", PROMPT, "--format", "json", "--version", str(number), "--at", learned.at)
                assert ran.succeeded().out == learned.published[number - 1] + b"\n"
            assert repr(PROMPT) in tracecomb("show", _neighbour(PROMPT), "--at", learned.at).failed(4)

    def test_diff(self, learned: Learned) -> None:
        versions = range(len(learned.published) + 1)
        for old, new in pairwise(versions):
            on_files, on_kafka = both(learned, "diff", PROMPT, str(old), str(new), *["--counts"][: old % 2])
            assert without_times(on_kafka) == without_times(on_files)
            assert old == 0 or without_times(on_kafka) != on_kafka or not on_kafka

    def test_what_there_is_not(self, learned: Learned) -> None:
        for command in ("show {} --version 99", "show {} --version -1", "diff {} 1 99", "export {} --version 99"):
            arguments = command.format(PROMPT).split()
            on_files, on_kafka = (tracecomb(*arguments, "--at", at).failed(4) for at in (learned.store, learned.at))
            assert on_kafka == on_files
        for command in ("show", "history", "export"):
            error = tracecomb(command, "shop/none", "--at", learned.at).failed(4)
            assert f"{learned.config.topics.updates} at {learned.config.kafka.bootstrap} holds no prompt" in error
        for command in ("rollback shop/none --to 1", f"rollback {PROMPT} --to 99"):
            assert tracecomb(*command.split(), "--at", learned.at).failed(4)

    def test_an_unknown_prompt_is_told_what_its_home_has(self, learned: Learned) -> None:
        where = home(PROMPT.encode(), "murmur2", PARTITIONS)
        error = tracecomb("show", _neighbour(PROMPT), "--at", learned.at).failed(4)
        assert f"its home by murmur2 is partition {where}, which has " in error
        assert repr(PROMPT) in error
        away = next(name for name in map(str, range(99)) if home(name.encode(), "murmur2", PARTITIONS) != where)
        assert repr(PROMPT) not in tracecomb("show", away, "--at", learned.at).failed(4)

    def test_the_environment_names_it_too(self, learned: Learned, monkeypatch: pytest.MonkeyPatch) -> None:
        expected = tracecomb("show", PROMPT, "--at", learned.store).succeeded().out
        monkeypatch.setenv("TRACECOMB_AT", str(learned.at))
        assert tracecomb("show", PROMPT).succeeded().out == expected
        monkeypatch.setenv("TRACECOMB_AT", f"kafka://{learned.config.kafka.bootstrap}")
        assert tracecomb("show", PROMPT, "--config", learned.at).succeeded().out == expected

    def test_on_a_terminal(self, learned: Learned) -> None:
        plain = tracecomb("show", PROMPT, "--at", learned.at).succeeded()
        seen = tracecomb("show", PROMPT, "--at", learned.at, terminal=True).succeeded()
        assert (seen.out, seen.err) == (plain.out, "")


class TestChanges:
    """Each with a service in this process."""

    async def test_asked_and_answered(self, kafka: str, unique: str, tmp_path: Path) -> None:
        config = configured(kafka, unique)
        at, book = written(tmp_path, config), tmp_path / "book.md"
        book.write_text("- a lesson\n- another\n")
        await made(config, PARTITIONS)
        async with serving(config):
            ran = (await run("import", book, "--prompt", "näme\n", "--at", at)).succeeded()
            assert ran.text == f"näme\\n: version 1 has 2 bullets, 2 bullets of {book} merged in\n"
            for _ in range(2):
                ran = (await run("import", book, "--prompt", "näme\n", "--at", at)).succeeded()
                assert ran.text == "näme\\n: version 1 has all of it already, no new version\n"
            ran = (await run("rollback", "näme\n", "--to", "0", "--at", at)).succeeded()
            assert ran.text == "näme\\n: version 2 has the lessons of version 0 (0 bullets)\n"
            ran = (await run("rollback", "näme\n", "--to", "0", "--at", at)).succeeded()
            assert ran.text == "näme\\n: version 3 has the lessons of version 0, which are those it had (0 bullets)\n"
            ran = (await run("import", "-", "--prompt", "näme\n", "--at", at, stdin=book.read_bytes())).succeeded()
            assert ran.text == "näme\\n: version 4 has 2 bullets, 2 bullets of - merged in\n"
        controls = [control_of(record.value) for record in await read_all(config, config.topics.controls)]
        assert [control.kind for control in controls] == ["import"] * 3 + ["rollback"] * 2 + ["import"]
        assert all(re.fullmatch(r".+@.+", control.who) and control.at for control in controls)
        told = await deltas(config)
        answers = {each.offset: each for each in told if isinstance(each, Answer)}
        assert [answers[offset].version for offset in range(6)] == [1, None, None, 2, 3, 4]
        assert [answers[offset].held for offset in range(6)] == [None, 1, 1, None, None, None]
        audits = [each.audit for each in told if isinstance(each, Made)]
        assert [audit["control"] for audit in audits] == [0, 3, 4, 5]
        assert {audit["who"] for audit in audits} == {control.who for control in controls}

    async def test_the_service_looks_for_itself(self, kafka: str, unique: str, tmp_path: Path) -> None:
        """What a command would not have sent, or what was true only when it looked."""
        config = configured(kafka, unique)
        at, book = written(tmp_path, config), tmp_path / "book.md"
        book.write_text("- a lesson\n")
        await made(config)
        async with serving(config) as service, AIOKafkaProducer(bootstrap_servers=kafka) as producer:
            (await run("import", book, "--prompt", "p", "--at", at)).succeeded()
            for prompt, to in (("none", 1), ("none", 0), ("p", 2), ("p", -1), ("p", 1)):
                value = encode_control(Control(kind="rollback", prompt=prompt, to=to))
                await producer.send_and_wait(config.topics.controls, value, prompt.encode(), 0)
            await until(lambda: service.tally.versions >= 2)
        answers = [each for each in await deltas(config) if isinstance(each, Answer)]
        assert [(each.offset, each.version, each.reason) for each in answers] == [
            (0, 1, ""),
            (1, None, "there is no prompt 'none'"),
            (2, None, "there is no prompt 'none'"),
            (3, None, "p has no version 2"),
            (4, None, "p has no version -1"),
            (5, 2, ""),
        ]

    async def test_beyond_the_budget(self, kafka: str, unique: str, tmp_path: Path) -> None:
        config = configured(kafka, unique, learning={"token_budget": 1_000})
        at, book = written(tmp_path, config), tmp_path / "book.md"
        book.write_text("".join(f"- lesson {number} about the matter of length {'x' * 200}\n" for number in range(50)))
        await made(config)
        async with serving(config):
            ran = (await run("import", book, "--prompt", "p", "--at", at)).succeeded()
        found = re.fullmatch(r"tracecomb: (\d+) bullets beyond the budget went, .*token_budget.*\n", ran.err)
        assert found is not None
        assert f"version 1 has {50 - int(found[1])} bullets, 50 bullets of" in ran.text

    async def test_no_service_runs(self, kafka: str, unique: str, tmp_path: Path) -> None:
        config = configured(kafka, unique)
        at, book = written(tmp_path, config), tmp_path / "book.md"
        book.write_text("- a lesson\n")
        await made(config)
        began = time.monotonic()
        ran = await run("import", book, "--prompt", "p", "--at", at, "--timeout", "0.5")
        told = f"the control is in {config.topics.controls}/0 at offset 0 and will be applied when a service runs"
        assert f"no service has answered within 0.5 s: {told}" in ran.failed(1)
        assert time.monotonic() - began < 20
        assert await read_all(config, config.topics.deltas) == []
        async with serving(config) as service:  # and it is
            await until(lambda: service.tally.versions >= 1)
        assert (await run("show", "p", "--at", at)).succeeded().text.endswith("] a lesson\n")

    async def test_each_waits_for_its_own_answer(self, kafka: str, unique: str, tmp_path: Path) -> None:
        config = configured(kafka, unique)
        at = written(tmp_path, config)
        await made(config)
        ran: dict[int, Ran] = {}

        async def merge(number: int) -> None:
            book = f"- lesson {number}\n".encode()
            ran[number] = await run("import", "-", "--prompt", "p", "--at", at, "--timeout", "90", stdin=book)

        # One after the other, for a command's standard streams are the process's; the first gives up waiting.
        assert (
            await run("import", "-", "--prompt", "p", "--at", at, "--timeout", "0", stdin=b"- lesson 1\n")
        ).code == 1
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(merge, 2)
            while not ran and len(await read_all(config, config.topics.controls)) < 2:
                pass
            async with serving(config):
                await until(lambda: ran, 90)
        assert ran[2].succeeded().text == "p: version 2 has 2 bullets, 1 bullet of - merged in\n"

    async def test_a_control_that_is_declined(self, kafka: str, unique: str, tmp_path: Path) -> None:
        """The service has another partitioner, so it does not take the control for one of its prompts."""
        config = configured(kafka, unique)
        at, book = written(tmp_path, config), tmp_path / "book.md"
        book.write_text("- a lesson\n")
        at.write_text(at.read_text().replace('"murmur2"', '"crc32"'))
        prompt = next(
            name
            for name in map(str, range(99))
            if home(name.encode(), "murmur2", PARTITIONS) != home(name.encode(), "crc32", PARTITIONS)
        )
        await made(config, PARTITIONS)
        async with serving(config):
            ran = await run("import", book, "--prompt", prompt, "--at", at)
        assert f"tracecomb: {prompt}: no new version: prompt '{prompt}' is at home in partition" in ran.failed(1)

    async def test_interrupted_while_it_waits(self, kafka: str, unique: str, tmp_path: Path) -> None:
        config = configured(kafka, unique)
        at, book = written(tmp_path, config), tmp_path / "book.md"
        book.write_text("- a lesson\n")
        await made(config)
        command = "import", book, "--prompt", "p", "--at", at, "--timeout", "600", "--verbose"

        def interrupt() -> tuple[int, bytes, str]:
            with start(*command, cwd=tmp_path) as process:
                assert process.stderr is not None
                assert any(b"a control was written" in line for line in process.stderr)
                process.send_signal(signal.SIGINT)
                out, err = process.communicate()
                return process.returncode, out, err.decode()

        code, out, err = await anyio.to_thread.run_sync(interrupt)
        assert (code, out) == (130, b"")
        told = f"interrupted; the control is in {config.topics.controls}/0 at offset 0 and will be applied"
        assert told in err.splitlines()[-1]
        assert "Traceback" not in err

    async def test_a_playbook_too_large_for_a_record(
        self, kafka: str, unique: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        config = configured(kafka, unique)
        at, book = written(tmp_path, config), tmp_path / "book.md"
        await made(config)
        book.write_text("- a lesson\n")
        monkeypatch.setattr(request, "MAX_MESSAGE_BYTES", 100)
        error = (await run("import", book, "--prompt", "p", "--at", at)).failed(1)
        assert "takes 100; import the playbook in parts" in error
        assert await read_all(config, config.topics.controls) == []


class TestOpenTransactions:
    """A version of an open transaction is neither shown nor passed over."""

    @pytest.mark.parametrize("commits", [True, False])
    async def test_its_end_is_waited_for(self, kafka: str, unique: str, tmp_path: Path, commits: bool) -> None:
        config = configured(kafka, unique)
        at = written(tmp_path, config)
        await made(config)
        async with writing(config) as producer:
            async with producer.transaction():
                await producer.send_and_wait(config.topics.updates, update(1, "old"), b"p", 0)
            await producer.begin_transaction()
            await producer.send_and_wait(config.topics.updates, update(2, "new"), b"p", 0)
            async with anyio.create_task_group() as tasks:
                shown: list[Ran] = []

                async def show() -> None:
                    shown.append(await run("show", "p", "--at", at))

                tasks.start_soon(show)
                await anyio.sleep(0.5)
                await (producer.commit_transaction() if commits else producer.abort_transaction())
        assert shown[0].succeeded().text == ("new\n" if commits else "old\n")

    async def test_not_for_ever(self, kafka: str, unique: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(lookup, "STALL_SECONDS", 0.5)
        config = configured(kafka, unique)
        at = written(tmp_path, config)
        await made(config)
        async with writing(config) as producer:
            await producer.begin_transaction()
            await producer.send_and_wait(config.topics.updates, update(1, "new"), b"p", 0)
            error = (await run("show", "p", "--at", at)).failed(1)
            await producer.abort_transaction()
        assert f"{config.topics.updates}/0 at {kafka} gives nothing after offset 0" in error


@asynccontextmanager
async def writing(config: Config) -> AsyncIterator[AIOKafkaProducer]:
    """A transactional producer that is no service's."""
    id = config.kafka.group
    async with AIOKafkaProducer(bootstrap_servers=config.kafka.bootstrap, transactional_id=id) as producer:
        yield producer


def update(version: int, text: str) -> bytes:
    """An update of the prompt ``p``."""
    made_by = {"base": version - 1, "kind": "window", "changed": True}
    return json.dumps({"prompt": "p", "version": version, "text": text, "bullets": [], **made_by}).encode()


class TestClustersThatCannotBeUsed:
    def test_nobody_listens(self, tmp_path: Path) -> None:
        book = tmp_path / "book.md"
        book.write_text("- a lesson\n")
        for command in (
            "show p",
            "history p",
            "diff p 0 1",
            "export p",
            "rollback p --to 0",
            f"import {book} --prompt p",
        ):
            began = time.monotonic()
            error = tracecomb(*command.split(), "--at", "kafka://127.0.0.1:1").failed(1)
            assert error.startswith("tracecomb: no broker answers at 127.0.0.1:1; ")
            assert time.monotonic() - began < 20

    async def test_a_broker_that_hangs(self, own_broker: Broker) -> None:
        own_broker.freeze()
        try:
            ran = await run("show", "p", "--at", f"kafka://{own_broker.bootstrap}")
        finally:
            own_broker.thaw()
        assert f"the cluster at {own_broker.bootstrap} has not answered within 10 s" in ran.failed(1)

    async def test_topics_that_are_missing_are_not_made(self, kafka: str, unique: str, tmp_path: Path) -> None:
        config = configured(kafka, unique)
        at = written(tmp_path, config)
        assert f"there is no topic {config.topics.updates} at {kafka}; " in (await run("show", "p", "--at", at)).failed(
            1
        )
        assert "there is no topic" in (await run("show", "p", "--at", at)).failed(1)

    async def test_versions_that_are_gone(self, kafka: str, unique: str, tmp_path: Path) -> None:
        """As after a retention that somebody set: the newest version is there, what it was made of is not."""
        config = configured(kafka, unique)
        at = written(tmp_path, config)
        await made(config)
        async with AIOKafkaProducer(bootstrap_servers=kafka) as producer:
            await producer.send_and_wait(config.topics.updates, update(9, "t"), b"p", 0)
        assert (await run("show", "p", "--at", at)).succeeded().text == "t\n"
        error = (await run("show", "p", "--version", "4", "--at", at)).failed(1)
        assert f"{config.topics.deltas}/0 does not hold all of versions 1 to 4 of 'p'" in error
        assert "versions of 'p' end at 0, not at 9" in (await run("history", "p", "--json", "--at", at)).failed(1)

    @pytest.mark.parametrize("stretch", [1, 1_000])
    async def test_a_prompt_that_was_deleted(
        self, kafka: str, unique: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stretch: int
    ) -> None:
        monkeypatch.setattr(lookup, "_FIRST_STRETCH", stretch)
        config = configured(kafka, unique)
        at = written(tmp_path, config)
        await made(config)
        async with AIOKafkaProducer(bootstrap_servers=kafka) as producer:
            for value in (update(1, "t"), None):
                await producer.send_and_wait(config.topics.updates, value, b"p", 0)
        assert "partition 0, which is empty" in (await run("show", "p", "--at", at)).failed(4)


class TestWhatAtNames:
    def test_two_configurations(self, tmp_path: Path) -> None:
        for name in ("a.toml", "b.toml"):
            (tmp_path / name).write_text("")
        ran = tracecomb("show", "p", "--at", tmp_path / "a.toml", "--config", tmp_path / "b.toml")
        assert "two configurations" in ran.failed(2)

    def test_a_configuration_that_is_not_there(self, tmp_path: Path) -> None:
        error = tracecomb("show", "p", "--at", tmp_path / "a.toml").failed(2)
        assert error == f"tracecomb: {tmp_path / 'a.toml'}: No such file or directory"

    def test_a_store_may_be_called_so(self, tmp_path: Path) -> None:
        (tmp_path / "a.toml").mkdir()
        assert "is not a prompt store" in tracecomb("show", "p", "--at", tmp_path / "a.toml").failed(1)

    @pytest.mark.parametrize("at", ["kafka://", "kafka://host", "kafka://host:0", "kafka://user@host:9092/x"])
    def test_no_address(self, at: str) -> None:
        assert "is no address of a cluster" in tracecomb("show", "p", "--at", at).failed(2)

    def test_replay_takes_a_store(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(tmp_path)
        assert "is a cluster" in tracecomb("replay", "log", "--at", "kafka://127.0.0.1:1").failed(2)
        assert list(tmp_path.iterdir()) == []
