"""Intake: which records of a trace log are new, and what becomes of those that are not.

Each record of the log has exactly one fate here: fed to the learner, passed over because its window made its version
before a crash, a duplicate, a conflict (a known id with other content: the first wins), or rejected.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from operators.learner import Learner
from operators.values import Trace
from stream.config import Config
from stream.prompts import Prompts
from stream.records import Found
from stream.resume import Done
from stream.states import entries
from stream.store import Store


class Tally:
    """What a replay counted, for progress and for the end."""

    def __init__(self) -> None:
        self.learned = 0
        self.rejected = 0
        self.duplicates = 0
        self.conflicts = 0
        self.repaired = 0
        self.updates = 0
        self.skipped: list[tuple[str, str]] = []
        self.prompts: set[str] = set()


class Intake:
    """Feeds traces that are new to the learner.

    :param run: the number of the run.
    :param resumed: whether the run was begun before and killed.
    """

    def __init__(self, store: Store, learner: Learner, config: Config, tally: Tally, run: int, resumed: bool) -> None:
        self._store = store
        self._learner = learner
        self._prompts = Prompts(config.replay)
        self._tally = tally
        self._run = run
        self._resumed = resumed
        self._done: dict[str, Done] = {}
        self.under_way: dict[tuple[str, str], Found] = {}
        """Traces that were fed and have no version yet, by prompt and id."""
        self._published: dict[tuple[str, str], bytes] = {}  # what got its version since the store was asked

    def done(self, prompt: str) -> Done | None:
        """What a killed run had done of a prompt; None unless this run goes on with it."""
        if not self._resumed:
            return None
        done = self._done.get(prompt)
        if done is None:
            done = self._done[prompt] = Done(entries(self._store.prompt(prompt)), self._run)
            self._learner.resume(prompt, done.start_window)
        return done

    async def take(self, found: Sequence[Found]) -> None:
        """Give each trace its fate, in order."""
        prompts = [self._prompts.of(each.trace) for each in found]
        self._published.clear()
        known = self._known(found, prompts)
        batch: list[Trace] = []
        for each, prompt, digest in zip(found, prompts, known, strict=True):
            if digest is not None:
                self._repeat(each.digest == digest)
                done = self.done(prompt)
                if done is not None and done.is_next(each.trace.id):
                    await self._feed(batch)
                    await self._learner.pass_over(prompt, done.size)
                continue
            key = prompt, each.trace.id
            twin = self.under_way.get(key)
            first = self._published.get(key) if twin is None else twin.digest
            if first is not None:
                self._repeat(each.digest == first)
                continue
            if (done := self.done(prompt)) is not None and done.give_up():
                await self._feed(batch)  # first, for it may close the window that was passed over last
                # In another log than before the crash the bound may have closed more windows than there were.
                self._learner.resume(prompt, self._learner.lane(prompt).state.now.window)
                self._learner.begin_anew(prompt)
            self.under_way[key] = each
            batch.append(each.trace if each.trace.prompt == prompt else replace(each.trace, prompt=prompt))
        await self._feed(batch)

    def _known(self, found: Sequence[Found], prompts: Sequence[str]) -> list[bytes | None]:
        """The digest that the store has of each trace's id, looked up a prompt at a time."""
        places: dict[str, list[int]] = {}
        for at, prompt in enumerate(prompts):
            places.setdefault(prompt, []).append(at)
        self._tally.prompts.update(places)
        known: list[bytes | None] = [None] * len(found)
        for prompt, mine in places.items():
            digests = self._store.prompt(prompt).find([found[at].trace.id for at in mine])
            for at, digest in zip(mine, digests, strict=True):
                known[at] = digest
        return known

    async def _feed(self, batch: list[Trace]) -> None:
        if batch:
            await self._learner.feed(batch)
            batch.clear()

    def _repeat(self, same: bool) -> None:
        self._tally.duplicates += 1
        self._tally.conflicts += not same

    def published(self, prompt: str, ids: Iterable[str]) -> None:
        """Note that traces have their version."""
        for id in ids:
            self._published[prompt, id] = self.under_way.pop((prompt, id)).digest

    def digest(self, trace: Trace) -> str:
        """The content digest of a trace under way, in hex."""
        return self.under_way[trace.prompt, trace.id].digest.hex()
