"""Replay: trace logs in, prompt versions out, resumable and deterministic.

There is no clock in it but the one that measures delays for the controller: the same log, seed, sizes and settings give
the same bytes at any speed, and so does a run that was killed and resumed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path

import structlog
from msgspec.structs import replace
from structlog.contextvars import bound_contextvars

from operators.controller import BatchSizes
from operators.learner import Learner
from operators.method import Method
from operators.modelfree import ModelFree
from operators.seen import seen
from operators.settings import Settings
from operators.sizes import FixedSize, Sizes
from operators.state import PromptState, Standing
from operators.values import Bullet, Trace
from operators.version import Published
from operators.wire import message
from stream.config import Config, settings
from stream.controllerfile import Controller, keep_controller, kept_controller
from stream.intake import Intake, Tally
from stream.records import Bad, Found, Record, Skipped, Source
from stream.rejects import RejectRecord
from stream.runs import RunSettings, begin, finish, last, note
from stream.sizes import AutoSizes, RecordedSizes, ResumedSizes
from stream.states import commit, entries, newest, state_at, update_of
from stream.store import Store
from stream.storeerrors import UnknownVersion

log = structlog.get_logger()

_KEEP_EVERY = 50  # versions after which what the controller knows is kept; a kill may cost it the rest


class TooManyRejects(Exception):
    """So many lines were no traces that the input is probably not what it was taken for."""


def settings_of(config: Config) -> Settings:
    """The operators' settings for a replay: windows close by size, by the bound or at the end, never by time."""
    return settings(config, seed=config.replay.seed, open_traces=config.learning.open_traces)


def recorded_sizes(store: Store, before: int | None = None) -> dict[str, list[int]]:
    """How many traces each window of each prompt closed with, in order.

    :param before: leave out this run and later ones.
    """
    return {
        name: [
            entry.batch_size
            for entry in entries(store.prompt(name))
            if entry.kind == "window" and entry.traces and (before is None or entry.run < before)
        ]
        for name in store.prompts()
    }


class Replay:
    """One replay into a store that is open for writing.

    :param records: the trace log; chunking changes nothing.
    :param recorded: window sizes to use instead of the configured ones, from :func:`recorded_sizes`.
    :param go_on: learn on though the store was learned with other settings.
    :param progress: called after every chunk.
    """

    def __init__(
        self,
        store: Store,
        records: Source,
        config: Config,
        *,
        recorded: dict[str, list[int]] | None = None,
        go_on: bool = False,
        method: Method | None = None,
        clock: Callable[[], float] = time.monotonic,
        progress: Callable[[Tally], None] = lambda tally: None,
    ) -> None:
        self.tally = Tally()
        self.settings = settings_of(config)
        self._store = store
        self._records = records
        self._config = config
        self._method = method or ModelFree()
        self._clock = clock
        self._progress = progress
        self._lines = self._bad = self._bad_run = 0
        self._started: dict[str, Standing] = {}
        kept = kept_controller(store)
        self.controller = BatchSizes(
            config.controller.candidates,
            windows_per_size=config.controller.windows_per_size,
            share=config.controller.tau,
            lag=2 * (1 + self.settings.max_staleness),
            state=kept.sizes,
        )
        self._clamps = kept.prompts
        for prompt, overload in kept.prompts.items():
            self.controller.restore(prompt, overload)
        size = config.replay.batch_size
        run = RunSettings(
            seed=self.settings.seed,
            batch_size="auto" if recorded is not None else str(size),
            method=self._method.name,
            max_staleness=self.settings.max_staleness,
            copies=self.settings.copies,
            support_traces=self.settings.support_traces,
            support_sessions=self.settings.support_sessions,
            token_budget=self.settings.token_budget,
            fan_in=self.settings.fan_in,
            fold_every=self.settings.fold_every,
            open_traces=self.settings.open_traces,
            counters=self.settings.counters,
        )
        self._run, self.resumed = begin(store, run, go_on=go_on)
        self._noted = last(store) == self._run
        self.sizes: Sizes
        if recorded is not None:
            # What earlier runs closed here is behind: the recorded windows are numbered as ours are.
            past = {prompt: len(sizes) for prompt, sizes in recorded_sizes(store, self._run.number).items()}
            left = {prompt: sizes[past.get(prompt, 0) :] for prompt, sizes in recorded.items()}
            self.sizes = RecordedSizes(left, config.controller.candidates[0])
        else:
            self.sizes = AutoSizes(self.controller) if size == "auto" else FixedSize(int(size))

    @property
    def store_path(self) -> Path:
        """Where the store is."""
        return self._store.path

    async def run(self) -> Tally:
        """Learn from all of the log that is new.

        :raises TooManyRejects: past the configured limits.
        """
        try:
            return await self._learn()
        except BaseExceptionGroup as group:  # the learner's tasks make one of whatever is raised among them
            error: BaseException = group
            while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
                error = error.exceptions[0]
            raise error from None

    async def _learn(self) -> Tally:
        intake: Intake
        learner = Learner(
            self._method,
            self._publish,
            sizes=ResumedSizes(self.sizes, self._done_size) if self.resumed else self.sizes,
            clock=self._clock,
            settings=self.settings,
            load=lambda prompt: newest(self._store.prompt(prompt)),
            seen=self._seen,
            digest=lambda trace: intake.digest(trace),
            lineage=self._store.lineage,
            direct=True,
        )
        intake = self._intake = Intake(self._store, learner, self._config, self.tally, self._run.number, self.resumed)
        async with learner:
            for chunk in self._records:
                found = self._sort(chunk)
                if found:
                    await intake.take(found)
                self._progress(self.tally)
            await learner.drain()
        self._keep_controller()
        if self._noted:
            finish(self._store, self._run)
        return self.tally

    def _sort(self, chunk: Sequence[Record]) -> list[Found]:
        found: list[Found] = []
        for record in chunk:
            if isinstance(record, Skipped):
                self.tally.skipped.append((record.file, record.reason))
                log.info("file skipped", file=record.file, reason=record.reason)
                continue
            self._lines += 1
            if isinstance(record, Found):
                found.append(record)
                self.tally.repaired += bool(record.repaired)
                self._bad_run = 0
                continue
            self._reject(record)
        return found

    def _reject(self, bad: Bad) -> None:
        self.tally.rejected += 1
        self._bad += 1
        self._bad_run += 1
        self._store.rejects.add(RejectRecord(bad.file, bad.line, bad.reason, bad.raw))
        log.debug("line rejected", file=bad.file, line=bad.line, reason=bad.reason)
        limits = self._config.rejects
        too_many = self._lines >= limits.after and self._bad > limits.share * self._lines
        if too_many or self._bad_run >= limits.run:
            self._store.rejects.flush()
            which = (
                f"{self._bad_run} bad lines in a row"
                if self._bad_run >= limits.run
                else f"{self._bad} of {self._lines} lines are bad"
            )
            raise TooManyRejects(
                f"{which}, the last at {bad.file}:{bad.line} ({bad.reason}). Versions made so far are kept, the bad "
                f"lines are in {self._store.path / 'rejects.jsonl'}. Is this a trace log? If so, raise the limits "
                "under [rejects] in the configuration"
            )

    def _keep_controller(self) -> None:
        if isinstance(self.sizes, AutoSizes):
            met = {prompt: self.controller.overload(prompt) for prompt in self.tally.prompts}
            prompts = dict(sorted({**self._clamps, **met}.items()))
            keep_controller(self._store, Controller(self.controller.export(), prompts))

    def _done_size(self, prompt: str, number: int) -> int | None:
        done = self._intake.done(prompt)
        return None if done is None else done.size(number)

    def _seen(self, trace: Trace, state: PromptState) -> Sequence[Bullet]:
        """What a trace's agent had read, of what was known when the run began: so it is the same at any speed."""
        known = self._started.get(state.prompt)
        if known is not None and not known.version:
            return ()
        prompt = self._store.prompt(state.prompt)
        if known is None:
            done = self._intake.done(state.prompt)
            if done is None or done.start_version == prompt.version:
                known = state.now
            else:
                known = state_at(prompt, done.start_version).now
            self._started[state.prompt] = known

        def bullets_of(version: int) -> Sequence[Bullet]:
            try:
                return update_of(prompt, version).bullets if version <= known.version else ()
            except UnknownVersion:
                return ()

        return seen(trace, known, self._store.lineage, bullets_of)

    async def _publish(self, published: Published) -> None:
        """Make a version durable, then tell what became of its traces."""
        if not self._noted:
            note(self._store, self._run)
            self._noted = True
        rejected = tuple((id, _writable(reason)) for id, reason in published.entry.rejected)
        entry = replace(published.entry, run=self._run.number, rejected=rejected)
        prompt = self._store.prompt(entry.prompt)
        under_way = self._intake.under_way
        with bound_contextvars(prompt=entry.prompt, window=entry.window, version=entry.version):
            for id, reason in entry.rejected:  # before the commit, and kept once however often it is tried
                found = under_way[entry.prompt, id]
                self._store.rejects.add(RejectRecord(found.file, found.line, reason, message(found.trace)))
            if entry.rejected:
                self._store.rejects.flush()
            commit(prompt, Published(published.state, published.update, entry))
            log.info("version published", batch_size=entry.batch_size, changed=entry.changed)
        self._intake.published(entry.prompt, (id for id, _ in entry.traces))
        self.tally.updates += 1
        if self.tally.updates % _KEEP_EVERY == 0:
            self._keep_controller()
        self.tally.learned += len(entry.traces) - len(entry.rejected)
        self.tally.rejected += len(entry.rejected)


def _writable(text: str) -> str:
    """A text that JSON can hold: what an error quotes may be no whole character."""
    return text.encode("utf-8", "replace").decode()
