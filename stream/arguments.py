"""The commands, their flags and their help."""

from __future__ import annotations

import os
import re
from argparse import ArgumentParser, ArgumentTypeError, Namespace, RawDescriptionHelpFormatter
from collections.abc import Callable
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import Any, NamedTuple, NoReturn, cast

from stream.config import Config
from stream.exits import EXITS, USAGE
from stream.formats import FORMATS

Run = Callable[[Namespace, Config], int]

_ABOUT = """Learns better prompts from agents' traces.

  tracecomb replay logs/            learn from a folder of trace logs
  tracecomb show default            print what was learned, as agents get it
  tracecomb demo                    watch a fleet of agents get better, no set-up
"""
_NUMBER = re.compile(r"-?[0-9]{1,19}")


class Command(NamedTuple):
    """A command: where its function is, what it is about, an example of it, and what adds its arguments."""

    name: str
    function: str
    about: str
    example: str
    add_arguments: Callable[[Parser], None]

    def load(self) -> Run:
        """Import the function, which is not done before it runs: ``show`` need not wait for what ``replay`` needs."""
        module, _, name = self.function.partition(".")
        return cast(Run, getattr(import_module(f"stream.commands.{module}"), name))


class Parser(ArgumentParser):
    """A parser whose errors are one line, and that takes no flag for another because it begins like it."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"allow_abbrev": False, "formatter_class": RawDescriptionHelpFormatter, **options})

    def error(self, message: str) -> NoReturn:
        """Say what is wrong, and leave."""
        self.exit(USAGE, f"{self.prog}: {message}; see {self.prog} --help\n")


def build_parser() -> Parser:
    """The parser with all commands; ``command`` of what it parses is a :class:`Command`, or None."""
    codes = "".join(f"  {code:<4} {meaning}\n" for code, meaning in EXITS.items())
    parser = Parser(prog="tracecomb", description=_ABOUT, epilog=f"exit codes:\n{codes}")
    parser.add_argument("--version", action="version", version=f"tracecomb {release()}")
    parser.set_defaults(command=None)
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")

    for command in _COMMANDS:
        sub = commands.add_parser(
            command.name,
            help=command.about,
            description=f"{command.about[0].upper()}{command.about[1:]}.",
            epilog=f"example:\n  {command.example}",
        )
        sub.set_defaults(command=command, flags=(), own_store=False, at=None, config=None)
        sub.add_argument("--verbose", action="store_true", help="log every step to stderr; may show text of traces")
        command.add_arguments(sub)
    return parser


def release() -> str:
    """The version that is installed."""
    try:
        return version("tracecomb")
    except PackageNotFoundError:
        return "(not installed)"


def _replay(parser: Parser) -> None:
    parser.add_argument(
        "paths", nargs="+", metavar="PATH", help="files, folders (in path order), - for stdin; .gz and .zst too"
    )
    parser.add_argument(
        "--prompt", type=_name, metavar="NAME", help="of traces that name none; {agent} stands for their agent"
    )
    parser.add_argument("--force-prompt", type=_name, metavar="NAME", help="of all traces, whatever they name")
    sizes = parser.add_mutually_exclusive_group()
    sizes.add_argument(
        "--batch-size", type=_number_or_text, metavar="auto|N", help="traces a window (default auto: it is measured)"
    )
    sizes.add_argument(
        "--sizes-from", type=_place, metavar="STORE", help="close each window at the size that another store recorded"
    )
    parser.add_argument("--seed", type=_number_or_text, metavar="N", help="of the shuffle (default 0)")
    parser.add_argument(
        "--go-on", action="store_true", help="learn on though the store was learned with other settings"
    )
    parser.add_argument("--json", action="store_true", help="end stdout with one JSON object")
    parser.set_defaults(flags=("prompt", "force_prompt", "batch_size", "seed"))
    _store(parser)


def _show(parser: Parser) -> None:
    _prompt(parser)
    _version(parser)
    parser.add_argument(
        "--format",
        choices=FORMATS,
        default="text",
        help="text is what agents get, ace has counters and reads back, json is the whole update (default text)",
    )
    _store(parser)


_HISTORY = """
  base        the version whose lessons the curators of its window saw
  kind        window (learned from traces), import, rollback or edit
  changed     whether agents see any difference to the version before
  batch size  the traces in its window
  at          when the newest of those traces ended, or when a person made it"""


def _history(parser: Parser) -> None:
    parser.description = f"{parser.description}\n{_HISTORY}"
    _prompt(parser)
    parser.add_argument("--json", action="store_true", help="one JSON object a line, with the ids of all traces")
    _store(parser)


def _diff(parser: Parser) -> None:
    _prompt(parser)
    parser.add_argument("a", type=_number, metavar="A", help="a version; 0 is empty")
    parser.add_argument("b", type=_number, metavar="B", help="another")
    parser.add_argument("--counts", action="store_true", help="compare helpful and harmful counts too")
    _store(parser)


def _rollback(parser: Parser) -> None:
    _prompt(parser)
    parser.add_argument("--to", type=_number, required=True, metavar="N", help="the version to go back to; 0 is empty")
    _store(parser)


def _import(parser: Parser) -> None:
    parser.add_argument("file", type=_place, metavar="FILE", help="the playbook; - for stdin")
    parser.add_argument("--prompt", type=_name, required=True, metavar="NAME", help="made if there is none such")
    parser.add_argument("--format", choices=FORMATS, help="else the content decides")
    _store(parser)


def _export(parser: Parser) -> None:
    _prompt(parser)
    _version(parser)
    parser.add_argument(
        "--format", choices=FORMATS, help="else by FILE's name: markdown for .md, json for .json, ace for others"
    )
    parser.add_argument(
        "-o",
        "--output",
        type=_place,
        metavar="FILE",
        help="else stdout; in Markdown only the region that is ours changes",
    )
    _store(parser)


def _demo(parser: Parser) -> None:
    parser.add_argument(
        "--at", type=_place, metavar="DIR", help="where to keep the store (default: a temporary folder)"
    )
    parser.add_argument("--seed", type=_number, default=0, metavar="N", help="names and rules of the world (default 0)")
    parser.add_argument("--agents", type=_count, default=12, metavar="N", help="how many work at once (default 12)")
    parser.set_defaults(own_store=True)


def _prompt(parser: Parser) -> None:
    parser.add_argument("prompt", type=_name, metavar="PROMPT", help="its name, after -- if that begins with -")


def _version(parser: Parser) -> None:
    parser.add_argument("--version", type=_number, metavar="N", help="else the newest; 0 is empty")


def _store(parser: Parser) -> None:
    parser.add_argument("--at", type=_place, metavar="DIR", help="the store (else TRACECOMB_AT, else ./tracecomb.d)")
    parser.add_argument("--config", type=_place, metavar="FILE", help="a TOML configuration file")


def _name(text: str) -> str:
    if not text:
        raise ArgumentTypeError("a prompt's name is empty")
    try:
        return os.fsencode(text).decode()  # names are UTF-8, also where the locale is not
    except UnicodeError:
        raise ArgumentTypeError("a prompt's name is not UTF-8") from None


def _place(text: str) -> str:
    if not text:
        raise ArgumentTypeError("an empty path")
    return text


def _number(text: str) -> int:
    if not _NUMBER.fullmatch(text):
        raise ArgumentTypeError(f"{text!r} is no whole number")
    return int(text)


def _count(text: str) -> int:
    number = _number(text)
    if number < 1:
        raise ArgumentTypeError(f"{text} is less than 1")
    return number


def _number_or_text(text: str) -> int | str:
    """What is no number is left to the configuration, which knows what else is allowed."""
    return int(text) if _NUMBER.fullmatch(text) else text


_COMMANDS = (
    Command("replay", "replay.replay", "learn from trace logs", "tracecomb replay logs/ --at store/", _replay),
    Command("show", "playbooks.show", "print a prompt", "tracecomb show support/refunds --format ace", _show),
    Command(
        "history",
        "playbooks.history",
        "list the versions of a prompt, oldest first",
        "tracecomb history support/refunds",
        _history,
    ),
    Command(
        "diff",
        "playbooks.diff",
        "show what changed between two versions of a prompt",
        "tracecomb diff support/refunds 3 5",
        _diff,
    ),
    Command(
        "rollback",
        "changes.rollback",
        "make the lessons of an older version the newest version",
        "tracecomb rollback support/refunds --to 3",
        _rollback,
    ),
    Command(
        "import",
        "changes.import_",
        "merge a playbook file into a prompt",
        "tracecomb import playbook.txt --prompt support/refunds",
        _import,
    ),
    Command(
        "export",
        "playbooks.export",
        "write a prompt to a file",
        "tracecomb export support/refunds -o SKILL.md",
        _export,
    ),
    Command("demo", "demo.demo", "watch a fleet of agents get better", "tracecomb demo --seed 7", _demo),
)
