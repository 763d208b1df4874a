"""Judging fates: each record of the topic of traces has exactly one, and the one that is due to it. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from hashlib import sha256

from stream.kafka import rejected
from stream.kafka.messages import Fates, Made
from tests.kafka.faults.history import History
from tests.kafka.faults.stored import Due, Fate, Stored, due

Given = dict[tuple[int, int], list[tuple[Fate, str, str]]]
"""By partition and offset: the fates of a record, each with the prompt and id that stand beside it."""


def wrong_fates(history: History) -> Iterator[str]:
    """Say which records have no fate, two, or a wrong one."""
    arrived = {record.place: record for record in history.traces}
    given: Given = defaultdict(list)
    yield from _deltas(history, given)
    yield from _rejects(history, given, arrived)
    for place in sorted(given.keys() - arrived.keys()):
        yield f"{_at(place)} has a fate, {given[place]}, and there is no such record"
    dues = {place: due(record, history.count) for place, record in arrived.items()}
    for place, wanted in sorted(dues.items()):
        yield from _one(place, wanted, given.get(place, []))
    yield from _first_is_learned(dues, given)


def _deltas(history: History, given: Given) -> Iterator[str]:
    for delta in history.deltas:
        record, where = delta.record, f"prompt-deltas/{delta.partition} offset {delta.offset}"
        if record is None:
            yield f"{where} is none of ours"
            continue
        if isinstance(record, Fates):
            if record.source != f"{history.topic}/{delta.partition}":
                yield f"{where} is about {record.source}"
            for offset, prompt, id in record.duplicates:
                given[delta.partition, offset].append(("duplicate", prompt, id))
            for offset in record.skipped:
                given[delta.partition, offset].append(("skipped", "", ""))
            for offset, prompt, id, _ in record.refused:
                given[delta.partition, offset].append(("refused", prompt, id))
            if record.lost:
                yield f"{where} says that {record.lost} are lost, and nothing expires here"
        elif isinstance(record, Made):
            if record.source != f"{history.topic}/{delta.partition}":
                yield f"{where} is learned from {record.source or 'nowhere'}"
            if len(record.offsets) != len(record.traces):
                yield f"{where} names {len(record.traces)} traces and {len(record.offsets)} offsets"
            rejected_ids = {id for id, _ in record.rejected}
            fate: Fate = "refused" if record.refused else "learned"
            for (id, _), offset in zip(record.traces, record.offsets, strict=False):
                if id not in rejected_ids:
                    given[delta.partition, offset].append((fate, record.prompt, id))


def _rejects(history: History, given: Given, arrived: dict[tuple[int, int], Stored]) -> Iterator[str]:
    for record in history.rejects:
        where = f"trace-rejects/{record.partition} offset {record.offset}"
        headers = [(name.decode(), content) for name, content in record.headers]
        try:
            was = rejected.decode(record.key, record.value, headers)
        except rejected.NotRejected as error:
            yield f"{where} is none of ours: {error}"
            continue
        place = was.partition, was.offset
        given[place].append(("rejected", "", ""))
        if was.topic != history.topic or was.partition != record.partition:
            yield f"{where} comes from {was.topic}/{was.partition}"
        if record.key is None and record.value is None:
            yield f"{where} has neither key nor value"
        if place in arrived and (differs := _differs(was, arrived[place])):
            yield f"{where} is not what {_at(place)} was: another {', '.join(differs)}"


def _differs(was: rejected.Rejected, record: Stored) -> list[str]:
    """In which parts a reject is not what was rejected, cut or whole."""
    headers = tuple((name.encode("utf-8", "surrogateescape"), content) for name, content in was.headers)
    whole = {
        "key": was.key == record.key,
        "value": was.value == record.value,
        "headers": headers == record.headers,
        "timestamp": was.timestamp == record.timestamp,
    }
    for part, kept, original in (("key", was.key, record.key), ("value", was.value, record.value)):
        cut = was.cut.get(part)
        if cut is not None and original is not None:
            whole[part] = (
                original.startswith(kept or b"")
                and len(kept or b"") > 0
                and (cut.bytes, cut.sha256) == (len(original), sha256(original).hexdigest())
            )
    return [part for part, same in whole.items() if not same]


def _one(place: tuple[int, int], wanted: Due, fates: list[tuple[Fate, str, str]]) -> Iterator[str]:
    what = f"{_at(place)} ({f'trace {wanted.id} of {wanted.prompt}' if wanted.fate is None else 'no trace'})"
    if not fates:
        yield f"{what} has no fate"
        return
    if len(fates) > 1:
        yield f"{what} has {len(fates)} fates: {', '.join(fate for fate, _, _ in fates)}"
    for fate, prompt, id in fates:
        right = (wanted.fate,) if wanted.fate is not None else ("learned", "duplicate")
        if fate not in right:
            yield f"{what} was {fate}"
        elif wanted.fate is None and (prompt, id) != (wanted.prompt, wanted.id):
            yield f"{what} was {fate} as trace {id} of {prompt}"


def _first_is_learned(dues: dict[tuple[int, int], Due], given: Given) -> Iterator[str]:
    """Of the records with one prompt and id the first is learned, and the others are its duplicates."""
    copies: dict[tuple[str, str], list[tuple[int, int]]] = defaultdict(list)
    for place, wanted in sorted(dues.items()):
        if wanted.fate is None:
            copies[wanted.prompt, wanted.id].append(place)
    for (prompt, id), places in copies.items():
        learned = [place for place in places if any(fate == "learned" for fate, _, _ in given.get(place, []))]
        if learned != places[:1]:
            shown = ", ".join(map(_at, learned)) or "nowhere"
            yield f"trace {id} of {prompt}, sent to {', '.join(map(_at, places))}, was learned at {shown}"


def _at(place: tuple[int, int]) -> str:
    return f"{place[0]}@{place[1]}"
