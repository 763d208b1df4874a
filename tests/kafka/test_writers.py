"""States are written as they stand, by writers of which only so many are kept."""

from __future__ import annotations

from operators.snapshot import dump
from operators.wire import encode
from stream.kafka.writers import Writers
from tests.operators.scripted import Scripted, learn_all, trace


async def test_states_of_busy_and_of_forgotten_prompts_are_written_alike() -> None:
    names = ("a", "b", "c")
    traces = [trace(at, f"lesson {at % 7}", prompt=names[at % 3]) for at in range(90)]
    shelf = await learn_all(Scripted(), traces, size=2)
    assert len(shelf.versions) >= 45
    whole = len(encode(dump(shelf.versions[-1].state)))
    for limit in (0, whole, 100 * whole):
        writers = Writers(limit)
        for published in shelf.versions:
            assert bytes(writers.snapshot(published.state)) == encode(dump(published.state))
        kept = writers.kept
        assert kept <= limit
        assert bool(kept) == bool(limit >= whole)
