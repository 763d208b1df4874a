"""Judging versions: no gap and no fork, windows and traces in order, and updates and states that agree. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

import msgspec

from stream.kafka.messages import PARTITION_KEY, Made, decode_prompt_record
from tests.kafka.faults.history import Delta, History
from tests.kafka.faults.stored import home_of


def wrong_versions(history: History) -> Iterator[str]:
    """Say where versions have a gap, a fork, or do not agree with each other."""
    last: dict[str, int] = {}
    made = history.made()
    for prompt, versions in made.items():
        yield from _at_home("prompt-deltas", prompt, {each.partition for each, _ in versions}, history.count)
        yield from _consecutive("prompt-deltas", prompt, [record.version for _, record in versions])
        yield from _windows(prompt, versions)
        last[prompt] = max(record.version for _, record in versions)
    told: dict[str, list[int]] = defaultdict(list)
    partitions: dict[str, set[int]] = defaultdict(set)
    for update in history.updates:
        told[update.prompt].append(update.version)
        partitions[update.prompt].add(update.partition)
    for prompt, numbers in told.items():
        yield from _at_home("prompt-updates", prompt, partitions[prompt], history.count)
        yield from _consecutive("prompt-updates", prompt, numbers)
        if numbers[-1] != last.get(prompt):
            yield f"{prompt}: the newest update is version {numbers[-1]}, the newest delta {last.get(prompt)}"
    for prompt in sorted(last.keys() - told.keys()):
        yield f"{prompt}: {last[prompt]} versions in prompt-deltas and no update"
    yield from _states(history, last)


def _at_home(topic: str, prompt: str, partitions: set[int], count: int) -> Iterator[str]:
    if partitions != {home_of(prompt, count)}:
        yield f"{prompt}: at home in partition {home_of(prompt, count)}, and {topic} has it in {sorted(partitions)}"


def _consecutive(topic: str, prompt: str, numbers: list[int]) -> Iterator[str]:
    for before, number in zip([0, *numbers], numbers, strict=False):
        if number != before + 1:
            kind = "a gap" if number > before + 1 else "a fork"
            yield f"{prompt}: {kind} in {topic}, version {number} comes after version {before}"


def _windows(prompt: str, versions: list[tuple[Delta, Made]]) -> Iterator[str]:
    window = offset = -1
    for _, made in versions:
        wanted = max(window, 0) + (made.kind == "window")
        if made.window != wanted:
            yield f"{prompt}: version {made.version} is of window {made.window}, not {wanted}"
        window = made.window
        for each in made.offsets:
            if each <= offset:
                yield f"{prompt}: window {made.window} holds offset {each} after offset {offset}"
            offset = each


def _states(history: History, last: dict[str, int]) -> Iterator[str]:
    kept: dict[str, int] = {}
    for (partition, key), value in history.states.items():
        if key == PARTITION_KEY:
            continue
        try:
            snapshot = decode_prompt_record(value).snapshot
        except msgspec.MsgspecError as error:
            yield f"prompt-state/{partition} {key!r} cannot be read: {error}"
            continue
        if snapshot.prompt.encode() != key or home_of(snapshot.prompt, history.count) != partition:
            yield f"prompt-state/{partition} {key!r} is the state of {snapshot.prompt}"
        kept[snapshot.prompt] = snapshot.standings[-1].version
    for prompt in sorted(last.keys() | kept.keys()):
        if last.get(prompt) != kept.get(prompt):
            yield f"{prompt}: its state is of version {kept.get(prompt)}, its newest delta of {last.get(prompt)}"
