"""``show``, ``history``, ``diff`` and ``export``: every version as it was published, in every format, into any file."""

from __future__ import annotations

import json
import os
import re
import shutil
import stat
import threading
from pathlib import Path
from typing import Any

import pytest

from stream.commands.output import existing, put
from stream.formats import FORMATS, read
from tests.stream.logs import Log
from tests.stream.running import shell, tracecomb

NAMED = tuple(f"err-{number:05}" for number in range(1, 6))
LOG = Log(count=120, prompts=2, named=NAMED, bare=True)
PROMPT = "shop/0"
MARKED = """---
name: refunds
---
# Refunds

By hand, and it stays so. \r
<!-- tracecomb:begin -->
## Old
- what was here before
<!-- tracecomb:end -->
After it.
"""


@pytest.fixture(scope="module")
def at(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with windows, an import and a rollback; not to be changed."""
    folder = tmp_path_factory.mktemp("playbooks")
    log = LOG.write(folder / "log.jsonl")
    first = folder / "first.jsonl"
    first.write_bytes(b"".join(log.read_bytes().splitlines(keepends=True)[:60]))
    book = folder / "book.txt"
    book.write_text("## STRATEGIES & INSIGHTS\n[str-00077] helpful=4 harmful=1 :: Ask before you refund\n")
    store = folder / "store"
    for command in (
        f"replay {first} --batch-size 10",
        f"import {book} --prompt {PROMPT}",
        f"rollback {PROMPT} --to 1",
        f"replay {log} --batch-size 10",
    ):
        tracecomb(*command.split(), "--at", store).succeeded()
    return store


@pytest.fixture
def updates(at: Path) -> list[dict[str, Any]]:
    """What was published, a version each, oldest first."""
    paths = sorted(at.glob("prompts/shop%2f0/versions/*.json"))
    found = [json.loads(path.read_bytes()) for path in paths]
    assert len(found) > 6
    return found


def shown(at: Path, format: str, *more: str) -> bytes:
    return tracecomb("show", PROMPT, "--format", format, "--at", at, *more).succeeded().out


class TestShow:
    def test_every_version_as_it_was_published(self, at: Path, updates: list[dict[str, Any]]) -> None:
        for update in updates:
            version = str(update["version"])
            assert shown(at, "text", "--version", version).decode() == update["text"] + "\n"
            assert json.loads(shown(at, "json", "--version", version)) == update
            path = at / "prompts" / "shop%2f0" / "versions" / f"{int(version):08}.json"
            assert shown(at, "json", "--version", version) == path.read_bytes() + b"\n"

    def test_the_newest_when_none_is_named(self, at: Path, updates: list[dict[str, Any]]) -> None:
        assert tracecomb("show", PROMPT, "--at", at).succeeded().text == updates[-1]["text"] + "\n"

    @pytest.mark.parametrize("format", FORMATS)
    def test_every_format_reads_back(self, at: Path, updates: list[dict[str, Any]], format: str) -> None:
        found = read(shown(at, format), format=format)
        assert (found.refused, found.warnings) == ((), ())
        published = updates[-1]["bullets"]
        assert [(each.section, each.content) for each in found.bullets] == [
            (each["section"], each["content"]) for each in published
        ]
        if format != "markdown":
            assert [each.id for each in found.bullets] == [each["id"] for each in published]
        if format not in ("appworld", "markdown", "text"):
            counts = [(each.helpful, each.harmful) for each in found.bullets]
            assert counts == [(each["helpful"], each["harmful"]) for each in published]
            assert any(helpful for helpful, _ in counts)

    @pytest.mark.parametrize("format", FORMATS)
    def test_version_0_is_empty(self, at: Path, format: str) -> None:
        empty = shown(at, format, "--version", "0")
        if format in ("text", "ace", "appworld"):
            assert empty == b""
        elif format == "json":
            assert (json.loads(empty)["version"], json.loads(empty)["bullets"]) == (0, [])
        else:
            assert read(empty, format=format).bullets == ()

    def test_on_a_terminal_nothing_can_move_the_cursor(self, tmp_path: Path) -> None:
        book = tmp_path / "book.json"
        lesson = "\x1b[2J\x1b]0;title\x07 rm -rf \u202egnp.exe\tä"
        book.write_text(json.dumps({"bullets": [{"section": "S", "content": lesson}]}))
        tracecomb("import", book, "--prompt", "p", "--at", tmp_path / "s").succeeded()
        assert lesson in tracecomb("show", "p", "--at", tmp_path / "s").succeeded().text
        for command in ("show p", "diff p 0 1"):
            seen = tracecomb(*command.split(), "--at", tmp_path / "s", terminal=True).succeeded().text
            plain = re.sub("\x1b\\[(3[0-9]|0)m", "", seen)
            assert "\\x1b[2J\\x1b]0;title\\x07 rm -rf \\u202egnp.exe" in plain
            assert set(plain) & {"\x1b", "\x07", "\u202e"} == set()


class TestHistory:
    def test_a_line_a_version(self, at: Path, updates: list[dict[str, Any]]) -> None:
        lines = tracecomb("history", PROMPT, "--json", "--at", at).succeeded().text.splitlines()
        told = [json.loads(line) for line in lines]
        for line, update in zip(told, updates, strict=True):
            assert list(line) == ["version", "base", "at", "kind", "changed", "batch_size", "traces"]
            for name in ("version", "base", "kind", "changed"):
                assert line[name] == update[name]
            assert line["at"] == update.get("at")
            assert line["batch_size"] == len(line["traces"]) == update["learned"].get("traces", 0)
        assert [line["version"] for line in told] == list(range(1, len(told) + 1))
        assert {line["kind"] for line in told} == {"window", "import", "rollback"}
        assert [id for line in told for id in line["traces"]] == LOG.ids()[PROMPT]
        assert all(line["kind"] == "window" for line in told if line["traces"])
        (rollback,) = (line for line in told if line["kind"] == "rollback")
        assert rollback["base"] == 1

    def test_for_people(self, at: Path, updates: list[dict[str, Any]]) -> None:
        heading, *rows = tracecomb("history", PROMPT, "--at", at).succeeded().text.splitlines()
        assert heading.split() == ["version", "base", "kind", "changed", "batch", "size", "bullets", "at"]
        for row, update in zip(rows, updates, strict=True):
            version, base, kind, changed, *_ = row.split()
            assert (int(version), int(base), kind) == (update["version"], update["base"], update["kind"])
            assert changed == ("yes" if update["changed"] else "no")
            assert f" {len(update['bullets'])}" in row
            assert row.endswith(update.get("at", ""))


class TestDiff:
    def test_what_came_and_what_went(self, at: Path, updates: list[dict[str, Any]]) -> None:
        for old, new in ((0, 1), (1, 2), (2, 1), (3, len(updates))):
            before = updates[old - 1]["text"].splitlines() if old else []
            after = updates[new - 1]["text"].splitlines()
            lines = tracecomb("diff", PROMPT, str(old), str(new), "--at", at).succeeded().text.splitlines()
            assert lines[0].startswith(f"--- {PROMPT} version {old}")
            assert lines[1].startswith(f"+++ {PROMPT} version {new}")
            assert {line[1:] for line in lines[2:] if line[0] == "+"} >= set(after) - set(before)
            assert {line[1:] for line in lines[2:] if line[0] == "-"} >= set(before) - set(after)
            assert "-" not in lines[3:]

    def test_nothing_changed(self, at: Path) -> None:
        assert tracecomb("diff", PROMPT, "2", "2", "--at", at).succeeded().out == b""

    def test_counts_when_asked(self, at: Path, updates: list[dict[str, Any]]) -> None:
        assert "helpful=" not in tracecomb("diff", PROMPT, "0", "3", "--at", at).succeeded().text
        assert "helpful=" in tracecomb("diff", PROMPT, "0", "3", "--counts", "--at", at).succeeded().text

    def test_colours_on_a_terminal_only(self, at: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        command = ("diff", PROMPT, "0", "1", "--at", at)
        monkeypatch.delenv("NO_COLOR", raising=False)
        assert "\x1b" not in tracecomb(*command).succeeded().text
        assert "\x1b[32m+[err-" in tracecomb(*command, terminal=True).succeeded().text
        monkeypatch.setenv("NO_COLOR", "1")
        assert "\x1b" not in tracecomb(*command, terminal=True).succeeded().text


class TestExport:
    @pytest.mark.parametrize("format", FORMATS)
    def test_the_same_as_show(self, at: Path, tmp_path: Path, format: str) -> None:
        file = tmp_path / "book"
        options = ["--format", format, "--version", "2"]
        to_file = tracecomb("export", PROMPT, "-o", file, *options, "--at", at).succeeded()
        assert to_file.out == b""
        assert to_file.err == f"tracecomb: wrote {file} ({format})\n"
        to_stdout = tracecomb("export", PROMPT, *options, "--at", at).succeeded()
        dash = tracecomb("export", PROMPT, "-o", "-", *options, "--at", at).succeeded()
        assert file.read_bytes() == to_stdout.out == dash.out == shown(at, format, "--version", "2")
        assert [path.name for path in tmp_path.iterdir()] == ["book"]

    @pytest.mark.parametrize(
        ("name", "format"),
        [
            ("book", "ace"),
            ("book.txt", "ace"),
            ("SKILL.md", "markdown"),
            ("a.MARKDOWN", "markdown"),
            ("a.json", "json"),
        ],
    )
    def test_the_format_by_the_files_name(self, at: Path, tmp_path: Path, name: str, format: str) -> None:
        tracecomb("export", PROMPT, "-o", tmp_path / name, "--at", at).succeeded()
        assert (tmp_path / name).read_bytes() == shown(at, format)
        assert tracecomb("export", PROMPT, "--at", at).succeeded().out == shown(at, "ace")

    def test_only_our_region_of_a_markdown_file(self, at: Path, tmp_path: Path, updates: list[dict[str, Any]]) -> None:
        file = tmp_path / "SKILL.md"
        file.write_bytes(MARKED.encode())
        file.chmod(0o640)
        tracecomb("export", PROMPT, "-o", file, "--at", at).succeeded()
        before, after = file.read_bytes().decode().split("<!-- tracecomb:begin -->")
        region, after = after.split("<!-- tracecomb:end -->")
        assert before == MARKED.partition("<!-- tracecomb:begin -->")[0]
        assert after == "\nAfter it.\n"
        assert "what was here before" not in region
        assert updates[-1]["bullets"][0]["content"] in region
        assert stat.S_IMODE(file.stat().st_mode) == 0o640
        once = file.read_bytes()
        tracecomb("export", PROMPT, "-o", file, "--at", at).succeeded()
        assert file.read_bytes() == once

    def test_a_file_that_cannot_be_written_into_stays(self, at: Path, tmp_path: Path) -> None:
        file = tmp_path / "SKILL.md"
        file.write_text("<!-- tracecomb:begin -->\nnever closed\n")
        error = tracecomb("export", PROMPT, "-o", file, "--at", at).failed(1)
        assert error == (
            f"tracecomb: {file}: line 1: <!-- tracecomb:begin --> is never closed; put the markers right by hand first"
        )
        book = tmp_path / "book.json"
        book.write_text("[1, 2]")
        error = tracecomb("export", PROMPT, "-o", book, "--format", "skillbook", "--at", at).failed(1)
        assert error.startswith(f"tracecomb: {book}: the file to write into: ")
        assert (file.read_text(), book.read_text()) == ("<!-- tracecomb:begin -->\nnever closed\n", "[1, 2]")

    @pytest.mark.parametrize(
        ("name", "reason"), [("none/book", "No such file or directory"), ("folder", "Is a directory")]
    )
    def test_no_place_to_write_to(self, at: Path, tmp_path: Path, name: str, reason: str) -> None:
        (tmp_path / "folder").mkdir()
        error = tracecomb("export", PROMPT, "-o", tmp_path / name, "--at", at).failed(1)
        assert error == f"tracecomb: {tmp_path / name}: {reason}"
        assert list((tmp_path / "folder").iterdir()) == []

    def test_an_unknown_version_leaves_the_file(self, at: Path, tmp_path: Path) -> None:
        file = tmp_path / "book"
        file.write_text("mine")
        tracecomb("export", PROMPT, "-o", file, "--version", "99", "--at", at).failed(4)
        assert file.read_text() == "mine"

    def test_through_a_link(self, at: Path, tmp_path: Path) -> None:
        (tmp_path / "real").mkdir()
        (tmp_path / "link").symlink_to("real/book")
        for _ in range(2):  # first to nothing, then to a file
            tracecomb("export", PROMPT, "-o", tmp_path / "link", "--at", at).succeeded()
            assert (tmp_path / "link").is_symlink()
            assert (tmp_path / "real" / "book").read_bytes() == shown(at, "ace")

    def test_into_what_is_no_file(self, at: Path, tmp_path: Path) -> None:
        pipe = tmp_path / "pipe"
        os.mkfifo(pipe)
        taken: list[bytes] = []
        reader = threading.Thread(target=lambda: taken.append(pipe.read_bytes()), daemon=True)
        reader.start()
        tracecomb("export", PROMPT, "-o", pipe, "--at", at).succeeded()
        assert stat.S_ISFIFO(
            pipe.stat().st_mode
        )  # first of all, or what follows would be done to the machine's devices
        reader.join()
        assert taken == [shown(at, "ace")]
        ran = shell(f"tracecomb export {PROMPT} --at {at} -o /dev/stdout | cat", tmp_path)
        assert (ran.code, ran.out) == (0, shown(at, "ace"))
        error = tracecomb("export", PROMPT, "--at", at, "-o", "/dev/full").failed(1)
        assert error == "tracecomb: /dev/full: No space left on device"
        assert stat.S_ISCHR(Path("/dev/full").stat().st_mode)


class TestPut:
    def test_the_old_file_or_the_new_one(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        file = tmp_path / "book"
        file.write_bytes(b"old")
        neighbour = tmp_path / "book.tmp"
        neighbour.write_bytes(b"not ours")

        def full(fd: int) -> None:
            raise OSError(28, "No space left on device")

        with monkeypatch.context() as patched:
            patched.setattr(os, "fsync", full)
            with pytest.raises(OSError, match=f"No space left on device: '{file}'"):
                put(file, b"new")
        assert file.read_bytes() == b"old"
        put(file, b"new")
        assert file.read_bytes() == b"new"
        assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {
            "book": b"new",
            "book.tmp": b"not ours",
        }

    def test_interrupted(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def interrupted(fd: int) -> None:
            raise KeyboardInterrupt

        monkeypatch.setattr(os, "fsync", interrupted)
        with pytest.raises(KeyboardInterrupt):
            put(tmp_path / "book", b"new")
        assert list(tmp_path.iterdir()) == []

    def test_the_longest_name_there_can_be(self, tmp_path: Path) -> None:
        file = tmp_path / ("ä" * 127)
        put(file, b"new")
        assert file.read_bytes() == b"new"

    def test_what_is_there(self, tmp_path: Path) -> None:
        assert existing(tmp_path / "none") is None
        assert existing(tmp_path) is None
        (tmp_path / "file").write_bytes(b"x")
        assert existing(tmp_path / "file") == b"x"


def test_reading_leaves_the_store_alone(at: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(at, tmp_path / "copy")
    before = {path: path.read_bytes() for path in copy.rglob("*") if path.is_file()}
    for command in ("show", "history", "export"):
        tracecomb(command, PROMPT, "--at", copy).succeeded()
    tracecomb("diff", PROMPT, "1", "2", "--at", copy).succeeded()
    assert {path: path.read_bytes() for path in copy.rglob("*") if path.is_file()} == before
