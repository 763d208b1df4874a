"""Votes on the bullets of versions that a state holds no more: looked up once, before the trace is fed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

from aiokafka.structs import TopicPartition
from msgspec.structs import replace

from operators.learn import Learning
from operators.settings import Settings
from operators.state import PromptState, Standing
from operators.values import Bullet, Trace
from operators.version import SNAPSHOT_EVERY, Published, publish_rollback, publish_window
from stream.kafka.history import Finder, bullets_of
from stream.kafka.messages import encode_delta, made_of
from stream.kafka.past import Past, Wanted
from stream.kafka.service import Service, lineage_of
from stream.kafka.topics import cluster_id
from tests.kafka.serving import configured, fates, made, read_all, send, serving, trace, until, updates, versions
from tests.operators.test_version import taught

PROMPT = "support/refunds"
OLD = (Bullet("a-1", content="old", bullet="1"),)


class Log:
    """Older versions, and how often each was looked up."""

    def __init__(self, there: Mapping[tuple[str, int], Sequence[Bullet]]) -> None:
        self.there = there
        self.asked: list[tuple[str, int]] = []

    async def find(self, wanted: Wanted) -> Mapping[tuple[str, int], Sequence[Bullet]]:
        pairs = [(prompt, version) for prompt, each in sorted(wanted.items()) for version in sorted(each)]
        self.asked += pairs
        return {pair: self.there[pair] for pair in pairs if pair in self.there}


def lanes(newest: int, held: Sequence[Bullet] = ()) -> Any:
    """Every prompt is at this version, and holds no other."""
    state = replace(PromptState("p"), now=Standing(newest, newest, bullets=tuple(held)))
    return SimpleNamespace(lane=lambda prompt: SimpleNamespace(state=state))


def names(version: int | None, **fields: Any) -> Trace:
    return Trace(**{"id": "t", "prompt": "p", "version": version, "lineage": "ours", **fields})


async def test_each_version_is_looked_up_once_be_it_there_or_not() -> None:
    log = Log({("p", 2): OLD})
    past = Past("ours", log.find)
    for _ in range(3):
        if wanted := past.missing([names(2), names(3), names(2)], lanes(9)):
            await past.find(wanted)
        assert past.bullets("p", 2) == OLD
        assert past.bullets("p", 3) == ()
    assert log.asked == [("p", 2), ("p", 3)]


def test_what_needs_no_version_is_not_looked_up() -> None:
    past = Past("ours", Log({}).find)
    for each in (names(None), names(2, lineage="theirs"), names(2, lineage=None), names(2, bullets=()), names(10)):
        assert not past.missing([each], lanes(9)), each
    assert not past.missing([names(0)], lanes(9))


def test_what_a_state_holds_is_kept_for_when_it_has_moved_on() -> None:
    past = Past("ours", Log({}).find)
    assert not past.missing([names(9)], lanes(9, OLD))
    for _ in range(2):
        assert past.bullets("p", 9) == OLD
        assert not past.missing([names(9)], lanes(12))


def test_what_was_not_needed_for_longest_is_forgotten() -> None:
    past = Past("ours", Log({}).find, kept=2)
    past.put("p", 1, OLD)
    past.put("p", 2, OLD)
    assert not past.missing([names(1)], lanes(9))
    past.put("p", 3, OLD)
    past.put("p", 3, OLD)
    assert past.missing([names(1), names(2), names(3)], lanes(9)) == {"p": {2}}
    assert past.bullets("p", 1) == past.bullets("p", 3) == OLD


async def test_all_that_a_chunk_names_is_there_however_little_is_kept() -> None:
    past = Past("ours", Log({("p", version): OLD * 5 for version in range(1, 9)}).find, kept=7)
    traces = [names(version) for version in range(1, 9)]
    await past.find(past.missing(traces, lanes(9)))
    assert [past.bullets("p", version) for version in range(1, 9)] == [OLD * 5] * 8
    assert past.missing(traces, lanes(9)) == {"p": set(range(1, 8))}


def chain(count: int) -> list[Published]:
    """Versions of a prompt, one bullet more each, with a rollback to version 2 behind them and one more window."""
    state, found, settings = PromptState("p"), [], Settings()
    second = state
    for number in range(1, count + 1):
        learning = Learning(None, taught(f"lesson {number}", by=f"t{number}"))
        found.append(publish_window(state, number, learning, state.now, settings, traces=((f"t{number}", ""),)))
        state = found[-1].state
        second = state if number == 2 else second
    found.append(publish_rollback(state, second, settings))
    state = found[-1].state
    found.append(publish_window(state, count + 1, Learning(None, taught("last", by="z")), state.now, settings))
    return found


def record(published: Published, key: bytes | None = b"p") -> Any:
    return SimpleNamespace(key=key, value=encode_delta(made_of(published.entry, "traces/0", ())))


def test_versions_are_found_among_all_that_stands_in_the_deltas() -> None:
    made = chain(SNAPSHOT_EVERY + 3)
    every = range(1, len(made) + 1)
    finder = Finder({"p": every, "q": [1]})
    for published in made:
        finder.take(record(published))
        finder.take(record(published, b"other"))
        finder.take(record(published, None))
    assert {version: finder.found["p", version] for version in every} == {
        each.update.version: each.update.bullets for each in made
    }
    # From the middle on, what follows a snapshot or a rollback is there, and nothing before.
    late = Finder({"p": every})
    for published in made[10:]:
        late.take(record(published))
    assert sorted(version for _, version in late.found) == list(range(SNAPSHOT_EVERY, len(made) + 1))


def test_a_gap_gives_nothing_until_a_snapshot() -> None:
    made = chain(SNAPSHOT_EVERY)
    finder = Finder({"p": range(1, 100)})
    for published in (*made[:5], *made[6:]):
        finder.take(record(published))
    assert sorted(version for _, version in finder.found) == [1, 2, 3, 4, 5, *range(SNAPSHOT_EVERY, len(made) + 1)]


async def test_an_agent_that_had_read_an_old_version_votes_on_its_bullets(kafka: str, unique: str) -> None:
    config = configured(kafka, unique, batch_size=2)
    await made(config)
    lineage = lineage_of(await cluster_id(config.kafka), config.kafka.group, config.topics.traces)
    await send(config, [trace(number, PROMPT) for number in range(24)])
    async with serving(config) as service:
        await until(lambda: service.tally.versions >= 12)
    first, newest = (await updates(config))[0], (await updates(config))[-1]
    old = {bullet.bullet for bullet in first.bullets}
    assert old
    assert old < {bullet.bullet for bullet in newest.bullets}

    # The same errors again: the second names a version that there is not.
    again = [trace(number, PROMPT, version=version, lineage=lineage) for number, version in ((700, 1), (708, 99))]
    await send(config, again)
    # Another process, which has published none of them.
    async with serving(config) as service:
        await until(lambda: service.tally.versions >= 1)
    last = (await versions(config))[-1]
    assert {vote.trace for vote in last.delta.votes} == {"t-000700"}
    assert {vote.bullet for vote in last.delta.votes} <= old
    assert set(map(tuple, (await fates(config)).values())) == {("learned",)}
    # The same, read from the end in ever longer stretches: all that anyone may ask for.
    async with Service(config)._clients() as (shared, _):
        deltas = TopicPartition(config.topics.deltas, 0)
        found = await bullets_of(shared.reads, deltas, {PROMPT: set(range(1, 20))})
    assert {version: bullets for (_, version), bullets in found.items()} == {
        each.version: each.bullets for each in await updates(config)
    }
    assert await read_all(config, config.topics.rejects) == []
