"""The commands that need Kafka, and their flags."""

from __future__ import annotations

from argparse import ArgumentTypeError

from stream.config import ConfigError
from stream.kafka.address import bootstrap_of
from stream.parser import Command, Parser, count, name, number, place

GROUPS = {
    "kafka": "run a Kafka broker of your own, for trying out",
    "topics": "make or check the topics on a cluster",
}


def _start(parser: Parser) -> None:
    parser.add_argument(
        "--port", type=number, default=9092, metavar="P", help="where it listens; any free one for 0 (default 9092)"
    )
    parser.add_argument(
        "--data", type=place, metavar="DIR", help="keep its data here and go on from it (default: gone when it stops)"
    )
    parser.add_argument("--json", action="store_true", help="say where it listens as one JSON object")
    parser.set_defaults(own_store=True)


def _create(parser: Parser) -> None:
    _cluster(parser)
    parser.add_argument(
        "--partitions",
        type=count,
        metavar="N",
        help="of every topic (default: as many as the topic of traces has, 6 if there is none yet)",
    )
    parser.add_argument(
        "--replication", type=count, metavar="N", help="copies of each partition (default: as the brokers do it)"
    )


def _check(parser: Parser) -> None:
    _cluster(parser)
    parser.add_argument("--partitions", type=count, metavar="N", help="that every topic must have")


def _cluster(parser: Parser) -> None:
    parser.add_argument(
        "--at", type=_address, metavar="kafka://HOST:PORT", help="the cluster (default: the configuration's)"
    )
    parser.add_argument("--config", type=place, metavar="FILE", help="a TOML configuration file")
    parser.set_defaults(own_store=True)


def _run(parser: Parser) -> None:
    _cluster(parser)


def _send(parser: Parser) -> None:
    parser.add_argument(
        "paths", nargs="+", metavar="PATH", help="files, folders (in path order), - for stdin; .gz and .zst too"
    )
    parser.add_argument(
        "--prompt", type=name, metavar="NAME", help="of traces that name none; {agent} stands for their agent"
    )
    parser.add_argument("--force-prompt", type=name, metavar="NAME", help="of all traces, whatever they name")
    pace = parser.add_mutually_exclusive_group()
    pace.add_argument("--rate", type=_positive, metavar="N", help="traces a second (default: as fast as it goes)")
    pace.add_argument(
        "--speed", type=_positive, metavar="X", help="X times as fast as the traces' own times tell; 1 is as recorded"
    )
    parser.add_argument("--again", action="store_true", help="send from the start what was sent before")
    parser.add_argument("--json", action="store_true", help="end stdout with one JSON object")
    parser.set_defaults(flags=("prompt", "force_prompt"))
    _cluster(parser)


def _address(text: str) -> str:
    try:
        bootstrap_of(text)
    except ConfigError as error:
        raise ArgumentTypeError(str(error)) from None
    return text


def _positive(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise ArgumentTypeError(f"{text!r} is no number over 0")
    return value


_SENDING = """

Each trace is sent as JSON, keyed by its prompt, to the topic of traces, and counts as sent once the brokers have it
(acks=all). How far each log was sent to a topic is remembered in $XDG_STATE_HOME/tracecomb (else
~/.local/state/tracecomb): the same command again goes on there, also after a kill, and sends what a log has grown by.
After a kill the last few traces may be sent twice; they carry the same id, and the learner tells them apart. What
cannot be read as a trace is counted as rejected, with file and line, and not sent. What comes from stdin is not
remembered."""

_RUNNING = """

It runs until SIGTERM or Ctrl-C, which closes the open windows, publishes them and leaves; a second one cuts that short.
Start one, or up to one a partition: they share them. Killed at any instant it loses nothing: each trace has exactly
one fate, and what was under way is read again. Logs go to stderr, as JSON lines where that is no terminal."""

KAFKA_COMMANDS = (
    Command(
        "kafka start",
        "kafka.start",
        "run a one-node Kafka broker in the foreground, until Ctrl-C",
        "tracecomb kafka start --data kafka.d",
        _start,
        "\n\nNeeds Java 17, and Maven the first time. It is for trying out: one copy of everything, no authentication.",
    ),
    Command(
        "topics create",
        "topics.create",
        "make the topics that are missing, then check all",
        "tracecomb topics create --at kafka://127.0.0.1:9092 --partitions 6",
        _create,
    ),
    Command(
        "topics check",
        "topics.check",
        "say what is wrong with the topics, and how to mend it",
        "tracecomb topics check --config tracecomb.toml",
        _check,
    ),
    Command(
        "run",
        "run.run",
        "learn from the topic of traces, and publish each new version of a prompt",
        "tracecomb run --config tracecomb.toml",
        _run,
        _RUNNING,
    ),
    Command(
        "send",
        "send.send",
        "send trace logs to the topic of traces",
        "tracecomb send logs/ --at kafka://127.0.0.1:9092 --rate 100",
        _send,
        _SENDING,
    ),
)
