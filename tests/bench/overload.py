"""Context overload: how many lessons survive aggregation, by batch size.

The curator is simulated: a call keeps what Combee measured (arXiv 2604.04247, its table of context updates kept: about
0.5, 2.0, 2.4, 3.9, 4.7, 4.2 a call at 1, 5, 10, 20, 50, 100 reflections), and half of the reflections hold a lesson of
their own; the other half hold one that is none. Ours runs the real operators, learner and controller.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from math import isqrt
from random import Random

import anyio
import anyio.lowlevel
from msgspec import Struct

from operators import (
    BatchSizes,
    Bullet,
    Curation,
    Drop,
    FixedSize,
    Given,
    Insight,
    Learner,
    Operation,
    Published,
    Reflection,
    Settings,
    Trace,
    group_count,
    groups,
    union,
)
from operators.sizes import Sizes
from stream.sizes import AutoSizes

KEPT = ((0, 0.0), (1, 0.5), (5, 2.0), (10, 2.4), (20, 3.9), (50, 4.7), (100, 4.2), (10_000, 4.2))
BATCHES = (1, 5, 10, 20, 30, 50, 70, 100, 150, 200)
TOKENS_A_REFLECTION = 300
TOKENS_A_BULLET = 40
_WORDS = [
    a + b + c
    for a in ("ba", "ke", "li", "mo", "nu", "ra", "so", "ti")
    for b in ("dar", "fen", "gol", "mik", "pus", "zel")
    for c in ("", "ta", "lo", "ne")
]


class Result(Struct, frozen=True):
    """Shares of all lessons, but for junk (a lesson), waits (windows a lesson), calls and tokens (a trace)."""

    system: str
    batch: int
    kept: float
    curated: float
    raw: float
    dropped: float
    junk: float
    waits: float
    calls: float
    tokens: float


def capacity(reflections: int, random: Random) -> int:
    """How many updates one call keeps of so many reflections; fractions are drawn."""
    sizes = [size for size, _ in KEPT]
    at = bisect_left(sizes, reflections)
    if sizes[at] == reflections:
        mean = KEPT[at][1]
    else:
        (low, below), (high, above) = KEPT[at - 1], KEPT[at]
        mean = below + (above - below) * (reflections - low) / (high - low)
    whole = int(mean)
    return whole + (random.random() < mean - whole)


def _text(random: Random) -> str:
    return " ".join(random.choice(_WORDS) for _ in range(9))


class Log(Struct):
    """A stream of reflections: (trace, text, whether it is a lesson)."""

    insights: list[tuple[str, str, bool]]

    @classmethod
    def of(cls, traces: int, seed: int) -> Log:
        random = Random(seed)
        return cls([(f"t{i}", _text(random), random.random() < 0.5) for i in range(traces)])

    @property
    def lessons(self) -> set[str]:
        return {text for _, text, lesson in self.insights if lesson}


def naive(log: Log, batch: int, seed: int) -> Result:
    """One call a window on all of its reflections."""
    random = Random(seed)
    kept: set[str] = set()
    calls = 0
    for start in range(0, len(log.insights), batch):
        window = log.insights[start : start + batch]
        lessons = [text for _, text, lesson in window if lesson]
        kept |= set(random.sample(lessons, min(len(lessons), capacity(len(window), random))))
        calls += 1
    return _simple("naive", log, batch, kept, calls, len(log.insights) * TOKENS_A_REFLECTION)


def combee(log: Log, batch: int, seed: int, *, lossless: bool) -> Result:
    """Combee as published: p = 2, k = ⌊√n⌋ level-1 calls, and one level-2 call that answers with the update."""
    random = Random(seed)
    kept: set[str] = set()
    calls = tokens = 0
    for number, start in enumerate(range(0, len(log.insights), batch)):
        window = log.insights[start : start + batch]
        proposals: set[str] = set()
        for group in groups(len(window), seed + number, 2):
            lessons = [window[index][1] for index in group if window[index][2]]
            proposals |= set(random.sample(lessons, min(len(lessons), capacity(len(group), random))))
            calls += 1
            tokens += len(group) * TOKENS_A_REFLECTION
        if group_count(len(window)) > 1:
            calls += 1
            tokens += len(proposals) * TOKENS_A_BULLET
            if not lossless:
                some = sorted(proposals)
                # A proposal is a lesson for certain, so a call sees half as many of them for as many updates.
                proposals = set(random.sample(some, min(len(some), capacity(2 * len(some), random))))
        kept |= proposals
    name = "Combee, lossless level 2" if lossless else "Combee, saturating level 2"
    return _simple(name, log, batch, kept, calls, tokens)


def _simple(name: str, log: Log, batch: int, kept: set[str], calls: int, tokens: int) -> Result:
    lessons, traces = len(log.lessons), len(log.insights)
    share = len(kept) / lessons
    return Result(name, batch, share, share, 0.0, 1 - share, 0.0, 0.0, calls / traces, tokens / traces)


class Saturating:
    """A method whose curators keep what :data:`KEPT` says, and name their drops or do not."""

    name = "saturating"
    reduces = True

    def __init__(self, log: Log, seed: int, *, names_drops: bool, curates: bool = True) -> None:
        self._random = Random(seed)
        self._lessons = log.lessons
        self._texts = {trace: text for trace, text, _ in log.insights}
        self._names_drops = names_drops
        self._curates = curates
        self.calls = self.tokens = 0

    def reflect(self, trace: Trace, seen: Sequence[Bullet]) -> Reflection:
        return Reflection(trace.id, "", (Insight(1, "OTHERS", self._texts[trace.id]),))

    def curate(self, given: Sequence[Given], base: Sequence[Bullet]) -> Curation:
        if not self._curates:
            return union(given)
        self.calls += 1
        self.tokens += len(given) * TOKENS_A_REFLECTION
        texts = [each.insight.content for each in given]
        lessons = [number for number, text in enumerate(texts, 1) if text in self._lessons]
        covered = self._random.sample(lessons, min(len(lessons), capacity(len(given), self._random)))
        operations = tuple(Operation("ADD", (n,), (), "OTHERS", texts[n - 1]) for n in sorted(covered))
        junk = tuple(number for number, text in enumerate(texts, 1) if text not in self._lessons)
        drops = (Drop(junk, "not_a_lesson"),) if junk and self._names_drops else ()
        return Curation(operations, drops)

    def reduce(self, proposals: Sequence[Bullet], base: Sequence[Bullet]) -> Curation:
        self.calls += 1
        self.tokens += len(proposals) * TOKENS_A_BULLET
        return Curation()


def ours(
    log: Log,
    batch: int,
    seed: int,
    *,
    names_drops: bool = True,
    curates: bool = True,
    clamped: bool = False,
    name: str = "ours",
    skip: int = 0,
) -> Result:
    """The real operators. With ``clamped`` the controller lowers the clamp from ``batch``.

    :param skip: traces at the start that are learned and not counted, so that the clamp has settled.
    """
    method = Saturating(log, seed, names_drops=names_drops, curates=curates)
    controller = BatchSizes([8, 16, 32, 64, max(batch, 65)], windows_per_size=1)
    sizes: Sizes = _Clamped(controller, batch) if clamped else FixedSize(batch)
    windows: list[Published] = []

    async def keep(published: Published) -> None:
        windows.append(published)

    async def run() -> None:
        # Nothing is folded or evicted: what entered is counted at the end.
        settings = Settings(seed=seed, token_budget=10**9, fold_every=10**6)
        traces = [Trace(id=trace, prompt="p") for trace, _, _ in log.insights]
        async with Learner(method, keep, sizes=sizes, clock=lambda: 0.0, settings=settings) as learner:
            for start in range(0, len(traces), 8):
                await learner.feed(traces[start : start + 8])
                for _ in range(20):  # as on a live stream, windows publish before much later ones open
                    await anyio.lowlevel.checkpoint()
            await learner.drain()

    anyio.run(run)
    return _count(name, log, batch, windows, method, skip)


class _Clamped(AutoSizes):
    """The controller's clamp, with the plateau held at ``batch``: only overload lowers it."""

    def __init__(self, controller: BatchSizes, batch: int) -> None:
        super().__init__(controller)
        self._overload = controller
        self._batch = batch

    def assign(self, prompt: str, number: int) -> int:
        if number <= 3:  # the reference: a prompt's first windows take the smallest candidate
            return 8
        return min(self._batch, self._overload.overload(prompt).clamp)


def _count(name: str, log: Log, batch: int, windows: Sequence[Published], method: Saturating, skip: int) -> Result:
    counted = {text for _, text, lesson in log.insights[skip:] if lesson}
    junk_texts = {text for _, text, lesson in log.insights[skip:] if not lesson}
    born = {trace: number for number, each in enumerate(windows) for trace, _ in each.entry.traces}
    trace_of = {text: trace for trace, text, _ in log.insights}
    raw: dict[str, bool] = {}
    waits = []
    for number, each in enumerate(windows):
        for text in each.entry.delta.texts:
            if text.content in counted and text.content not in raw:
                waits.append(number - born[trace_of[text.content]])
            if text.content not in raw or not text.raw:
                raw[text.content] = text.raw
    shown = {bullet.content for bullet in windows[-1].update.bullets}
    kept = counted & shown
    entered_raw = {text for text in kept if raw[text]}
    dropped = sum(
        log.insights[int(drop[0][1:])][2]
        for each in windows
        for drop in each.entry.audit.get("drops", ())
        if int(drop[0][1:]) >= skip
    )
    return Result(
        name,
        batch,
        len(kept) / len(counted),
        len(kept - entered_raw) / len(counted),
        len(entered_raw) / len(counted),
        dropped / len(counted),
        len(junk_texts & shown) / len(counted),
        sum(waits) / max(len(waits), 1),
        method.calls / len(log.insights),
        method.tokens / len(log.insights),
    )


def run(seed: int = 0, traces: int = 3_000) -> list[Result]:
    """Every system at every batch size on the same reflections."""
    log = Log.of(traces, seed)
    results = []
    for batch in BATCHES:
        results += [
            naive(log, batch, seed),
            combee(log, batch, seed, lossless=False),
            combee(log, batch, seed, lossless=True),
            ours(log, batch, seed),
            ours(log, batch, seed, names_drops=False, name="ours, drops not named"),
            ours(log, batch, seed, curates=False, name="no curator"),
        ]
    results.append(ours(Log.of(2 * traces, seed), 100, seed, clamped=True, name="ours, clamp lowered", skip=traces))
    return results


def calls_bound(batch: int) -> float:
    """Combee's calls a trace: k + 1 a window."""
    return (isqrt(batch) + 1) / batch if batch >= 4 else 1 / batch
