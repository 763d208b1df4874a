"""The command as a whole: what it teaches about itself, how it ends, where it writes; and the README's word on it."""

from __future__ import annotations

import argparse
import json
import re
import shlex
import shutil
from pathlib import Path

import pytest

from stream import cli, exits
from stream.arguments import build_parser
from stream.config import load
from stream.exits import EXITS
from stream.kafka.arguments import GROUPS
from stream.parser import Command, Parser
from stream.storeerrors import StoreLocked
from tests.conftest import ROOT
from tests.stream.logs import Log
from tests.stream.running import process, shell, tracecomb

README = (ROOT / "README.md").read_text()
BLOCKS = re.findall(r"^ *```(\w+)\n(.*?)^ *```$", README, re.MULTILINE | re.DOTALL)
SHELL = [line.partition("  #")[0].strip() for kind, text in BLOCKS if kind == "sh" for line in text.splitlines()]
COMMANDS = [re.sub(r"^\S*tracecomb", "tracecomb", line) for line in SHELL if re.match(r"\S*tracecomb ", line)]


def choices(parser: Parser) -> dict[str, Parser]:
    (action,) = (each for each in parser._actions if isinstance(each, argparse._SubParsersAction))
    return dict(action.choices)


def subparsers() -> dict[str, Parser]:
    """The parser of each command, a group's by both words."""
    found = choices(build_parser())
    for group in GROUPS:
        found |= {f"{group} {name}": parser for name, parser in choices(found.pop(group)).items()}
    return found


NAMES = sorted(subparsers())


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """The README's example trace, in a file."""
    (text,) = (text for kind, text in BLOCKS if kind == "json")
    file = tmp_path / "trace.json"
    file.write_text(text)
    return file


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with 100 kB of history to print; not to be changed."""
    folder = tmp_path_factory.mktemp("learned")
    log = Log(count=1500, prompts=1, bare=True).write(folder / "log.jsonl")
    tracecomb("replay", log, "--at", folder / "store", "--batch-size", "750").succeeded()
    return folder / "store"


def table(first: str) -> list[list[str]]:
    """The rows of the README's table with this first heading, by cell."""
    rows = README.partition(f"| {first} |")[2].partition("\n\n")[0].splitlines()[2:]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", row)[1:-1]] for row in rows]


@pytest.mark.parametrize("name", NAMES)
def test_help_has_an_example_that_is_right(name: str) -> None:
    helped = tracecomb(*name.split(), "--help").succeeded()
    assert helped.err == ""
    (example,) = re.findall(r"^example:\n  (tracecomb .*)$", helped.text, re.MULTILINE)
    options = build_parser().parse_args(shlex.split(example)[1:])
    assert isinstance(options.command, Command)
    assert options.command.name == name
    assert callable(options.command.load())


@pytest.mark.parametrize("name", NAMES)
def test_help_explains_every_argument(name: str) -> None:
    assert [action.dest for action in subparsers()[name]._actions if not action.help] == []


def test_help_names_every_command_and_every_exit_code() -> None:
    text = tracecomb("--help").succeeded().text
    for name, parser in subparsers().items():
        group, _, own = name.rpartition(" ")
        shown = tracecomb(group, "--help").succeeded().text if group else text
        assert not group or re.search(rf"^    {group} +\w", text, re.MULTILINE), name
        assert re.search(rf"^    {own} +\w", shown, re.MULTILINE), name
        about = (parser.description or "").partition("\n")[0]
        assert about.lower().rstrip(".") in " ".join(shown.lower().split())
    codes = re.findall(r"^  (\d+) +(.+)$", text.partition("exit codes:\n")[2], re.MULTILINE)
    assert {int(code): meaning for code, meaning in codes} == EXITS


def test_the_readme_and_the_help_agree_about_exit_codes() -> None:
    assert {int(code): meaning.replace("`", "") for code, meaning in table("exit code")} == EXITS


def test_the_readme_lists_every_command_with_flags_that_there_are() -> None:
    parsers, seen = subparsers(), set()
    for usage, what in table("command"):
        name, *rest = usage.strip("`").split()
        if name in GROUPS:
            name = f"{name} {rest.pop(0)}"
        seen.add(name)
        flags = set(re.findall(r"--?[a-z][a-z-]*", " ".join(rest) + what))
        assert flags <= set(parsers[name]._option_string_actions), name
    assert seen == set(parsers)


@pytest.mark.parametrize("command", COMMANDS)
def test_the_readmes_commands_are_commands(command: str) -> None:
    assert build_parser().parse_args(shlex.split(command)[1:]).command is not None


def test_the_readmes_commands_work_on_the_readmes_trace(tmp_path: Path, trace: Path) -> None:
    logs = tmp_path / "path" / "to" / "logs"
    logs.mkdir(parents=True)
    trace.rename(logs / "a.json")
    nameless = {**json.loads((logs / "a.json").read_bytes()), "id": "t-2"}
    del nameless["prompt"]
    (logs / "b.jsonl").write_text(json.dumps(nameless))
    replay, show = (line for line in COMMANDS if "--at" not in line and ("replay" in line or "show" in line))
    learned = shell(replay, tmp_path)
    assert learned.code == 0
    assert "2 traces learned in 2 versions" in learned.text
    shown = shell(show, tmp_path)
    assert shown.code == 0
    assert "amount must be in cents" in shown.text
    assert (tmp_path / "tracecomb.d" / "store.json").exists()
    again = shell(replay, tmp_path)
    assert "0 traces learned in 0 versions, 2 known already" in again.text
    assert again.code == 0


def test_the_readmes_configuration_is_one(tmp_path: Path) -> None:
    (text,) = (text for kind, text in BLOCKS if kind == "toml")
    file = tmp_path / "tracecomb.toml"
    file.write_text(text)
    assert load(file).replay.prompt == "support/{agent}"


def test_without_a_command_the_help_is_talk() -> None:
    ran = tracecomb()
    assert (ran.code, ran.out) == (2, b"")
    assert "exit codes:" in ran.err


def test_version() -> None:
    assert re.fullmatch(r"tracecomb \S.*\n", tracecomb("--version").succeeded().text)


@pytest.mark.parametrize(
    ("line", "error"),
    [
        ("shwo p", "invalid choice: 'shwo'"),
        ("show", "the following arguments are required: PROMPT"),
        ("show p --at", "--at: expected one argument"),
        ("show p --format yaml", "invalid choice: 'yaml'"),
        ("show p --vers 3", "unrecognized arguments: --vers"),
        ("show p --version two", "'two' is no whole number"),
        ("show p --version 1.0", "'1.0' is no whole number"),
        ("show ''", "a prompt's name is empty"),
        ("show p --at ''", "an empty path"),
        ("diff p 1", "the following arguments are required: B"),
        ("rollback p", "the following arguments are required: --to"),
        ("rollback p --to newest", "'newest' is no whole number"),
        ("import f", "the following arguments are required: --prompt"),
        ("import f --prompt ''", "a prompt's name is empty"),
        ("export p -o ''", "an empty path"),
        ("replay", "the following arguments are required: PATH"),
        ("replay log --batch-size 0", '--batch-size is 0; allowed: "auto" or a whole number from 1 to 10,000'),
        ("replay log --batch-size -1", "--batch-size is -1; allowed:"),
        ("replay log --batch-size abc", '--batch-size is "abc"; allowed:'),
        ("replay log --batch-size 1.5", '--batch-size is "1.5"; allowed:'),
        ("replay log --batch-size 1_0", '--batch-size is "1_0"; allowed:'),
        ("replay log --batch-size ²", '--batch-size is "²"; allowed:'),
        ("replay log --batch-size=--5", '--batch-size is "--5"; allowed:'),
        (f"replay log --batch-size {'9' * 5000}", "--batch-size is "),
        ("replay log --batch-size 8 --sizes-from other", "not allowed with argument"),
        ("replay log --seed x", '--seed is "x"; allowed: a whole number from 0 to 9,223,372,036,854,775,807'),
        ("replay log --seed -1", "--seed is -1; allowed:"),
        ("replay log --seed 9223372036854775808", "--seed is 9223372036854775808; allowed:"),
        ("replay log --prompt '{bot}'", '--prompt is "{bot}"; allowed:'),
        ("replay log --force-prompt ''", "a prompt's name is empty"),
        ("demo --agents 0", "0 is less than 1"),
        ("demo --seed now", "'now' is no whole number"),
    ],
)
def test_wrong_usage_is_one_line_and_touches_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str, error: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "log").write_text("")
    assert error in tracecomb(*shlex.split(line)).failed(2)
    assert [path.name for path in tmp_path.iterdir()] == ["log"]


def test_the_greatest_seed_is_one(tmp_path: Path, trace: Path) -> None:
    tracecomb("replay", trace, "--at", tmp_path / "s", "--seed", str(2**63 - 1)).succeeded()


def test_an_argument_that_is_no_text(tmp_path: Path) -> None:
    ran = process("import", "file", "--prompt", b"a\xffb", cwd=tmp_path)
    assert "argument --prompt: a prompt's name is not UTF-8" in ran.failed(2)


@pytest.mark.parametrize(
    "command", ["replay log", "show p", "history p", "diff p 0 0", "rollback p --to 0", "export p"]
)
def test_a_configuration_is_checked_by_every_command(tmp_path: Path, command: str) -> None:
    file = tmp_path / "c.toml"
    file.write_text("[learning]\nmax_stalenes = 2")
    error = tracecomb(*command.split(), "--config", file).failed(2)
    assert error == (
        f"tracecomb: {file}: learning.max_stalenes is not a setting; the nearest one is learning.max_staleness"
    )
    assert "c.toml.gone: No such file" in tracecomb(*command.split(), "--config", f"{file}.gone").failed(2)


def test_where_the_store_is(tmp_path: Path, trace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TRACECOMB_AT", raising=False)
    plain = tracecomb("replay", trace).succeeded()
    assert (tmp_path / "tracecomb.d" / "store.json").exists()
    monkeypatch.setenv("TRACECOMB_AT", "from-the-environment")
    named = tracecomb("replay", trace).succeeded()
    assert (tmp_path / "from-the-environment" / "store.json").exists()
    flagged = tracecomb("replay", trace, "--at", "a flag's").succeeded()
    assert (tmp_path / "a flag's" / "store.json").exists()
    nexts = [ran.text.splitlines()[-1] for ran in (plain, named, flagged)]
    assert nexts[0] == nexts[1] == "next: tracecomb show support/refunds"
    for ran in (plain, named, flagged):
        (suggested,) = re.findall(r"^next: tracecomb (.*)$", ran.text, re.MULTILINE)
        assert "amount must be in cents" in tracecomb(*shlex.split(suggested)).succeeded().text


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda at: None, "is not a prompt store: there is nothing; `tracecomb replay` makes one"),
        (lambda at: at.mkdir(), "is not a prompt store: it is empty"),
        (lambda at: at.write_text("mine"), "is not a prompt store: it is not a directory"),
        (lambda at: (at.mkdir(), (at / "mine").touch()), "is not a prompt store: it holds other things"),
        (lambda at: (at.mkdir(), (at / "store.json").write_text("{}")), "its store.json is not one of ours"),
    ],
    ids=["nothing", "empty", "file", "other", "foreign"],
)
def test_no_store(tmp_path: Path, trace: Path, make: object, told: str) -> None:
    at = tmp_path / "at"
    assert callable(make)
    make(at)
    for command in ("show p", "history p", "diff p 0 0", "export p", "rollback p --to 0"):
        assert told in tracecomb(*command.split(), "--at", at).failed(1)
    if at.exists() and (at.is_file() or list(at.iterdir())):
        assert "is not a prompt store" in tracecomb("replay", trace, "--at", at).failed(1)
    assert "is not a prompt store" in tracecomb("replay", trace, "--at", tmp_path / "b", "--sizes-from", at).failed(1)


def test_an_unknown_prompt_is_told_with_the_known_ones(store: Path) -> None:
    for command in ("show", "history", "export"):
        error = tracecomb(command, "shop", "--at", store).failed(4)
        assert error == f"tracecomb: {store} holds no prompt 'shop'; it holds 'shop/0'"
    assert "holds no prompt 'shop'" in tracecomb("rollback", "shop", "--to", "0", "--at", store).failed(4)


@pytest.mark.parametrize("wrong", ["-1", "3", "99999999999999999999"])
def test_an_unknown_version(store: Path, wrong: str) -> None:
    for command in ("show shop/0 --version", "diff shop/0 1", "rollback shop/0 --to", "export shop/0 --version"):
        ran = tracecomb(*command.split(), wrong, "--at", store)
        if len(wrong) > 19:
            assert f"'{wrong}' is no whole number" in ran.failed(2)
        else:
            assert ran.failed(4) == f"tracecomb: prompt 'shop/0' has versions 1 to 2, not {wrong}"


def test_a_damaged_store(store: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(store, tmp_path / "copy")
    (state,) = copy.rglob("state.json")
    state.write_bytes(state.read_bytes()[:-20])
    assert "state.json is damaged" in tracecomb("show", "shop/0", "--at", copy).failed(1)
    assert "restore it from a copy" in tracecomb("rollback", "shop/0", "--to", "1", "--at", copy).failed(1)


def test_a_mistake_of_ours_is_shown_whole(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(options: object, config: object) -> int:
        raise ExceptionGroup("unhandled errors in a TaskGroup", [ZeroDivisionError("of a lesson")])

    monkeypatch.setattr("stream.commands.playbooks.show", broken)
    ran = tracecomb("show", "shop/0", "--at", store)
    assert ran.code == 1
    assert "ZeroDivisionError: of a lesson" in ran.err
    assert "in broken" in ran.err
    assert ran.err.splitlines()[-1].startswith("tracecomb: this is a mistake in tracecomb ")


def test_an_error_in_a_group_is_told_as_itself() -> None:
    group = BaseExceptionGroup("", [ExceptionGroup("", [StoreLocked(Path("/s"), 7)])])
    assert exits.ending(group) == (3, "/s is being written by process 7: wait for it to end, or stop it")
    assert exits.ending(BaseExceptionGroup("", [KeyboardInterrupt()])) is not None
    assert exits.ending(KeyError("x")) is None


def test_messages_cannot_forge_lines(tmp_path: Path) -> None:
    error = tracecomb("replay", tmp_path / "a\nb\x1b[2J").failed(1)
    assert error.endswith("a\\nb\\x1b[2J: No such file or directory")


def test_leaving_on_purpose_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    def leave(arguments: object) -> int:
        raise SystemExit(9)

    monkeypatch.setattr(cli, "_run", leave)
    with pytest.raises(SystemExit):
        tracecomb("show", "p")


class TestStreams:
    """What becomes of results and talk when nobody takes them. Each is a process of its own."""

    def test_a_reader_that_has_had_enough(self, store: Path) -> None:
        ran = shell("tracecomb history shop/0 --json --at . | head -c 10", store)
        assert (ran.code, ran.out, ran.err) == (0, b'{"version"', "")
        ran = shell("tracecomb --help | head -0", store)
        assert (ran.code, ran.err) == (0, "")

    def test_stdout_closed_from_the_start(self, store: Path, tmp_path: Path, trace: Path) -> None:
        for command in (f"show shop/0 --at {store}", f"replay {trace}"):
            ran = shell(f"tracecomb {command} >&-", tmp_path)
            assert (ran.code, ran.out, ran.err) == (0, b"", ""), command
        assert "amount must be in cents" in tracecomb("show", "support/refunds", "--at", tmp_path / "tracecomb.d").text
        # Nothing of the store may have taken the place of stdout, where a result would be written into it.
        assert tracecomb("replay", trace, "--at", tmp_path / "tracecomb.d", "--json").succeeded().json["updates"] == 0

    def test_all_closed(self, tmp_path: Path, trace: Path) -> None:
        ran = shell(f"tracecomb replay {trace} - <&- >&- 2>&-", tmp_path)
        assert ran == (0, b"", "")
        assert tracecomb("replay", trace, "--at", tmp_path / "tracecomb.d").succeeded().text.count("1 known") == 1

    def test_talk_that_nobody_hears_stops_no_work(self, tmp_path: Path, trace: Path) -> None:
        for number in range(200):
            (tmp_path / f"{number:03}.txt").write_text("no trace")  # each is talk, and all of it more than a pipe holds
        ran = shell("tracecomb replay . 2>&1 >result | head -0", tmp_path)
        assert (ran.code, ran.err) == (0, "")
        assert "1 trace learned" in (tmp_path / "result").read_text()
        ran = shell("tracecomb replay . --json 2>/dev/full", tmp_path)
        assert (ran.code, ran.json["duplicates"]) == (0, 1)

    def test_stdout_that_is_full(self, store: Path) -> None:
        for command in ("show shop/0", "history shop/0 --json"):
            ran = shell(f"tracecomb {command} --at . >/dev/full", store)
            assert ran == (1, b"", "tracecomb: standard output: No space left on device\n"), command

    def test_results_are_utf8_whatever_the_locale(self, tmp_path: Path) -> None:
        book = tmp_path / "book.md"
        book.write_text("## Städte\n\n- Zoë wohnt in Łódź – 北京\n")
        ascii_only = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PYTHONIOENCODING": "ascii"}
        ran = process("import", book, "--prompt", "π", cwd=tmp_path, more=ascii_only).succeeded()
        assert "π: version 1" in ran.text
        ran = process("diff", "π", "0", "1", cwd=tmp_path, more=ascii_only).succeeded()
        assert "Zoë wohnt in Łódź – 北京" in ran.text
