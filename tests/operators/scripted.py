"""Methods that follow a script in place of a model, and what is needed to drive a learner with them.

A trace's lessons stand in its task, divided by ``|``: a test writes down what each trace teaches, and the text of a
bullet tells where it came from. Nothing here waits for time: a late answer waits for its gate, and gates open in the
order that a test chooses.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from functools import partial
from random import Random
from typing import Any, TypeVar

from msgspec.structs import replace

from operators.identity import identity
from operators.learner import Learner
from operators.method import Method
from operators.overload import Load
from operators.settings import Settings
from operators.sizes import FixedSize, Sizes
from operators.state import PromptState
from operators.values import Bullet, Curation, Drop, Given, Insight, Operation, OperationType, Reflection, Trace
from operators.version import Published
from operators.window import Cause
from operators.wire import encode

R = TypeVar("R")

Curator = Callable[[Sequence[Given], Sequence[Bullet]], Curation | Awaitable[Curation]]
Reducer = Callable[[Sequence[Bullet], Sequence[Bullet]], Curation | Awaitable[Curation]]
Reflector = Callable[[Trace, Sequence[Bullet]], Reflection | Awaitable[Reflection]]

KINDS: tuple[OperationType, ...] = ("ADD", "ADD", "UPDATE", "MERGE", "REMOVE")
REASONS = ("duplicate", "known", "vague", "too_specific", "not_a_lesson", "wrong", "contradicted", "unsafe")


class Broken(Exception):
    """What a scripted model raises."""


# Traces, insights, bullets


def trace(number: int, *lessons: str, prompt: str = "p", session: str = "", **fields: Any) -> Trace:
    """Trace ``t<number>`` that teaches ``lessons``."""
    return Trace(id=f"t{number}", prompt=prompt, session=session, task="|".join(lessons), **fields)


def given(*contents: str, section: str = "OTHERS") -> list[Given]:
    """One insight each, of traces t1, t2, …"""
    return [Given(Insight(1, section, content), f"t{at}") for at, content in enumerate(contents, 1)]


def name_of(content: str, section: str = "OTHERS") -> str:
    """The identity of the bullet with this text."""
    return identity(section, content)


def contents(bullets: Iterable[Bullet]) -> list[str]:
    """The texts of bullets, sorted."""
    return sorted(bullet.content for bullet in bullets)


# Reflectors


def teaches(trace: Trace, seen: Sequence[Bullet]) -> Reflection:
    """The lessons that stand in the trace's task."""
    lessons = [lesson for lesson in trace.task.split("|") if lesson]
    insights = tuple(Insight(number, "OTHERS", lesson) for number, lesson in enumerate(lessons, 1))
    return Reflection(trace.id, trace.session, insights)


def fails(*_: object) -> Any:
    """A model that does not answer: any function of a method."""
    raise Broken("no answer")


async def fails_later(*_: object) -> Any:
    """The same, after it was awaited."""
    await asyncio.sleep(0)
    raise Broken("no answer in the end")


# Curators


def covers_all(given: Sequence[Given], base: Sequence[Bullet]) -> Curation:
    """One ADD an insight."""
    return covers_first(len(given), given, base)


def covers_first(most: int, given: Sequence[Given], base: Sequence[Bullet]) -> Curation:
    """A curator that saturates: it covers the first ``most`` and leaves the rest uncited."""
    return Curation(
        tuple(
            Operation("ADD", (number,), (), one.insight.section, one.insight.content, one.insight.key)
            for number, one in enumerate(given[:most], 1)
        )
    )


def drops_rest(most: int, reason: str, given: Sequence[Given], base: Sequence[Bullet]) -> Curation:
    """A curator that covers the first ``most`` and names the rest as dropped."""
    rest = tuple(range(most + 1, len(given) + 1))
    return Curation(covers_first(most, given, base).operations, (Drop(rest, reason),) if rest else ())


def cites_nothing(given: Sequence[Given], base: Sequence[Bullet]) -> Curation:
    """One ADD an insight, none with a citation."""
    return Curation(tuple(Operation("ADD", (), (), one.insight.section, one.insight.content) for one in given))


def cites_wrongly(given: Sequence[Given], base: Sequence[Bullet]) -> Curation:
    """One ADD an insight that cites the one after it, and numbers that nobody gave."""
    return Curation(
        tuple(
            Operation("ADD", (number % len(given) + 1, 0, -1, 1000), (), "OTHERS", one.insight.content)
            for number, one in enumerate(given, 1)
        )
    )


def leaves_all(given: Sequence[Given], base: Sequence[Bullet]) -> Curation:
    """A curator that does nothing at all."""
    return Curation()


def at_random(rng: Random, given: Sequence[Given], base: Sequence[Bullet]) -> Curation:
    """Any answer: right and wrong citations, operations on any bullets, true and false drops, or none at all."""
    if rng.random() < 0.1:
        raise Broken("the curator fails")
    numbers = range(-1, len(given) + 3)
    names = [bullet.bullet for bullet in base] + ["no such bullet"]
    operations = []
    for _ in range(rng.randrange(4)):
        kind = rng.choice(KINDS)
        text = rng.choice(given).insight.content + rng.choice(("", "", " in other words entirely"))
        operations.append(
            Operation(
                kind,
                tuple(rng.sample(numbers, rng.randrange(4))),
                () if kind == "ADD" else tuple(rng.sample(names, rng.randrange(min(3, len(names)) + 1))),
                rng.choice(("OTHERS", "")),
                rng.choice((text, text, "")),
            )
        )
    drops = tuple(
        Drop(
            tuple(rng.sample(numbers, rng.randrange(4))),
            rng.choice((*REASONS, "duplicate", "duplicate", "because")),
            rng.choice((None, *numbers)),
        )
        for _ in range(rng.randrange(5))
    )
    return Curation(tuple(operations), drops)


class Scripted:
    """A method of three functions; level 2 is there when a reducer is."""

    name = "scripted"

    def __init__(
        self, curator: Curator = covers_all, *, reflector: Reflector = teaches, reducer: Reducer | None = None
    ) -> None:
        self._curator = curator
        self._reflector = reflector
        self._reducer = reducer
        self.reflected: list[tuple[str, list[str]]] = []
        self.curated: list[tuple[list[Given], list[Bullet]]] = []
        self.reduced: list[tuple[list[Bullet], list[Bullet]]] = []

    @property
    def reduces(self) -> bool:
        return self._reducer is not None

    def reflect(self, trace: Trace, seen: Sequence[Bullet]) -> Reflection | Awaitable[Reflection]:
        self.reflected.append((trace.id, contents(seen)))
        return self._reflector(trace, seen)

    def curate(self, given: Sequence[Given], base: Sequence[Bullet]) -> Curation | Awaitable[Curation]:
        self.curated.append((list(given), list(base)))
        return self._curator(given, base)

    def reduce(self, proposals: Sequence[Bullet], base: Sequence[Bullet]) -> Curation | Awaitable[Curation]:
        self.reduced.append((list(proposals), list(base)))
        return Curation() if self._reducer is None else self._reducer(proposals, base)


# Answers in a chosen order


class Gates:
    """Where late answers wait. ``most`` is the greatest number that has waited at once."""

    def __init__(self) -> None:
        self._gates: dict[str, asyncio.Event] = {}
        self.most = 0
        self.passed: list[str] = []

    @property
    def waiting(self) -> list[str]:
        """The names of the gates that somebody waits at, sorted."""
        return sorted(self._gates)

    async def wait(self, name: str) -> None:
        """Wait until the gate of this name is opened."""
        gate = self._gates.setdefault(name, asyncio.Event())
        self.most = max(self.most, len(self._gates))
        try:
            await gate.wait()
        finally:
            self._gates.pop(name, None)
        self.passed.append(name)

    def open(self, name: str) -> None:
        """Let whoever waits at this gate go on."""
        self._gates[name].set()

    def open_all(self, *prefixes: str) -> None:
        """Open the gates whose names start so."""
        for name in self.waiting:
            if name.startswith(prefixes):
                self.open(name)


def late_reflector(gates: Gates, inner: Reflector = teaches) -> Reflector:
    """Answers when gate ``reflect <prompt> <trace>`` opens."""

    async def reflect(trace: Trace, seen: Sequence[Bullet]) -> Reflection:
        await gates.wait(f"reflect {trace.prompt} {trace.id}")
        return await value_of(inner(trace, seen))

    return reflect


def late_curator(gates: Gates, inner: Curator = covers_all) -> Curator:
    """Answers when gate ``curate <first trace given>`` opens."""

    async def curate(given: Sequence[Given], base: Sequence[Bullet]) -> Curation:
        await gates.wait(f"curate {given[0].trace}.{given[0].insight.number}")
        return await value_of(inner(given, base))

    return curate


async def value_of(result: R | Awaitable[R]) -> R:
    """What a plain or late answer says."""
    return await result if isinstance(result, Awaitable) else result


async def settle(rounds: int = 30) -> None:
    """Let every task go as far as it comes without a gate. Too few rounds only make fewer orders possible."""
    for _ in range(rounds):
        await asyncio.sleep(0)


async def in_order(gates: Gates, choose: Callable[[list[str]], str], work: Coroutine[Any, Any, R]) -> R:
    """Run ``work`` to its end, opening one gate at a time: the one that ``choose`` picks of those waited at."""
    task = asyncio.ensure_future(work)
    idle = 0
    while not task.done():
        await settle()
        if gates.waiting:
            gates.open(choose(gates.waiting))
            idle = 0
        idle += 1
        if idle > 200:
            task.cancel()
            raise AssertionError("everybody waits, and for no gate")
    return await task


# A learner with its sink in memory


class Shelf:
    """A sink in memory: the versions in the order in which they were made durable, and the states to go on from."""

    def __init__(self, gates: Gates | None = None, fails_at: int = -1) -> None:
        self.versions: list[Published] = []
        self.states: dict[str, PromptState] = {}
        self._gates = gates
        self._fails_at = fails_at
        self._more = asyncio.Event()
        self.calls = 0

    async def put(self, published: Published) -> None:
        self.calls += 1
        if self._gates is not None:
            await self._gates.wait(f"sink {published.update.prompt} {published.update.version}")
        if self.calls == self._fails_at:
            raise Broken("the disk is full")
        self.versions.append(published)
        self.states[published.update.prompt] = published.state
        self._more.set()
        self._more = asyncio.Event()

    async def reaches(self, count: int) -> None:
        """Wait until so many versions are there."""
        while len(self.versions) < count:
            await self._more.wait()

    def load(self, prompt: str) -> PromptState:
        return self.states.get(prompt) or PromptState(prompt)

    def of(self, prompt: str = "p") -> list[Published]:
        """The versions of one prompt."""
        return [published for published in self.versions if published.update.prompt == prompt]

    def lines(self, prompt: str = "p") -> list[bytes]:
        """The bytes of its updates and of its log, but for what may differ from run to run."""
        return [line for published in self.of(prompt) for line in lines(published)]


def lines(published: Published) -> list[bytes]:
    """A version's bytes, but for its measurements."""
    return [encode(replace(published.update, stats={})), encode(replace(published.entry, stats={}))]


class Clock:
    """Seconds that pass when a test says so."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Dealt:
    """Sizes in a given order, the last one for ever; remembers which windows were reported."""

    def __init__(self, *sizes: int) -> None:
        self._sizes = sizes
        self.reported: list[tuple[str, int, int, int, Cause, float, Load]] = []

    def assign(self, prompt: str, number: int) -> int:
        return self._sizes[min(number, len(self._sizes)) - 1]

    def closed(self, prompt: str, number: int, size: int, traces: int, cause: Cause, delay: float, load: Load) -> None:
        self.reported.append((prompt, number, size, traces, cause, delay, load))


def learner(
    method: Method,
    shelf: Shelf,
    *,
    size: int | Sizes = 4,
    clock: Clock | None = None,
    **fields: Any,
) -> Learner:
    """A learner over ``shelf``; fields that are no parameter of it are settings."""
    own: dict[str, Any] = {
        name: fields.pop(name) for name in ("seen", "digest", "lineage", "fallback", "span") if name in fields
    }
    own["direct"] = fields.pop("direct", True)
    return Learner(
        method,
        shelf.put,
        sizes=FixedSize(size) if isinstance(size, int) else size,
        clock=clock or Clock(),
        settings=Settings(**fields),
        load=shelf.load,
        **own,
    )


async def feed_all(learner: Learner, traces: Sequence[Trace], chunks: Sequence[int] = (), *, end: bool = True) -> None:
    """Feed everything, in chunks of these sizes (over and over), and drain."""
    at = turn = 0
    while at < len(traces):
        size = chunks[turn % len(chunks)] if chunks else len(traces)
        await learner.feed(traces[at : at + size])
        at, turn = at + size, turn + 1
    await learner.drain(end=end)


async def learn_all(
    method: Method, traces: Sequence[Trace], chunks: Sequence[int] = (), *, end: bool = True, **fields: Any
) -> Shelf:
    """Everything that a learner makes of these traces."""
    shelf = fields.pop("shelf", None) or Shelf()
    async with learner(method, shelf, **fields) as learning:
        await feed_all(learning, traces, chunks, end=end)
    return shelf


saturated = partial(partial, covers_first)
"""``saturated(m)``: the curator that covers the first m."""
