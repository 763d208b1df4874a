"""The command ``tracecomb``: from arguments to an exit code."""

from __future__ import annotations

import sys
import traceback
from argparse import Namespace
from collections.abc import Sequence

from stream.arguments import build_parser, release
from stream.config import ConfigError, load, store_address
from stream.exits import FAILED, OK, USAGE, ending, is_broken_pipe
from stream.kafka.address import is_address
from stream.logs import configure
from stream.parser import Command
from stream.terminal import flush, interruptible, say, silence, standard_streams


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    with standard_streams(), interruptible():
        try:
            code = _run(arguments)
            flush()
        except BaseException as error:
            if is_broken_pipe(error):  # whoever read the results has had enough of them
                silence(sys.stdout)
                return OK
            if not isinstance(error, Exception | BaseExceptionGroup | KeyboardInterrupt):
                raise
            return _end(error)
        return code


def _run(arguments: Sequence[str] | None) -> int:
    parser = build_parser()
    try:
        options = parser.parse_args(arguments)
    except SystemExit as left:  # --help, --version and wrong usage, all of which have said what there is to say
        return left.code if isinstance(left.code, int) else USAGE
    if options.command is None:
        parser.print_help(sys.stderr)
        return USAGE
    configure("debug" if options.verbose else "warning")
    command: Command = options.command
    options.given_at = options.at
    if not options.own_store:
        options.at = store_address(options.at)
        if is_address(options.at) and not options.clusters:
            raise ConfigError(
                f"{options.at} is a cluster, and {command.name} works on a store, a directory that --at or "
                "TRACECOMB_AT names; `tracecomb send` sends traces to a cluster"
            )
    return command.load()(options, load(options.config, _flags(options)))


def _flags(options: Namespace) -> dict[str, object]:
    """The flags that say what the configuration says too, as far as they were given."""
    return {name: value for name in options.flags if (value := getattr(options, name)) is not None}


def _end(error: BaseException) -> int:
    """Tell a person what went wrong, and how the process ends."""
    known = ending(error)
    if known is None:
        # Nobody can mend, or report, what is not shown.
        traceback.print_exception(error, file=sys.stderr)
        say(f"this is a mistake in tracecomb {release()}, not yours; please report it with the lines above")
        return FAILED
    code, message = known
    say(message)
    try:
        flush()
    except OSError:
        silence(sys.stdout)
    return code
