"""The judge of the fault suite finds each kind of fault in a history that has it, and none in one that has none."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from struct import pack

import pytest
from msgspec.structs import replace

from operators.settings import Settings
from operators.snapshot import dump
from operators.values import Learned, Trace
from operators.wire import encode
from stream.kafka import rejected
from stream.kafka.messages import Fates, Made, PromptRecord, decode_prompt_record, encode_delta, made_of, ranges
from stream.readers import own
from tests.kafka.faults.again import replayed
from tests.kafka.faults.history import History, delta, newest, told
from tests.kafka.faults.segments import read_partition
from tests.kafka.faults.steady import Sight
from tests.kafka.faults.stored import Stored, due, home_of
from tests.kafka.faults.verdict import findings
from tests.kafka.raw import Raw, batch
from tests.stream.logs import Log

COUNT, TOPIC, LINEAGE, SETTINGS = 2, "traces", "ours", Settings(seed=3)
LOG = Log(count=150, prompts=4)


def arrived() -> list[Stored]:
    """Traces, two of them twice, and records that are none."""
    written: list[list[tuple[bytes | None, bytes | None]]] = [[] for _ in range(COUNT)]
    for number in range(LOG.count):
        prompt = LOG.prompt(number)
        written[home_of(prompt, COUNT)].append((prompt.encode(), LOG.line(number)))
        if number in (50, 90):
            written[home_of(prompt, COUNT)].append((prompt.encode(), LOG.line(number, "Dispute")))
    foreign = LOG.line(0)
    written[1 - home_of(LOG.prompt(0), COUNT)].append((None, foreign))
    for partition in written:
        partition[20:20] = [(b"\xff", b"{no JSON"), (b"k", None), (None, None), (b"k", b"[]")]
    return [
        Stored(partition, offset, key, value, ((b"h\xff", b"v"),), 7)
        for partition, records in enumerate(written)
        for offset, (key, value) in enumerate(records)
    ]


async def good() -> tuple[History, list[Sight]]:
    """What the service leaves of that, were it undisturbed."""
    history = History(COUNT, TOPIC, arrived())
    taken: dict[str, dict[str, tuple[int, Trace]]] = {}
    for record in history.traces:
        wanted = due(record, COUNT)
        at = record.partition
        if wanted.fate == "rejected":
            was = rejected.Rejected(
                topic=TOPIC, partition=at, offset=record.offset, timestamp=record.timestamp, reason="it is bad",
                key=record.key, value=record.value, headers=(("h\udcff", b"v"),),
            )  # fmt: skip
            made = rejected.encode(was, 1 << 20)
            headers = tuple((name.encode(), content) for name, content in made.headers)
            history.rejects.append(Stored(at, len(history.rejects), made.key, made.value, headers))
        elif wanted.fate == "skipped":
            put(history, at, Fates(source=f"{TOPIC}/{at}", skipped=(record.offset,)))
        elif wanted.id in taken.setdefault(wanted.prompt, {}):
            put(history, at, Fates(source=f"{TOPIC}/{at}", duplicates=((record.offset, wanted.prompt, wanted.id),)))
        else:
            trace = own.fast(record.value or b"")
            assert trace is not None
            taken[wanted.prompt][wanted.id] = record.offset, trace
    states: list[Stored] = []
    for prompt, known in taken.items():
        partition, source = home_of(prompt, COUNT), f"{TOPIC}/{home_of(prompt, COUNT)}"
        traces = list(known.values())
        windows = [traces[at : at + 8] for at in range(0, len(traces), 8)]
        again = await replayed(prompt, [[trace for _, trace in window] for window in windows], SETTINGS, LINEAGE)
        for window, published in zip(windows, again, strict=True):
            offsets = [offset for offset, _ in window]
            put(history, partition, made_of(published.entry, source, offsets))
            update = replace(published.update, learned=Learned(len(offsets), {source: ranges(offsets)}))
            history.updates.append(told(Stored(partition, len(history.updates), prompt.encode(), encode(update))))
            kept = PromptRecord(snapshot=dump(published.state), lineage=LINEAGE)
            states.append(Stored(partition, len(states), prompt.encode(), encode(kept)))
    history.states = newest(states)
    return history, seen(history)


def put(history: History, partition: int, record: Fates | Made) -> None:
    history.deltas.append(delta(Stored(partition, len(history.deltas), None, encode_delta(record))))


def seen(history: History) -> list[Sight]:
    sights = [
        Sight("prompt-updates", each.partition, each.offset, each.prompt, each.version, each.raw)
        for each in history.updates
    ]
    for each in history.deltas:
        made = each.record
        prompt, version = (made.prompt, made.version) if isinstance(made, Made) else ("", 0)
        sights.append(Sight("prompt-deltas", each.partition, each.offset, prompt, version, each.raw))
    return sights


def versions(history: History) -> list[int]:
    """Where among the deltas the versions of the first prompt are."""
    prompt = LOG.prompt(0)
    return [
        at for at, each in enumerate(history.deltas) if isinstance(each.record, Made) and each.record.prompt == prompt
    ]


def change(history: History, at: int, **fields: object) -> None:
    """Make a version's delta say something else."""
    each = history.deltas[at]
    assert isinstance(each.record, Made)
    history.deltas[at] = replace(each, record=replace(each.record, **fields))


def made(history: History, at: int) -> Made:
    record = history.deltas[at].record
    assert isinstance(record, Made)
    return record


def missing_trace(history: History, sights: list[Sight]) -> None:
    at = versions(history)[1]
    one = made(history, at)
    change(history, at, traces=one.traces[1:], offsets=one.offsets[1:])


def trace_never_told(history: History, sights: list[Sight]) -> None:
    last = history.traces[-1]
    prompt = next(LOG.prompt(n) for n in range(LOG.count) if home_of(LOG.prompt(n), COUNT) == last.partition)
    value = json.dumps({"id": "new", "prompt": prompt, "steps": [{"content": "x"}]}).encode()
    history.traces.append(Stored(last.partition, last.offset + 1, None, value))


def two_fates(history: History, sights: list[Sight]) -> None:
    one = made(history, versions(history)[1])
    partition = home_of(one.prompt, COUNT)
    put(history, partition, Fates(source=one.source, duplicates=((one.offsets[0], one.prompt, one.traces[0][0]),)))


def learned_twice(history: History, sights: list[Sight]) -> None:
    """A stale window, published once more by a zombie as the version after."""
    at = versions(history)[-1]
    one = made(history, at)
    stale = made(history, versions(history)[1])
    put(history, home_of(one.prompt, COUNT), replace(stale, version=one.version + 1, window=one.window + 1))


def duplicate_learned(history: History, sights: list[Sight]) -> None:
    at = next(at for at, each in enumerate(history.deltas) if isinstance(each.record, Fates) and each.record.duplicates)
    one = history.deltas[at]
    assert isinstance(one.record, Fates)
    ((offset, _, id),) = one.record.duplicates
    history.deltas[at] = replace(one, record=replace(one.record, duplicates=()))
    last = next(at for at in versions(history)[::-1] if home_of(made(history, at).prompt, COUNT) == one.partition)
    old = made(history, last)
    change(history, last, traces=(*old.traces, (id, "")), offsets=(*old.offsets, offset))


def fork(history: History, sights: list[Sight]) -> None:
    at = versions(history)[2]
    put(history, history.deltas[at].partition, replace(made(history, at), offsets=(), traces=()))


def gap(history: History, sights: list[Sight]) -> None:
    del history.deltas[versions(history)[2]]


def window_skipped(history: History, sights: list[Sight]) -> None:
    for at in versions(history)[2:]:
        change(history, at, window=made(history, at).window + 1)


def out_of_order(history: History, sights: list[Sight]) -> None:
    at = versions(history)[2]
    change(history, at, offsets=made(history, at).offsets[::-1], traces=made(history, at).traces[::-1])


def stranger(history: History, sights: list[Sight]) -> None:
    at = versions(history)[0]
    history.deltas[at] = replace(history.deltas[at], partition=1 - history.deltas[at].partition)


def not_ours(history: History, sights: list[Sight]) -> None:
    history.deltas.append(delta(Stored(0, 10_000, b"k", b"not JSON")))


def update_behind(history: History, sights: list[Sight]) -> None:
    history.updates = [each for each in history.updates if each.prompt != LOG.prompt(0)] + [
        each for each in history.updates if each.prompt == LOG.prompt(0)
    ][:-1]


def update_of_another(history: History, sights: list[Sight]) -> None:
    at = next(at for at, each in enumerate(history.updates) if each.prompt == LOG.prompt(0) and each.version == 3)
    history.updates[at] = replace(history.updates[at], content=b"other")


def state_behind(history: History, sights: list[Sight]) -> None:
    place = home_of(LOG.prompt(0), COUNT), LOG.prompt(0).encode()
    del history.states[place]


def learned_otherwise(history: History, sights: list[Sight]) -> None:
    at = versions(history)[2]
    change(history, at, delta=made(history, versions(history)[1]).delta)


def other_base(history: History, sights: list[Sight]) -> None:
    change(history, versions(history)[3], base=3)


def reject_missing(history: History, sights: list[Sight]) -> None:
    history.rejects.pop()


def reject_twice(history: History, sights: list[Sight]) -> None:
    history.rejects.append(history.rejects[0])


def reject_of_other_bytes(history: History, sights: list[Sight]) -> None:
    history.rejects[0] = history.rejects[0]._replace(value=b"{other JSON")


def good_rejected(history: History, sights: list[Sight]) -> None:
    offset = made(history, versions(history)[0]).offsets[0]
    change(history, versions(history)[0], rejected=((made(history, versions(history)[0]).traces[0][0], "why"),))
    headers = dict(history.rejects[0].headers) | {b"tracecomb-offset": str(offset).encode()}
    history.rejects.append(history.rejects[0]._replace(headers=tuple(headers.items())))


def lost(history: History, sights: list[Sight]) -> None:
    put(history, 0, Fates(source=f"{TOPIC}/0", lost=((0, 3),)))


def vanished(history: History, sights: list[Sight]) -> None:
    sights.append(Sight("prompt-updates", 0, 10_000, LOG.prompt(0), 10_000, b""))


def changed(history: History, sights: list[Sight]) -> None:
    sights[3] = sights[3]._replace(raw=b"other")


def unseen(history: History, sights: list[Sight]) -> None:
    sights.pop()


FAULTS: dict[Callable[[History, list[Sight]], None], str] = {
    missing_trace: "has no fate",
    trace_never_told: "has no fate",
    two_fates: "has 2 fates: ",
    learned_twice: "has 2 fates: learned, learned",
    duplicate_learned: "was learned at",
    fork: "a fork in prompt-deltas",
    gap: "a gap in prompt-deltas",
    window_skipped: "is of window 4, not 3",
    out_of_order: "after offset",
    stranger: "at home in partition",
    not_ours: "is none of ours",
    update_behind: "the newest update is version",
    update_of_another: "the update of version 3 says other things",
    state_behind: "its state is of version None",
    learned_otherwise: "version 3 is another when it is learned again: delta",
    other_base: "version 4 is another when it is learned again: base",
    reject_missing: "has no fate",
    reject_twice: "has 2 fates: rejected, rejected",
    reject_of_other_bytes: "another value",
    good_rejected: "was rejected",
    lost: "are lost",
    vanished: "it is not there",
    changed: "it has other bytes now",
    unseen: "a reader never saw",
}


async def test_nothing_is_found_where_nothing_is_wrong() -> None:
    history, sights = await good()
    assert len(history.made()) == LOG.prompts
    assert sum(isinstance(each.record, Fates) for each in history.deltas) == 4
    assert len(history.rejects) == 7
    assert await findings(history, sights, SETTINGS, LINEAGE) == []


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
async def test_fault_is_found(fault: Callable[[History, list[Sight]], None]) -> None:
    history, sights = await good()
    fault(history, sights)
    found = await findings(history, sights, SETTINGS, LINEAGE)
    assert any(FAULTS[fault] in each for each in found), found


async def test_a_state_that_says_other_things_is_found() -> None:
    history, sights = await good()
    place = home_of(LOG.prompt(0), COUNT), LOG.prompt(0).encode()
    record = decode_prompt_record(history.states[place])
    other = replace(record, snapshot=replace(record.snapshot, counter=record.snapshot.counter + 1))
    history.states[place] = encode(other)
    assert await findings(history, sights, SETTINGS, LINEAGE) == [
        f"{LOG.prompt(0)}: its state is another when it is learned again"
    ]


@pytest.mark.parametrize("codec", range(5))
def test_what_is_on_the_disk_is_read(tmp_path: Path, codec: int) -> None:
    written = [
        Raw(None, None, [(b"\xff", None)], 2**62),
        Raw(b"k", b"v" * 200, [], 5),
        Raw(b"\xff", b"", [(b"h", b"")], 6),
    ]
    ends = [batch([Raw(pack(">hh", 0, kind), b"")], base=5 + kind, flags=48, producer=1) for kind in (0, 1)]
    folder = tmp_path / f"{TOPIC}-3"
    folder.mkdir()
    (folder / "00000000000000000000.log").write_bytes(batch(written[:2], codec=codec, base=1))
    cut = batch(written, base=20)[:-1]
    (folder / "00000000000000000003.log").write_bytes(batch(written[2:], codec=codec, base=4) + b"".join(ends) + cut)
    found = read_partition(tmp_path, TOPIC, 3)
    assert found.records == [
        Stored(3, offset, raw.key, raw.value, tuple(raw.headers), raw.timestamp or 0)
        for offset, raw in zip((1, 2, 4), written, strict=True)
    ]
    assert (found.aborted, found.committed) == (1, 1)
