"""Written states: the bytes are those of a snapshot made anew, whatever state was written before."""

from __future__ import annotations

from random import Random

from operators.snapshot import dump, load
from operators.state import PromptState
from operators.values import Curation, Reflection, Trace
from operators.version import publish_rollback
from operators.wire import encode
from operators.writing import StateWriter
from tests.operators.scripted import Scripted, Shelf, at_random, learner, name_of, teaches, trace

LESSONS = ("never retry", "amounts are in cents", "look the order up first", "stop at 3")


async def states(seed: int) -> list[PromptState]:
    """A prompt's states, one a version, with votes, evidence, removals, supersessions, folds and a rollback."""
    rng, shelf = Random(seed), Shelf()

    def reflect(trace: Trace, seen: object) -> Reflection:
        taught = teaches(trace, ())
        votes = tuple(name_of(lesson) for lesson in rng.sample(LESSONS, 2))
        return Reflection(trace.id, trace.session, taught.insights, votes[:1], votes[1:])

    def curate(given: object, base: object) -> Curation:
        return at_random(rng, given, base)  # type: ignore[arg-type]

    traces = [trace(n, *rng.sample(LESSONS, rng.randrange(3)), session=f"s{n % 5}") for n in range(120)]
    async with learner(Scripted(curate, reflector=reflect), shelf, size=4, fold_every=7, fold_after=2) as learning:
        await learning.feed(traces[:60])
        await learning.drain(end=False)
        back = shelf.of()[5].state
        await learning.amend("p", lambda state: publish_rollback(state, back, learning._settings))
        await learning.feed(traces[60:])
        await learning.drain()
    return [published.state for published in shelf.of()]


async def test_each_state_after_the_one_before_is_written_as_made_anew() -> None:
    for seed in range(10):
        writer = StateWriter()
        for state in await states(seed):
            assert bytes(writer.snapshot(state)) == encode(dump(state))
            assert bytes(writer.snapshot(state)) == encode(dump(state))


async def test_any_state_may_follow_any_other() -> None:
    rng = Random(1)
    known = await states(1)
    known += [load(dump(state)) for state in rng.sample(known, 5)] + [PromptState("p")]
    writer = StateWriter()
    for _ in range(300):
        at = rng.randrange(len(known))
        for state in known[at : at + rng.randrange(4)]:
            assert bytes(writer.snapshot(state)) == encode(dump(state))
