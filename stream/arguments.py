"""The commands, their flags and their help."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING

from stream.exits import EXITS
from stream.formats import FORMATS
from stream.kafka.arguments import GROUPS, KAFKA_COMMANDS
from stream.parser import Command, Parser, count, name, number, number_or_text, place, seconds

if TYPE_CHECKING:
    from argparse import _SubParsersAction

    Subparsers = _SubParsersAction[Parser]

_ABOUT = """Learns better prompts from agents' traces.

  tracecomb replay logs/            learn from a folder of trace logs
  tracecomb show default            print what was learned, as agents get it
  tracecomb demo                    watch a fleet of agents get better, no set-up
"""


def build_parser() -> Parser:
    """The parser with all commands; ``command`` of what it parses is a :class:`Command`, or None."""
    codes = "".join(f"  {code:<4} {meaning}\n" for code, meaning in EXITS.items())
    parser = Parser(prog="tracecomb", description=_ABOUT, epilog=f"exit codes:\n{codes}")
    parser.add_argument("--version", action="version", version=f"tracecomb {release()}")
    parser.set_defaults(command=None)
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")

    groups = {name: _group(commands, name, about) for name, about in GROUPS.items()}
    for command in (*_COMMANDS, *KAFKA_COMMANDS):
        group, _, name = command.name.rpartition(" ")
        sub = (groups[group] if group else commands).add_parser(
            name,
            help=command.about,
            description=f"{command.about[0].upper()}{command.about[1:]}.{command.more}",
            epilog=f"example:\n  {command.example}",
        )
        sub.set_defaults(command=command, flags=(), own_store=False, clusters=False, at=None, config=None)
        sub.add_argument("--verbose", action="store_true", help="log every step to stderr; may show text of traces")
        command.add_arguments(sub)
    return parser


def _group(commands: Subparsers, name: str, about: str) -> Subparsers:
    group = commands.add_parser(name, help=about, description=f"{about[0].upper()}{about[1:]}.")
    return group.add_subparsers(title="commands", metavar="COMMAND", required=True)


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
        "--prompt", type=name, metavar="NAME", help="of traces that name none; {agent} stands for their agent"
    )
    parser.add_argument("--force-prompt", type=name, metavar="NAME", help="of all traces, whatever they name")
    sizes = parser.add_mutually_exclusive_group()
    sizes.add_argument(
        "--batch-size", type=number_or_text, metavar="auto|N", help="traces a window (default auto: it is measured)"
    )
    sizes.add_argument(
        "--sizes-from", type=place, metavar="STORE", help="close each window at the size that another store recorded"
    )
    parser.add_argument("--seed", type=number_or_text, metavar="N", help="of the shuffle (default 0)")
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
    _place(parser)


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
    _place(parser)


def _diff(parser: Parser) -> None:
    _prompt(parser)
    parser.add_argument("a", type=number, metavar="A", help="a version; 0 is empty")
    parser.add_argument("b", type=number, metavar="B", help="another")
    parser.add_argument("--counts", action="store_true", help="compare helpful and harmful counts too")
    _place(parser)


def _rollback(parser: Parser) -> None:
    _prompt(parser)
    parser.add_argument("--to", type=number, required=True, metavar="N", help="the version to go back to; 0 is empty")
    _asking(parser)


def _import(parser: Parser) -> None:
    parser.add_argument("file", type=place, metavar="FILE", help="the playbook; - for stdin")
    parser.add_argument("--prompt", type=name, required=True, metavar="NAME", help="made if there is none such")
    parser.add_argument("--format", choices=FORMATS, help="else the content decides")
    _asking(parser)


def _export(parser: Parser) -> None:
    _prompt(parser)
    _version(parser)
    parser.add_argument(
        "--format", choices=FORMATS, help="else by FILE's name: markdown for .md, json for .json, ace for others"
    )
    parser.add_argument(
        "-o",
        "--output",
        type=place,
        metavar="FILE",
        help="else stdout; in Markdown only the region that is ours changes",
    )
    _place(parser)


def _demo(parser: Parser) -> None:
    parser.add_argument("--at", type=place, metavar="DIR", help="where to keep the store (default: a temporary folder)")
    parser.add_argument("--seed", type=number, default=0, metavar="N", help="names and rules of the world (default 0)")
    parser.add_argument("--agents", type=count, default=12, metavar="N", help="how many work at once (default 12)")
    parser.set_defaults(own_store=True)


def _prompt(parser: Parser) -> None:
    parser.add_argument("prompt", type=name, metavar="PROMPT", help="its name, after -- if that begins with -")


def _version(parser: Parser) -> None:
    parser.add_argument("--version", type=number, metavar="N", help="else the newest; 0 is empty")


def _place(parser: Parser) -> None:
    parser.add_argument(
        "--at",
        type=place,
        metavar="DIR|kafka://HOST:PORT|CONFIG.toml",
        help="the store, or the cluster: its address, or a configuration with its tables [kafka] and [topics] "
        "(else TRACECOMB_AT, else ./tracecomb.d)",
    )
    parser.add_argument("--config", type=place, metavar="FILE", help="a TOML configuration file")
    parser.set_defaults(clusters=True)


def _asking(parser: Parser) -> None:
    parser.add_argument(
        "--timeout",
        type=seconds,
        default=30.0,
        metavar="SECONDS",
        help="on a cluster, how long to wait for the service, which makes the version (default 30)",
    )
    _place(parser)


def _store(parser: Parser) -> None:
    parser.add_argument("--at", type=place, metavar="DIR", help="the store (else TRACECOMB_AT, else ./tracecomb.d)")
    parser.add_argument("--config", type=place, metavar="FILE", help="a TOML configuration file")


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
