"""One run: a broker, workers, a producer and a reader; what goes wrong, round by round; and the verdict."""

from __future__ import annotations

import asyncio
import signal
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path

import anyio
import msgspec
from msgspec import Struct, field

from stream.config import load
from stream.kafka.broker import Broker
from stream.kafka.service import lineage_of, settings_of
from stream.kafka.tables import Kafka, Topics
from stream.kafka.topics import cluster_id, create
from tests.conftest import ROOT
from tests.kafka.faults import dump
from tests.kafka.faults.feed import Feed
from tests.kafka.faults.harm import Harm
from tests.kafka.faults.reader import Reader
from tests.kafka.faults.schedule import Kind, Round, rounds
from tests.kafka.faults.stored import due
from tests.kafka.faults.verdict import findings
from tests.kafka.faults.workers import PYTHON, Fleet
from tests.stream.logs import Log

PARTITIONS, PROMPTS = 6, 60
FEWEST, MOST = 3, 5
GROUP = "faults"
SESSION_SECONDS = 6.0

CONFIG = """\
[kafka]
bootstrap = "{bootstrap}"
group = "faults"
session_timeout = 6.0

[service]
batch_size = 8
seed = {seed}
drain = 10.0

[learning]
max_wait = 2.0

[rejects]
share = 1.0
run = 1000000
"""

# After a kill the broker cannot come back before its own controller has given it up.
BROKER = {
    "log.cleaner.backoff.ms": "1000",
    "broker.session.timeout.ms": "5000",
    "broker.heartbeat.interval.ms": "1000",
}
FOR_EVER_MS = str(2**63 - 1)
# Traces may lie in the future; states are compacted all the time; updates never are, so that each can be looked at.
MORE = {
    "traces": {"message.timestamp.after.max.ms": FOR_EVER_MS},
    "state": {"segment.bytes": str(1 << 20), "min.cleanable.dirty.ratio": "0.01"},
    "updates": {"min.compaction.lag.ms": FOR_EVER_MS},
}

EXPECTED = ("no broker answers", "did not stop within")
"""What a worker that ended by itself may have said: it was started while the broker was down, or its client hung."""

_RECOVER_SECONDS = 30.0
_DONE_SECONDS = 240.0
_LEAVE_SECONDS = 40.0
_READ_SECONDS = 120.0

Say = Callable[[str], None]


class Outcome(Struct):
    """How a run ended.

    :param rounds: how many there were, and ``kinds`` of which kind.
    :param aborted: transactions that a fault has hit in their midst.
    :param wrong: what is wrong; nothing where all is well.
    """

    rounds: int = 0
    kinds: Counter[Kind] = field(default_factory=Counter)
    traces: int = 0
    versions: int = 0
    rejects: int = 0
    aborted: int = 0
    wrong: list[str] = field(default_factory=list)


class Rig:
    """Everything of one run.

    :param folder: an empty one, for the broker, the logs and what is found.
    :param say: told a line a round.
    """

    def __init__(self, folder: Path, seed: int, say: Say) -> None:
        self._folder = folder
        self._seed = seed
        self._say = say
        self._broker = Broker(data=folder / "broker", settings=BROKER)
        self._config = folder / "tracecomb.toml"
        self._fleet = Fleet(self._config, folder)
        self._noted: set[int] = set()
        self._outcome = Outcome()
        self._feed: Feed
        self._reader: Reader
        self._harm: Harm

    async def run(self, most: int, seconds: float | None = None) -> Outcome:
        """Go through rounds, wait until all is done, and judge.

        :param most: how many rounds.
        :param seconds: after which no other round begins.
        """
        started = time.monotonic()
        async with self._broker as broker:
            await self._prepare()
            try:
                self._reader = Reader(broker.bootstrap, PARTITIONS, self._fault)
                log = Log(count=10**9, seed=self._seed, prompts=PROMPTS)
                self._feed = Feed(broker.bootstrap, dump.TRACES, log, PARTITIONS)
                self._harm = Harm(
                    broker,
                    self._fleet,
                    self._feed,
                    partitions=PARTITIONS,
                    session=SESSION_SECONDS,
                    fewest=FEWEST,
                    most=MOST,
                )
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(self._unless_cancelled, tasks.cancel_scope, self._reader.run)
                    tasks.start_soon(self._unless_cancelled, tasks.cancel_scope, self._feed.run)
                    for _ in range(FEWEST):
                        self._fleet.start()
                    for each in rounds(self._seed):
                        if self._outcome.rounds == most or (seconds and time.monotonic() - started > seconds):
                            break
                        await self._round(each)
                    await self._finish()
                    await self._read_up()
                await self._judge()
            finally:
                self._fleet.kill_all()
        return self._outcome

    async def _unless_cancelled(self, scope: anyio.CancelScope, run: Callable[[], Awaitable[None]]) -> None:
        try:
            await run()
        except asyncio.CancelledError as error:
            if not scope.cancel_called:
                raise RuntimeError(f"{run} was cancelled by nobody") from error
            raise

    async def _prepare(self) -> None:
        self._config.write_text(CONFIG.format(bootstrap=self._broker.bootstrap, seed=self._seed))
        await create(Kafka(bootstrap=self._broker.bootstrap), Topics(), PARTITIONS, more=MORE)
        command = [*PYTHON, "topics", "create", "--partitions", str(PARTITIONS), "--config", str(self._config)]
        await anyio.run_process(command, cwd=ROOT)

    def _fault(self, text: str) -> None:
        self._outcome.wrong.append(text)
        self._say(text)

    async def _round(self, this: Round) -> None:
        self._outcome.rounds += 1
        self._outcome.kinds[this.kind] += 1
        before = self._reader.versions
        told = await self._harm.do(this)
        self._look_after()
        after = self._reader.versions
        await anyio.sleep(this.rest)
        waited = ""
        if this.waits:
            began = time.monotonic()
            with anyio.move_on_after(_RECOVER_SECONDS):
                while self._reader.versions == after:
                    await anyio.sleep(0.1)
                    self._look_after()
            waited = f", {time.monotonic() - began + this.rest:.1f} s to the next version"
            if self._reader.versions == after:
                waited = f", no version in {_RECOVER_SECONDS:.0f} s"
        self._look_after()
        self._say(
            f"round {self._outcome.rounds}: {told}{waited}; {self._reader.versions:,} versions "
            f"(+{self._reader.versions - before}), {self._feed.numbered:,} traces, {len(self._fleet.awake)} workers"
        )

    def _look_after(self) -> None:
        """Thaw who is due, note who has ended, and start others where there are too few."""
        self._fleet.thaw_due()
        for worker in self._fleet.all:
            code = worker.ended
            if code is None or worker.number in self._noted:
                continue
            self._noted.add(worker.number)
            if code == -signal.SIGKILL or (worker.told_to_end and code in (0, -signal.SIGTERM)):
                continue
            last = worker.last_words()
            text = f"{worker} ended with {code}: {last}"
            if any(each in last for each in EXPECTED):
                self._say(text)
            else:
                self._fault(f"FAULT: {text} ({worker.log})")
        for _ in range(FEWEST - len(self._fleet.there)):
            self._say(f"{self._fleet.start()} started, for there were too few")

    async def _finish(self) -> None:
        """Let all come to its end: what is frozen, the producer, the workers, then stop these."""
        for each in self._fleet.frozen:
            each.thaw()
        self._feed.close()
        with anyio.move_on_after(_DONE_SECONDS):
            await self._feed.done.wait()
        if not self._feed.done.is_set():
            self._fault("FAULT of the harness: not all could be sent")
        self._say(f"all is sent, {self._feed.numbered:,} traces; waiting until all is done")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._keep_looking)
            lags = await dump.until_done(self._broker.bootstrap, GROUP, dump.TRACES, PARTITIONS, _DONE_SECONDS)
            tasks.cancel_scope.cancel()
        if lags:
            self._fault(f"FAULT: not done after {_DONE_SECONDS:.0f} s, offsets left by partition: {lags}")
            for line in dump.lost_ends(self._broker.log):
                self._fault(f"Kafka itself has lost the end of a transaction: {line}")
        self._say("stopping the workers")
        for each in self._fleet.there:
            each.stop()
        with anyio.move_on_after(_LEAVE_SECONDS):
            while self._fleet.leaving:
                await anyio.sleep(0.1)
        for each in self._fleet.leaving:
            self._fault(f"FAULT: {each} did not end within {_LEAVE_SECONDS:.0f} s of SIGTERM ({each.log})")
            each.kill()
        for worker in self._fleet.all:
            if worker.number not in self._noted and worker.ended not in (0, -signal.SIGKILL, -signal.SIGTERM):
                self._fault(f"FAULT: {worker} ended with {worker.ended}: {worker.last_words()} ({worker.log})")

    async def _keep_looking(self) -> None:
        while True:
            self._look_after()
            await anyio.sleep(0.5)

    async def _read_up(self) -> None:
        """Let the reader come to the end, and stop it."""
        topics = [*dump.partitions(dump.UPDATES, PARTITIONS), *dump.partitions(dump.DELTAS, PARTITIONS)]
        with anyio.move_on_after(_READ_SECONDS) as scope:
            await self._reader.caught_up(await dump.watermarks(self._broker.bootstrap, topics))
        if scope.cancelled_caught:
            self._fault(f"FAULT: a read_committed reader does not come to the end in {_READ_SECONDS:.0f} s")
        self._reader.stopping = True

    async def _judge(self) -> None:
        data, outcome = self._broker.folder / "data", self._outcome
        self._say("judging")
        history = await dump.history(self._broker.bootstrap, data, PARTITIONS, self._fault)
        config = load(self._config)
        lineage = lineage_of(await cluster_id(config.kafka), GROUP, dump.TRACES)
        outcome.wrong += await findings(history, self._reader.sights, settings_of(config), lineage)
        there = {(wanted.prompt, wanted.id) for wanted in (due(each, PARTITIONS) for each in history.traces)}
        outcome.wrong += [
            f"{id} of {prompt} was acknowledged and is not in the topic"
            for prompt, id in sorted(self._feed.acknowledged - there)
        ]
        outcome.traces = len(there)
        outcome.versions = sum(map(len, history.made().values()))
        outcome.rejects = len(history.rejects)
        outcome.aborted = dump.aborted(data, PARTITIONS)
        if outcome.wrong:
            (self._folder / "wrong.txt").write_text("".join(f"{each}\n" for each in outcome.wrong))
            with (self._folder / "deltas.jsonl").open("wb") as file:
                for delta in history.deltas:
                    file.write(msgspec.json.encode(delta, enc_hook=repr) + b"\n")
