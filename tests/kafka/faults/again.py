"""An undisturbed replay of the same windows by a learner in this process: every version must say what it says there."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import msgspec
from msgspec.structs import replace

from operators.entry import Entry
from operators.learner import Learner
from operators.modelfree import ModelFree
from operators.settings import Settings
from operators.snapshot import dump
from operators.values import Learned, Trace
from operators.version import Published
from operators.wire import encode
from stream.kafka.messages import Made, decode_prompt_record, ranges
from stream.sizes import RecordedSizes
from tests.kafka.faults.history import History, content_of
from tests.kafka.faults.stored import home_of

_trace = msgspec.json.Decoder(Trace).decode


async def otherwise(history: History, settings: Settings, lineage: str) -> AsyncIterator[str]:
    """Say which versions are not what an undisturbed replay of their windows makes.

    :param settings: that the service ran with.
    """
    values = {record.place: record.value for record in history.traces}
    contents: dict[tuple[str, int], bytes] = {}
    for prompt, versions in history.made().items():
        partition = home_of(prompt, history.count)
        entries = [made for _, made in versions]
        try:
            windows = [[_read(values[partition, at], prompt) for at in made.offsets] for made in entries]
        except (KeyError, msgspec.MsgspecError) as error:
            yield f"{prompt} cannot be learned again: {error!r}"
            continue
        again = await replayed(prompt, windows, settings, lineage)
        if len(again) != len(entries):
            yield f"{prompt}: {len(entries)} versions, and {len(again)} when it is learned again"
        for made, published in zip(entries, again, strict=False):
            if differs := _differs(made, published.entry):
                yield f"{prompt} version {made.version} is another when it is learned again: {', '.join(differs)}"
            learned = Learned(len(made.offsets), {made.source: ranges(made.offsets)} if made.offsets else {})
            contents[prompt, published.update.version] = content_of(replace(published.update, learned=learned))
        state = history.states.get((partition, prompt.encode()))
        if (
            state is not None
            and again
            and encode(decode_prompt_record(state).snapshot) != encode(dump(again[-1].state))
        ):
            yield f"{prompt}: its state is another when it is learned again"
    for update in history.updates:
        if contents.get((update.prompt, update.version), update.content) != update.content:
            yield f"{update.prompt}: the update of version {update.version} says other things when it is learned again"


async def replayed(prompt: str, windows: list[list[Trace]], settings: Settings, lineage: str) -> list[Published]:
    """Learn a prompt from these windows, one after another, with nothing in between."""
    found: list[Published] = []

    async def sink(published: Published) -> None:
        found.append(published)

    sizes = RecordedSizes({prompt: [len(window) for window in windows]}, 1)
    async with Learner(
        ModelFree(), sink, sizes=sizes, clock=lambda: 0.0, settings=settings, lineage=lineage, direct=True
    ) as learner:
        for window in windows:
            await learner.feed(window)
        await learner.drain(end=False)
    return found


def _state(value: bytes) -> bytes:
    return encode(decode_prompt_record(value).snapshot)


def _read(value: bytes | None, prompt: str) -> Trace:
    trace = _trace(value or b"")
    return trace if trace.prompt else replace(trace, prompt=prompt)


def _differs(made: Made, entry: Entry) -> list[str]:
    """The fields that differ, but for how long it took and what hashes a log keeps of its traces."""
    return [name for name in Entry.__struct_fields__ if _bare(made, name) != _bare(entry, name)]


def _bare(entry: Entry, name: str) -> Any:
    value = getattr(entry, name)
    if name == "stats":
        return None
    return [id for id, _ in value] if name == "traces" else encode(value)
