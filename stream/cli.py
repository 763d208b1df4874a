"""The command line: what there is, what was asked for, and what each error ends with."""

from __future__ import annotations

import os
import sys
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Callable, Sequence
from importlib.metadata import PackageNotFoundError, version

from stream.config import Config, ConfigError, load, store_address
from stream.formats import FORMATS, FormatError
from stream.logs import configure
from stream.storeerrors import StoreError, StoreLocked, UnknownPrompt, UnknownVersion

OK, FAILED, USAGE, LOCKED, UNKNOWN, REJECTS, SETTINGS = 0, 1, 2, 3, 4, 5, 6

_EXIT_CODES = """exit codes:
  0    done, also when there was nothing to do
  1    failed: the message says what, where, and what to do
  2    wrong usage or configuration
  3    another process has the store open for writing
  4    no such prompt, or no such version of it
  5    too many lines were no traces
  6    the store was learned with other settings (see --go-on)
  78   another distribution has overwritten the package `stream` or `operators`
  130  interrupted; nothing is lost, the same command goes on
"""

_ABOUT = """Learns better prompts from agents' traces.

  tracecomb replay logs/            learn from a folder of trace logs
  tracecomb show default            print what was learned, as agents get it
  tracecomb demo                    watch a fleet of agents get better, no set-up
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    parser = build_parser()
    options = parser.parse_args(arguments)
    if options.run is None:
        parser.print_help()
        return USAGE
    configure("debug" if options.verbose else "warning")
    try:
        code = _run(options)
        sys.stdout.flush()
    except BrokenPipeError:
        # Whoever read stdout has had enough; what is still buffered must not raise again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return OK
    except KeyboardInterrupt:
        print("tracecomb: interrupted; run the same command again to go on", file=sys.stderr)
        return 130
    return code


def _run(options: Namespace) -> int:
    from stream.replay import TooManyRejects
    from stream.runs import SettingsChanged

    codes: tuple[tuple[type[Exception], int], ...] = (
        (ConfigError, USAGE),
        (StoreLocked, LOCKED),
        (UnknownPrompt, UNKNOWN),
        (UnknownVersion, UNKNOWN),
        (TooManyRejects, REJECTS),
        (SettingsChanged, SETTINGS),
        (StoreError, FAILED),
        (FormatError, FAILED),
        (FileNotFoundError, FAILED),
        (OSError, FAILED),
    )
    try:
        run: Callable[[Namespace], int] = options.run
        return run(options)
    except BrokenPipeError:
        raise
    except Exception as error:
        cause = _first(error)
        for kind, code in codes:
            if isinstance(cause, kind):
                print(f"tracecomb: {_told(cause)}", file=sys.stderr)
                return code
        raise


def _first(error: BaseException) -> BaseException:
    """The first error of a group: what a task group raises is its tasks' own."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def _told(error: BaseException) -> str:
    if isinstance(error, OSError) and error.filename is not None and error.strerror:
        return f"{error.filename}: {error.strerror}"
    return str(error) or type(error).__name__


def build_parser() -> ArgumentParser:
    """The parser with all subcommands."""
    parser = ArgumentParser(
        prog="tracecomb", description=_ABOUT, epilog=_EXIT_CODES, formatter_class=RawDescriptionHelpFormatter
    )
    parser.add_argument("--version", action="version", version=f"tracecomb {_version()}")
    common = ArgumentParser(add_help=False)
    common.add_argument("--verbose", action="store_true", help="log every step to stderr; may log text of traces")
    at = ArgumentParser(add_help=False)
    at.add_argument("--at", metavar="DIR", help="the store (else TRACECOMB_AT, else ./tracecomb.d)")
    at.add_argument("--config", metavar="FILE", help="a TOML configuration file")
    parser.set_defaults(run=None, verbose=False)
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")

    def command(
        name: str, about: str, example: str, run: Callable[[Namespace], int], *, store: bool = True
    ) -> ArgumentParser:
        sub = commands.add_parser(
            name,
            help=about,
            description=f"{about[0].upper()}{about[1:]}.",
            epilog=f"example:\n  {example}",
            formatter_class=RawDescriptionHelpFormatter,
            parents=[common, at] if store else [common],
        )
        sub.set_defaults(run=run)
        return sub

    _add_replay(command("replay", "learn from trace logs", "tracecomb replay logs/ --batch-size 32", _replay))
    show = command("show", "print a prompt", "tracecomb show support/refunds --format ace", _show)
    _add_version(show, "text")
    history = command("history", "list the versions of a prompt", "tracecomb history support/refunds", _history)
    history.add_argument("prompt")
    history.add_argument("--json", action="store_true", help="one JSON object a version, oldest first")
    diff = command("diff", "show what changed between two versions", "tracecomb diff support/refunds 3 5", _diff)
    diff.add_argument("prompt")
    diff.add_argument("a", type=int, metavar="A", help="a version; 0 is empty")
    diff.add_argument("b", type=int, metavar="B")
    diff.add_argument("--counts", action="store_true", help="compare helpful and harmful counts too")
    rollback = command(
        "rollback",
        "make an older version's lessons the newest version",
        "tracecomb rollback support/refunds --to 3",
        _rollback,
    )
    rollback.add_argument("prompt")
    rollback.add_argument("--to", type=int, required=True, metavar="N", help="the version to go back to; 0 is empty")
    importing = command(
        "import",
        "merge a playbook file into a prompt",
        "tracecomb import playbook.txt --prompt support/refunds",
        _import,
    )
    importing.add_argument("file", help="the playbook; - for stdin")
    importing.add_argument("--prompt", required=True)
    importing.add_argument("--format", choices=FORMATS, help="else the content decides")
    export = command(
        "export", "write a prompt to a file", "tracecomb export support/refunds --format markdown -o SKILL.md", _export
    )
    _add_version(export, "ace")
    export.add_argument(
        "-o", "--output", metavar="FILE", help="else stdout; in Markdown only the region that is ours changes"
    )
    _add_demo(command("demo", "watch a fleet of agents get better", "tracecomb demo --seed 7", _demo, store=False))
    return parser


def _add_version(parser: ArgumentParser, format: str) -> None:
    parser.add_argument("prompt")
    parser.add_argument("--version", type=int, metavar="N", help="else the newest; 0 is empty")
    parser.add_argument(
        "--format",
        choices=FORMATS,
        default=format,
        help=f"text is what agents get, ace has counters and reads back, json is the whole update (default {format})",
    )


def _add_replay(parser: ArgumentParser) -> None:
    parser.add_argument(
        "paths", nargs="+", metavar="PATH", help="files, folders (in path order), - for stdin; .gz, .zst too"
    )
    parser.add_argument(
        "--prompt", metavar="NAME", help="the prompt of traces that name none; {agent} stands for their agent"
    )
    parser.add_argument("--force-prompt", metavar="NAME", help="the prompt of all traces, whatever they name")
    parser.add_argument("--batch-size", metavar="auto|N", help="traces a window (default: the controller chooses)")
    parser.add_argument(
        "--sizes-from", metavar="STORE", help="close each window at the size that another store recorded"
    )
    parser.add_argument("--seed", type=int, metavar="N", help="of the shuffle (default 0)")
    parser.add_argument(
        "--go-on", action="store_true", help="learn on though the store was learned with other settings"
    )
    parser.add_argument("--json", action="store_true", help="end stdout with one JSON object")


def _add_demo(parser: ArgumentParser) -> None:
    parser.add_argument("--at", metavar="DIR", help="where to keep the store (else a new temporary folder)")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="names and rules of the world (default 0)")
    parser.add_argument("--agents", type=int, default=12, metavar="N", help="how many work at once (default 12)")


def _config(options: Namespace) -> Config:
    flags: dict[str, object] = {}
    for name in ("prompt", "force_prompt", "seed"):
        if getattr(options, name, None) is not None and options.run is _replay:
            flags[name] = getattr(options, name)
    size = getattr(options, "batch_size", None)
    if size is not None:
        flags["batch_size"] = int(size) if size.lstrip("-").isdecimal() else size
    options.at = store_address(options.at)
    return load(options.config, flags)


def _replay(options: Namespace) -> int:
    from stream.commands.replay import replay

    config = _config(options)
    return replay(options, config)


def _show(options: Namespace) -> int:
    from stream.commands.playbooks import show

    _config(options)
    return show(options)


def _history(options: Namespace) -> int:
    from stream.commands.playbooks import history

    _config(options)
    return history(options)


def _diff(options: Namespace) -> int:
    from stream.commands.playbooks import diff

    _config(options)
    return diff(options)


def _export(options: Namespace) -> int:
    from stream.commands.playbooks import export

    _config(options)
    return export(options)


def _rollback(options: Namespace) -> int:
    from stream.commands.changes import rollback

    config = _config(options)
    return rollback(options, config)


def _import(options: Namespace) -> int:
    from stream.commands.changes import import_

    config = _config(options)
    return import_(options, config)


def _demo(options: Namespace) -> int:
    from stream.demo.run import demo

    return demo(options.at, seed=options.seed, agents=options.agents)


def _version() -> str:
    try:
        return version("tracecomb")
    except PackageNotFoundError:
        return "(not installed)"
