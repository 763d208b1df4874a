"""``tracecomb replay``: what it prints for people and for scripts, what its flags do, and how it stops."""

from __future__ import annotations

import json
import os
import pty
import re
import shlex
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Literal

import pytest

from operators.explanation import Explanation, Point
from stream.commands.replay import _grounds
from stream.store import Store
from tests.conftest import require
from tests.stream.logs import Log
from tests.stream.replaying import assert_same, learned, rejects
from tests.stream.running import Ran, process, start, tracecomb, wait_for

PYTHON_SIGINT = {"preexec_fn": lambda: signal.signal(signal.SIGINT, signal.default_int_handler)}
LOG = Log(count=60, prompts=3, bare=True)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return LOG.write(tmp_path / "log.jsonl")


@pytest.fixture
def at(tmp_path: Path) -> Path:
    return tmp_path / "store"


def sizes(at: Path, prompt: str) -> list[int]:
    """The sizes of a prompt's windows."""
    lines = tracecomb("history", prompt, "--json", "--at", at).succeeded().text.splitlines()
    return [size for line in lines if (size := json.loads(line)["batch_size"])]


@contextmanager
def unprivileged() -> Iterator[Path]:
    """A folder, while this process has not the right to everything."""
    root = os.geteuid() == 0
    with tempfile.TemporaryDirectory() as name:
        if root:
            os.chown(name, 65534, -1)
            os.seteuid(65534)
        try:
            yield Path(name)
        finally:
            if root:
                os.seteuid(0)


class TestResults:
    def test_the_object_for_scripts(self, tmp_path: Path, at: Path) -> None:
        odd = Log(count=200, prompts=3, repeats=50, conflicts=30, bad=60)
        log = odd.write(tmp_path / "log.jsonl")
        lines = log.read_bytes().splitlines()
        ran = tracecomb("replay", log, "--at", at, "--batch-size", "8", "--json").succeeded()
        told = ran.json
        assert list(told) == ["traces", "rejected", "duplicates", "updates", "prompts", "seconds"]
        assert ran.text.endswith("}\n")
        assert (told["traces"], told["rejected"]) == (200, len(rejects(at)))
        assert told["traces"] + told["rejected"] + told["duplicates"] == len(lines)
        assert set(told["prompts"]) == set(odd.ids())
        assert told["updates"] == sum(each["version"] for each in told["prompts"].values())
        assert isinstance(told["seconds"], float)
        with Store.open(at, write=False) as store:
            for name, each in told["prompts"].items():
                update = json.loads(store.prompt(name).update(each["version"]))
                assert each == {"version": update["version"], "bullets": len(update["bullets"])}
        again = tracecomb("replay", log, "--at", at, "--batch-size", "8", "--json").succeeded()
        assert {**again.json, "seconds": 0} == {
            **told,
            "traces": 0,
            "duplicates": told["traces"] + told["duplicates"],
            "updates": 0,
            "seconds": 0,
        }
        assert "nothing new" in again.err

    def test_only_the_object_is_on_stdout_in_json(self, log: Path, at: Path) -> None:
        ran = tracecomb("replay", log, "--at", at, "--json").succeeded()
        assert ran.out.count(b"\n") == 1

    def test_every_step_when_asked(self, log: Path, at: Path) -> None:
        command = ("replay", log, "--at", at, "--batch-size", "30", "--verbose")
        events = [json.loads(line) for line in tracecomb(*command).succeeded().err.splitlines() if line[0] == "{"]
        published = [event for event in events if event["event"] == "version published"]
        assert {event["prompt"] for event in published} == set(LOG.ids())
        assert all({"prompt", "window", "version", "level", "timestamp"} <= event.keys() for event in published)

    def test_for_people(self, log: Path, at: Path) -> None:
        ran = tracecomb("replay", log, "--at", at, "--batch-size", "30").succeeded()
        assert ran.err == ""
        heading, *rows, counts, following = ran.text.splitlines()
        assert heading.split() == ["prompt", "version", "bullets"]
        assert [row.split()[0] for row in rows] == sorted(LOG.ids())
        assert {len(row) for row in rows} == {len(heading)}
        assert re.fullmatch(r"60 traces learned in \d+ versions, 0 known already, 0 rejected", counts)
        suggested = shlex.split(following.removeprefix("next: tracecomb "))
        assert tracecomb(*suggested).succeeded().text.startswith("## ")

    def test_a_log_that_has_grown(self, log: Path, at: Path) -> None:
        tracecomb("replay", log, "--at", at).succeeded()
        with log.open("ab") as file:
            file.write(Log(count=1, seed=1).line(0))
        told = tracecomb("replay", log, "--at", at, "--json").succeeded().json
        assert (told["traces"], told["duplicates"], told["updates"]) == (1, 60, 1)

    def test_one_of_each_is_no_plural(self, tmp_path: Path, at: Path) -> None:
        one = Log(count=1).write(tmp_path / "one.jsonl")
        with one.open("ab") as file:
            file.write(b"no trace\n" + Log(count=1).line(0, "Other"))
        (tmp_path / "readme.txt").write_text("hello")
        ran = tracecomb("replay", one, tmp_path / "readme.txt", "--at", at).succeeded()
        assert "1 trace learned in 1 version, 1 known already, 1 rejected" in ran.text
        assert "1 known id came again" in ran.err
        assert "1 bad line rejected" in ran.err
        assert "1 file skipped" in ran.err
        ran = tracecomb("replay", one, "--at", at).succeeded()
        assert re.search(r"\b1 \w+s\b", ran.text + ran.err) is None, ran

    def test_nothing_to_learn_from(self, tmp_path: Path, at: Path) -> None:
        folder = tmp_path / "folder"
        folder.mkdir()
        ran = tracecomb("replay", folder, "--at", at, "--json").succeeded()
        assert "no trace was found" in ran.err
        assert {**ran.json, "seconds": 0} == {
            "traces": 0,
            "rejected": 0,
            "duplicates": 0,
            "updates": 0,
            "prompts": {},
            "seconds": 0,
        }
        (folder / "a.txt").write_text("hello")
        (folder / "b.json").write_text('{"a": 1}')
        ran = tracecomb("replay", folder, "--at", at).succeeded()
        assert f"2 files skipped, with no trace in it; the first is {folder / 'a.txt'}: " in ran.err
        assert "next:" not in ran.text

    def test_traces_without_a_lesson(self, tmp_path: Path, at: Path) -> None:
        file = tmp_path / "log.jsonl"
        file.write_text('{"steps": [{"role": "user", "content": "hello"}]}\n')
        ran = tracecomb("replay", file, "--at", at).succeeded()
        assert "no lesson yet" in ran.err
        assert "next:" not in ran.text

    def test_from_stdin(self, at: Path) -> None:
        told = tracecomb("replay", "-", "--at", at, "--json", stdin=b"\n".join(LOG.lines())).succeeded().json
        assert told["traces"] == 60
        assert learned(at) == LOG.ids()

    def test_the_shared_samples(self, shared: Path, at: Path) -> None:
        ran = tracecomb("replay", shared / "traces" / "openai_messages", "--at", at).succeeded()
        assert "2 traces learned in 1 version, 0 known already, 0 rejected" in ran.text
        assert "absolute path" in tracecomb("show", "default", "--at", at).succeeded().text


class TestBatchSizeInWords:
    @pytest.mark.parametrize(
        ("timed", "left_out", "words"),
        [
            ((), (), ""),
            ((8, 8), (), "still being chosen; windows of 8 traces were timed, 16, 32 come next"),
            ((8, 16), (32,), "still being chosen; windows of 8, 16 traces were timed so far"),
        ],
    )
    def test_while_sizes_are_tried(self, timed: tuple[int, ...], left_out: tuple[int, ...], words: str) -> None:
        points = tuple(Point(size, 1.0, 1.0) for size in timed)
        known = Explanation("profiling", 8, (8, 16, 32), None, None, None, None, {}, points, left_out, 1)
        assert _grounds(known) == words

    @pytest.mark.parametrize(
        ("stage", "fit", "clamps", "words"),
        [
            (
                "fitted",
                (1.0, 0.93, 0.95),
                {},
                "68 traces a window; larger ones would gain too little (time falls with n^-0.93, which explains 95% of "
                "what was measured)",
            ),
            ("flat", (1.0, 0.02, 0.3), {}, "68 traces a window; larger ones gain nothing measurable"),
            (
                "starved",
                (None, None, None),
                {"a": 16},
                "68 traces a window; too few larger ones filled to tell what they would gain; less for 1 prompt with "
                "an overloaded curator",
            ),
        ],
    )
    def test_when_one_is_chosen(
        self,
        stage: Literal["fitted", "flat", "starved"],
        fit: tuple[float | None, float | None, float | None],
        clamps: dict[str, int],
        words: str,
    ) -> None:
        known = Explanation(stage, 68, (8, 16), *fit, 68.2, clamps, (), (), 1)
        assert _grounds(known) == words

    def test_it_is_told(self, tmp_path: Path, at: Path) -> None:
        log = Log(count=30, prompts=1, bare=True).write(tmp_path / "log.jsonl")
        ran = tracecomb("replay", log, "--at", at).succeeded()
        assert "tracecomb: batch size: still being chosen; windows of 8 traces were timed, 16, 32, 64" in ran.err


class TestFlags:
    def test_prompt_is_for_traces_without_one(self, tmp_path: Path, at: Path) -> None:
        file = tmp_path / "log.jsonl"
        steps = '"steps": [{"role": "user", "content": "x"}]'
        file.write_text(f'{{"prompt": "own", {steps}}}\n{{"agent": "bot", {steps}}}\n{{{steps}}}\n')
        told = tracecomb("replay", file, "--at", at, "--prompt", "by/{agent}", "--json").succeeded().json
        assert sorted(told["prompts"]) == ["by/bot", "default", "own"]
        told = tracecomb("replay", file, "--at", f"{at}2", "--force-prompt", "all", "--json").succeeded().json
        assert sorted(told["prompts"]) == ["all"]

    def test_flags_go_before_the_file(self, log: Path, at: Path, tmp_path: Path) -> None:
        config = tmp_path / "c.toml"
        config.write_text('[replay]\nforce_prompt = "file"\nbatch_size = 20\n')
        tracecomb("replay", log, "--at", at, "--config", config).succeeded()
        assert sizes(at, "file") == [20, 20, 20]
        tracecomb("replay", log, "--at", f"{at}2", "--config", config, "--batch-size", "30").succeeded()
        assert sizes(Path(f"{at}2"), "file") == [30, 30]

    def test_sizes_from_another_store(self, log: Path, at: Path, tmp_path: Path) -> None:
        tracecomb("replay", log, "--at", at, "--force-prompt", "p", "--batch-size", "auto").succeeded()
        copy = tmp_path / "copy"
        tracecomb("replay", log, "--at", copy, "--force-prompt", "p", "--sizes-from", at).succeeded()
        assert sizes(copy, "p") == sizes(at, "p")
        assert_same(copy, at, stats=False)
        other = tmp_path / "other"
        with log.open("ab") as file:
            file.writelines(line + b"\n" for line in Log(count=10, seed=1).lines())
        ran = tracecomb("replay", log, "--at", other, "--force-prompt", "p", "--sizes-from", at).succeeded()
        assert sizes(other, "p")[: len(sizes(at, "p"))] == sizes(at, "p")
        assert "had no recorded size" in ran.err

    def test_other_settings_need_a_word(self, log: Path, at: Path) -> None:
        tracecomb("replay", log, "--at", at).succeeded()
        error = tracecomb("replay", log, "--at", at, "--seed", "5").failed(6)
        assert "seed was 0, is now 5" in error
        assert "--go-on" in error
        tracecomb("replay", log, "--at", at, "--seed", "5", "--go-on").succeeded()
        tracecomb("replay", log, "--at", at, "--seed", "5").succeeded()


class TestNames:
    """Names of prompts are data, in traces and on the command line."""

    @pytest.mark.parametrize(
        "name",
        [
            "../../etc",
            "/etc/passwd",
            "x" * 300,
            "..",
            "crème brûlée 👩‍👩‍👧",
            "-x",
            "--at",
            "-1",
            "a b'c",
            "[red]x[/red]",
            ":smile:",
            "Con",
        ],
    )
    def test_any_name(self, tmp_path: Path, name: str) -> None:
        log = Log(count=20, prompts=1, bare=True).write(tmp_path / "log.jsonl")
        at = tmp_path / "deep" / "er" / "store"
        ran = tracecomb("replay", log, "--at", at, f"--force-prompt={name}", "--json").succeeded()
        assert list(ran.json["prompts"]) == [name]
        ran = tracecomb("replay", log, "--at", at, f"--force-prompt={name}").succeeded()
        assert ran.text.count("\n") == 4
        assert ran.text.splitlines()[1].startswith(name)
        (suggested,) = re.findall(r"^next: tracecomb (.*)$", ran.text, re.MULTILINE)
        assert tracecomb(*shlex.split(suggested)).succeeded().text.startswith("## ")
        assert tracecomb("history", "--json", "--at", at, "--", name).succeeded().json["version"] >= 1
        tracecomb("rollback", "--to", "0", "--at", at, "--", name).succeeded()
        written = {path.name for path in tmp_path.iterdir()}
        assert written == {"log.jsonl", "deep"}
        assert [path.name for path in at.parent.iterdir()] == ["store"]

    def test_a_name_that_forges_lines(self, tmp_path: Path, at: Path) -> None:
        trace = json.loads(Log(count=20).line(12)) | {"prompt": "a\n\x1b[31mb"}
        file = tmp_path / "log.jsonl"
        file.write_text(json.dumps(trace))
        ran = tracecomb("replay", file, "--at", at).succeeded()
        assert "a\\n\\x1b[31mb" in ran.text
        assert "\x1b" not in ran.text
        assert len([line for line in ran.text.splitlines() if not line.startswith("next:")]) == 3


class TestTroubles:
    def test_a_path_that_is_not_there_makes_no_store(self, tmp_path: Path, at: Path, log: Path) -> None:
        error = tracecomb("replay", log, tmp_path / "gone", "--at", at).failed(1)
        assert error == f"tracecomb: {tmp_path / 'gone'}: No such file or directory"
        assert not at.exists()

    def test_what_was_named_and_cannot_be_read(self) -> None:
        with unprivileged() as folder:
            file, inner, good = folder / "file.jsonl", folder / "inner", folder / "good.jsonl"
            file.touch(0o000)
            inner.mkdir(0o000)
            Log(count=1).write(good)
            for path in (file, inner):
                error = tracecomb("replay", good, path, "--at", folder / "s").failed(1)
                assert error == f"tracecomb: {path}: Permission denied"
            # In a folder it is one file that is passed over, and told.
            ran = tracecomb("replay", folder, "--at", folder / "s").succeeded()
            assert "1 trace learned" in ran.text
            assert f"{file}: cannot be read: Permission denied" in ran.err
            inner.chmod(0o700)

    def test_too_many_bad_lines(self, tmp_path: Path, at: Path) -> None:
        lines = [*Log(count=20, bare=True).lines(), *(b"garbage %d" % number for number in range(600))]
        file = tmp_path / "log.jsonl"
        file.write_bytes(b"\n".join(lines))
        error = tracecomb("replay", file, "--at", at, "--json").failed(5)
        assert re.search(r"500 bad lines in a row, the last at .*log\.jsonl:520 ", error)
        assert len(rejects(at)) == 500
        kept = sum(map(len, learned(at).values()))
        config = tmp_path / "c.toml"
        config.write_text("[rejects]\nrun = 1000\nshare = 1.0\n")
        told = tracecomb("replay", file, "--at", at, "--json", "--config", config).succeeded().json
        assert (told["traces"], told["rejected"]) == (20 - kept, 600)
        assert len(rejects(at)) == 600

    def test_a_store_that_cannot_be_written(self, log: Path) -> None:
        lines = log.read_bytes()
        with unprivileged() as folder:
            (folder / "log.jsonl").write_bytes(lines)
            at = folder / "store"
            tracecomb("replay", folder / "log.jsonl", "--at", at).succeeded()
            paths = [at, *at.rglob("*")]
            for path in paths:
                path.chmod(0o500 if path.is_dir() else 0o400)
            try:
                for command in ("show shop/0", "history shop/0 --json", "diff shop/0 0 1", "export shop/0"):
                    assert tracecomb(*command.split(), "--at", at).succeeded().out
                for command in (f"replay {folder}/log.jsonl", "rollback shop/0 --to 0"):
                    error = tracecomb(*command.split(), "--at", at).failed(1)
                    assert "Permission denied; give this user the right to it" in error
            finally:
                for path in paths:
                    path.chmod(0o700)

    def test_a_full_disk(self, tmp_path: Path) -> None:
        disk = tmp_path / "disk"
        disk.mkdir()
        mounted = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=400k", "none", disk], capture_output=True, check=False
        )
        require("the right to mount a small disk", mounted.returncode == 0)
        log = Log(count=400, prompts=2, bare=True).write(tmp_path / "log.jsonl")
        tracecomb("replay", log, "--at", tmp_path / "whole", "--batch-size", "20").succeeded()
        try:
            error = tracecomb("replay", log, "--at", disk / "s", "--batch-size", "20").failed(1)
            assert "No space left on device; free some space and run again" in error
            before = learned(disk / "s")
            assert 0 < len(before["shop/0"]) < len(Log(count=400, prompts=2).ids()["shop/0"])
            target = disk / "book.md"
            with suppress(OSError), (disk / "filler").open("wb", buffering=0) as filler:
                while filler.write(bytes(1024)):
                    pass
            error = tracecomb("export", "shop/0", "-o", target, "--at", tmp_path / "whole").failed(1)
            assert error == f"tracecomb: {target}: No space left on device"
            assert sorted(path.name for path in disk.iterdir()) == ["filler", "s"]
            (disk / "filler").unlink()
            subprocess.run(["mount", "-o", "remount,size=50m", disk], check=True)
            tracecomb("replay", log, "--at", disk / "s", "--batch-size", "20").succeeded()
            assert_same(disk / "s", tmp_path / "whole")
        finally:
            subprocess.run(["umount", disk], check=True)


class TestProcesses:
    def test_a_second_writer_is_told_who_the_first_is(self, tmp_path: Path, at: Path, log: Path) -> None:
        tracecomb("replay", log, "--at", at).succeeded()
        with start("replay", "-", "--at", at, cwd=tmp_path) as first:
            wait_for(lambda: (at / "lock").read_bytes())
            book = tmp_path / "book.md"
            book.write_text("- a lesson")
            for command in (f"replay {log}", "rollback shop/0 --to 0", f"import {book} --prompt p"):
                error = tracecomb(*command.split(), "--at", at).failed(3)
                assert f"is being written by process {first.pid}" in error
            assert tracecomb("show", "shop/0", "--at", at).succeeded().out
            first.communicate(b"")
        assert first.returncode == 0
        tracecomb("replay", log, "--at", at).succeeded()

    def test_interrupted_and_run_again(self, tmp_path: Path, at: Path) -> None:
        log = Log(count=120, prompts=2, bare=True)
        whole = log.write(tmp_path / "whole.jsonl")
        tracecomb("replay", whole, "--at", tmp_path / "undisturbed", "--batch-size", "10").succeeded()
        stopped = start("replay", "-", "--at", at, "--batch-size", "10", cwd=tmp_path, **PYTHON_SIGINT)
        assert stopped.stdin is not None
        for number in range(70):
            stopped.stdin.write(log.line(number) + b"\n")
        stopped.stdin.flush()
        wait_for(lambda: list(at.glob("prompts/*/versions/00000003.json")))
        stopped.send_signal(signal.SIGINT)  # it waits for more, and so does the one who pressed Ctrl-C
        stopped.wait()
        out, err = stopped.communicate()
        assert (stopped.returncode, out) == (130, b"")
        assert err.decode().splitlines()[-1] == "tracecomb: interrupted; run the same command again to go on"
        ran = tracecomb("replay", whole, "--at", at, "--batch-size", "10").succeeded()
        assert "an earlier replay into this store was cut short" in ran.err
        assert_same(at, tmp_path / "undisturbed")

    def test_an_interrupt_that_is_ignored_stays_so(self, tmp_path: Path, at: Path) -> None:
        ignoring = {"preexec_fn": lambda: signal.signal(signal.SIGINT, signal.SIG_IGN)}
        with start("replay", "-", "--at", at, cwd=tmp_path, **ignoring) as running:
            wait_for(lambda: (at / "store.json").exists())
            running.send_signal(signal.SIGINT)
            running.communicate(LOG.line(0))
        assert running.returncode == 0

    def test_a_bar_on_a_terminal_only(self, tmp_path: Path, at: Path, log: Path) -> None:
        (tmp_path / "logs").mkdir()
        log.rename(tmp_path / "logs" / "log.jsonl")
        (tmp_path / "logs" / "a.txt").write_text("hello")
        seen = on_terminal("replay", "logs", "--at", at, "--json", cwd=tmp_path)
        assert seen.code == 0
        assert seen.json["traces"] == 60
        assert seen.out.count(b"\n") == 1
        assert re.search(r"\d+ traces learned, \d+ versions .*30\.1/30\.1 kB", seen.err)
        assert "\x1b[?25h" in seen.err  # the cursor is back
        assert "file skipped" in seen.err
        piped = process("replay", "logs", "--at", f"{at}2", "--json", cwd=tmp_path)
        assert "\x1b" not in piped.err
        assert "versions" not in piped.err


def on_terminal(*arguments: str | Path, cwd: Path) -> Ran:
    """Run the command with a terminal for stderr."""
    ours, theirs = pty.openpty()
    try:
        running = start(*arguments, cwd=cwd, stderr=theirs, stdin=subprocess.DEVNULL)
        os.close(theirs)
        seen = bytearray()
        with suppress(OSError):  # EIO: the last of the other side is closed
            while block := os.read(ours, 65536):
                seen += block
        out, _ = running.communicate()
        return Ran(running.returncode, out, seen.decode())
    finally:
        os.close(ours)
