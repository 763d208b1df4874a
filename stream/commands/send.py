"""``tracecomb send``: trace logs into the topic of traces."""

from __future__ import annotations

import json
import signal
import time
from argparse import Namespace
from collections.abc import Callable, Iterator, Sequence

import anyio

from stream.commands.reading import check_paths, progress
from stream.config import Config
from stream.exits import OK
from stream.files import TraceFiles
from stream.kafka.address import at_cluster
from stream.kafka.cluster import ClusterError
from stream.kafka.memory import Memory, state_folder
from stream.kafka.pace import Pace
from stream.kafka.sending import Sending, Tally
from stream.kafka.topics import cluster_id, found
from stream.records import Bad, Record
from stream.terminal import counted, invoked, line, say

_MOST_TOLD = 20


def send(options: Namespace, config: Config) -> int:
    """Send the traces of files and folders, and say how many."""
    started = time.monotonic()
    check_paths(options.paths)
    config = at_cluster(config, options.at)
    first = _files(options)
    with progress(first, options.verbose) as show:
        tally = anyio.run(_until_a_signal, options, config, first, show)
    if tally is None:
        raise KeyboardInterrupt
    _talk(tally)
    if options.json:
        told = {
            "sent": tally.sent,
            "known": tally.known.total(),
            "rejected": tally.rejected,
            "skipped": len(tally.skipped),
            "seconds": round(time.monotonic() - started, 3),
        }
        line(json.dumps(told))
    else:
        line(
            f"{counted(tally.sent, 'trace')} sent to {config.topics.traces}, {tally.known.total():,} sent before, "
            f"{tally.rejected:,} rejected"
        )
    return OK


async def _until_a_signal(
    options: Namespace, config: Config, first: TraceFiles, show: Callable[[str], None]
) -> Tally | None:
    """Send; None when Ctrl-C or SIGTERM ended it, which lets what is under way arrive."""
    tally = None
    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        async with anyio.create_task_group() as tasks:

            async def end_at_a_signal() -> None:
                async for _ in signals:
                    tasks.cancel_scope.cancel()
                    return

            tasks.start_soon(end_at_a_signal)
            tally = await _run(options, config, first, show)
            tasks.cancel_scope.cancel()
    return tally


async def _run(options: Namespace, config: Config, first: TraceFiles, show: Callable[[str], None]) -> Tally:
    name = config.topics.traces
    topic = (await found(config.kafka, config.topics)).get(name)
    if topic is None:
        raise ClusterError(
            f"{name} does not exist at {config.kafka.bootstrap}; `{invoked()} topics create` makes it, another name "
            "goes under [topics] in the configuration"
        )
    rejects = 0

    def reject(bad: Bad) -> None:
        nonlocal rejects
        rejects += 1
        if rejects <= _MOST_TOLD:
            say(f"{bad.file}:{bad.line}: not sent: {bad.reason}")

    memory = Memory(state_folder(), await cluster_id(config.kafka), name)
    sending = Sending(
        config,
        topic,
        memory,
        Pace(options.rate, options.speed),
        again=options.again,
        reject=reject,
        progress=lambda tally: show(f"{counted(tally.sent, 'trace')} sent"),
    )
    passes = _passes(options, first)
    return await sending.run(lambda: next(passes))


def _files(options: Namespace) -> TraceFiles:
    # Without a buffer: a thread that waits in one could not be left behind when the process ends.
    return TraceFiles(list(dict.fromkeys(options.paths)), stdin=open(0, "rb", buffering=0, closefd=False))


def _passes(options: Namespace, first: TraceFiles) -> Iterator[Iterator[Sequence[Record]]]:
    yield iter(first)
    while True:
        yield iter(_files(options))


def _talk(tally: Tally) -> None:
    if tally.rejected > _MOST_TOLD:
        say(f"and so on: {counted(tally.rejected, 'record')} not sent in all")
    for name in tally.changed[:_MOST_TOLD]:
        say(f"{name} is not the log that was sent before; all of it was sent")
    if tally.skipped:
        file, reason = tally.skipped[0].file, tally.skipped[0].reason
        which = "" if len(tally.skipped) == 1 else "the first is "
        say(f"{counted(len(tally.skipped), 'file')} skipped, with no trace in it; {which}{file}: {reason}")
    if not tally.sent:
        say("nothing was sent: no trace is new (--again sends all)" if tally.known else "no trace was found")
