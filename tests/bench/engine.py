"""The engine: traces a second through window, reflect, shuffle, curate, scan and apply on one core, nothing written.

The reflector costs nothing worth naming: one vote a trace, one insight in ten, out of 20 lessons a prompt. Traces are
decoded before, 1 kB each, 100 prompts, windows of 50, as they come from a topic: in chunks of mixed prompts.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Sequence
from random import Random

import anyio
import msgspec
from msgspec import Struct

from operators import (
    EMPTY,
    Bullet,
    Curation,
    Delta,
    Evidence,
    FixedSize,
    Given,
    Insight,
    Learner,
    Playbook,
    Published,
    Reflection,
    Step,
    Text,
    Trace,
    Vote,
    Window,
    Windows,
    apply,
    groups,
    identity,
    merge,
    scan,
    shown,
    union,
    votes_of,
    window_seed,
)

PROMPTS, LESSONS, WINDOW, CHUNK = 100, 20, 50, 1_000


class Engine(Struct, frozen=True):
    """CPU seconds and rates of one run; ``raw`` is a bare loop over the same chunks that only groups by prompt."""

    traces: int
    seconds: float
    raw_seconds: float

    @property
    def rate(self) -> float:
        return self.traces / self.seconds


class ZeroCost:
    """Reflections made beforehand: what is measured is the operators."""

    name = "zero-cost"
    reduces = False

    def __init__(self, reflections: dict[str, Reflection]) -> None:
        self._of = reflections

    def reflect(self, trace: Trace, seen: Sequence[Bullet]) -> Reflection:
        return self._of[trace.id]

    def curate(self, given: Sequence[Given], base: Sequence[Bullet]) -> Curation:
        return union(given)

    def reduce(self, proposals: Sequence[Bullet], base: Sequence[Bullet]) -> Curation:
        return Curation()


def stream(count: int, seed: int) -> tuple[list[Trace], dict[str, Reflection]]:
    """Decoded 1 kB traces of mixed prompts, and their reflections."""
    random = Random(seed)
    steps = (Step("user", "x" * 420), Step("assistant", "y" * 420))
    lessons = [
        [f"lesson {j} of prompt {p}: what to do when it happens" for j in range(LESSONS)] for p in range(PROMPTS)
    ]
    bullets = [[identity("OTHERS", text) for text in texts] for texts in lessons]
    traces: list[Trace] = []
    reflections: dict[str, Reflection] = {}
    for number in range(count):
        prompt, lesson = random.randrange(PROMPTS), random.randrange(LESSONS)
        trace = Trace(id=f"trace-{number}", prompt=f"prompt-{prompt}", session=f"s-{number % 997}", steps=steps)
        insights = (Insight(1, "OTHERS", lessons[prompt][lesson]),) if number % 10 == 0 else ()
        reflections[trace.id] = Reflection(trace.id, trace.session, insights, (bullets[prompt][lesson],))
        traces.append(trace)
    assert len(msgspec.json.encode(traces[0])) >= 900
    return traces, reflections


def run(count: int = 200_000, seed: int = 0) -> Engine:
    """Feed ``count`` traces; CPU time of the process, collections of garbage included."""
    traces, reflections = stream(count, seed)
    chunks = [traces[start : start + CHUNK] for start in range(0, count, CHUNK)]
    versions = 0

    async def sink(published: Published) -> None:
        nonlocal versions
        versions += 1

    async def learn() -> float:
        async with Learner(
            ZeroCost(reflections), sink, sizes=FixedSize(WINDOW), clock=time.monotonic, direct=True
        ) as learner:
            started = time.process_time()
            for chunk in chunks:
                await learner.feed(chunk)
            await learner.drain()
            return time.process_time() - started

    gc.collect()
    gc.freeze()  # the log itself is not what is measured
    try:
        seconds = anyio.run(learn)
    finally:
        gc.unfreeze()
    assert versions >= count // WINDOW
    return Engine(count, seconds, _raw(chunks))


def _raw(chunks: list[list[Trace]]) -> float:
    started = time.process_time()
    windows: dict[str, list[Trace]] = {}
    for chunk in chunks:
        for trace in chunk:
            window = windows.setdefault(trace.prompt, [])
            window.append(trace)
            if len(window) == WINDOW:
                windows[trace.prompt] = []
    return time.process_time() - started


def operators_alone(count: int = 200_000, seed: int = 0) -> float:
    """CPU seconds of the operators that the goal names and no others: window, reflect, shuffle, scan, apply.

    Each group's insights become facts as they are: no curator is asked, no version is made.
    """
    traces, reflections = stream(count, seed)
    chunks = [traces[start : start + CHUNK] for start in range(0, count, CHUNK)]
    method = ZeroCost(reflections)
    opened: dict[str, int] = {}
    playbooks: dict[str, Playbook] = {}

    def assign(prompt: str) -> tuple[int, int]:
        opened[prompt] = opened.get(prompt, 0) + 1
        return opened[prompt], WINDOW

    def close(window: Window) -> None:
        deltas = []
        for group in groups(len(window.reflections), window_seed(seed, window.prompt, window.number)):
            texts, evidence = set(), set()
            for index in group:
                for insight in window.reflections[index].insights:
                    bullet = identity(insight.section, insight.content)
                    texts.add(Text(bullet, False, insight.content, insight.section, ""))
                    each = window.reflections[index]
                    evidence.add(Evidence(bullet, each.trace, insight.number, each.session))
            deltas.append(Delta(frozenset(texts), frozenset(evidence)))
        votes = Delta(votes=votes_of(window.reflections))
        delta = merge(scan(deltas, merge).value, votes)
        playbooks[window.prompt] = apply(playbooks.get(window.prompt) or Playbook(), delta)

    gc.collect()
    gc.freeze()
    started = time.process_time()
    windows = Windows(assign)
    for chunk in chunks:
        parts: dict[str, list[Trace]] = {}
        for trace in chunk:
            parts.setdefault(trace.prompt, []).append(trace)
        for prompt, mine in parts.items():
            for window, part in windows.add(prompt, mine, 0.0):
                window.reflections += [method.reflect(trace, ()) for trace in part]
                if window.cause is not None:
                    close(window)
    for window in windows.close_all():
        close(window)
    seconds = time.process_time() - started
    gc.unfreeze()
    assert sum(tally[1] for playbook in playbooks.values() for tally in playbook.tallies.values()) == count
    return seconds


class ApplyCost(Struct, frozen=True):
    """CPU microseconds at one playbook size: joining a window's delta, and writing the version out."""

    bullets: int
    apply: float
    write_out: float


def apply_cost(bullets: int, seed: int = 0) -> ApplyCost:
    """The cost of joining a delta of 50 votes and 5 pieces of evidence into a playbook of ``bullets``."""
    random = Random(seed)
    names = [f"{number:020x}" for number in range(bullets)]
    playbook = apply(
        Playbook(),
        Delta(
            texts=frozenset(Text(name, False, f"lesson {name}", "OTHERS", "") for name in names),
            evidence=frozenset(Evidence(name, "t-0", number, "s") for number, name in enumerate(names)),
        ),
    )
    deltas = []
    for window in range(200):
        delta = EMPTY
        for number in range(50):
            vote = Vote(random.choice(names), f"t-{window}-{number}", False)
            delta = merge(delta, Delta(votes=frozenset([vote])))
        more = frozenset(Evidence(random.choice(names), f"t-{window}-{n}", 1, "s") for n in range(5))
        deltas.append(merge(delta, Delta(evidence=more)))
    best = float("inf")
    for _ in range(5):
        now = playbook
        started = time.process_time()
        for delta in deltas:
            now = apply(now, delta)
        best = min(best, time.process_time() - started)
    started = time.process_time()
    shown(now)
    return ApplyCost(bullets, best / len(deltas) * 1e6, (time.process_time() - started) * 1e6)
