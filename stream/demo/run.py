"""``tracecomb demo``: agents work, the learner reads their traces, the agents read its prompts; a closed loop."""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from contextlib import closing
from pathlib import Path
from typing import TextIO

import anyio
from msgspec import Struct

from operators.controller import BatchSizes
from operators.method import Method
from operators.modelfree import ModelFree
from operators.settings import Settings
from operators.sink import Sink
from operators.sizes import Sizes
from operators.values import Update
from operators.version import Published
from operators.wire import message
from stream.demo.agents import BUDGET, Done, Fleet, Prompts, World
from stream.demo.environment import Environment
from stream.demo.learning import CURATE, REFLECT, Delayed, Noted, learn_from
from stream.demo.screen import Board, Screen, traces_file
from stream.sizes import AutoSizes
from stream.states import commit
from stream.store import Store

PROMPT = "demo"
TASKS = 1_600
SECONDS = 45.0
THINK = 0.08
"""Seconds before each of an agent's calls."""
IN_FLIGHT = 48
BASELINE = 40
"""Tasks before the learner starts."""
_REFRESH = 0.2


class DemoResult(Struct, frozen=True):
    """What came of a demo.

    :param before: share of successes of the tasks done without any prompt, ``after`` of the last fifth of all tasks.
    :param board: all counts.
    :param update: the last version.
    """

    before: float
    after: float
    board: Board
    update: Update | None
    at: Path
    prompt: str


async def closed_loop(
    world: World,
    sink: Sink,
    *,
    name: str,
    method: Method,
    sizes: Sizes,
    settings: Settings,
    agents: int,
    tasks: int,
    seed: int,
    pause: Callable[[], Awaitable[None]],
    clock: Callable[[], float],
    seconds: float = float("inf"),
    lineage: str = "",
    prompts: Prompts | None = None,
    baseline: int = 1,
    finished: Callable[[Done], None] = lambda done: None,
) -> None:
    """Agents and the learner around each other until ``tasks`` tasks are done or ``seconds`` have passed.

    :param sink: makes a version durable; agents get it after that.
    :param baseline: the learner starts when so many tasks are finished.
    :param finished: called with every finished task, in order.
    """
    prompts = prompts or Prompts()
    send, receive = anyio.create_memory_object_stream[Done](float("inf"))
    started, taken = clock(), 0

    def more() -> bool:
        nonlocal taken
        taken += 1
        return taken <= tasks and clock() - started < seconds

    async def publish(published: Published) -> None:
        await sink(published)
        prompts.publish(published.update)

    fleet = Fleet(world, prompts, send, name=name, seed=seed, pause=pause, more=more, finished=finished)
    try:
        async with anyio.create_task_group() as group:
            group.start_soon(fleet.run, agents)
            await learn_from(
                receive,
                publish,
                method=method,
                sizes=sizes,
                settings=settings,
                clock=clock,
                lineage=lineage,
                baseline=baseline,
            )
    finally:
        prompts.close()
        send.close()
        receive.close()


async def run_demo(
    *,
    at: Path | None,
    seed: int,
    agents: int,
    tasks: int,
    seconds: float,
    out: TextIO,
    speed: float = 1.0,
) -> DemoResult:
    """Run the demo and show it.

    :param at: the store, made if missing; None for a new temporary folder. A store that has been a demo's gets another
        prompt, so that its agents start without one.
    :param speed: how much faster than usual agents think and reflections answer.
    :raises StoreError: when there is no store to be had at ``at``.
    """
    at = (at or Path(tempfile.mkdtemp(prefix="tracecomb-demo-")) / "store").absolute()
    board, world, late = Board(), Environment(seed), []
    controller = BatchSizes()
    sizes = Noted(AutoSizes(controller))
    board.windows = sizes.windows
    last: Update | None = None
    started = time.monotonic()
    about = (
        f"{agents} scripted agents work on an SQLite database: {len(world.tools)} tools with {len(world.rules)} rules "
        f"that no description tells. Agents meet them as errors and have {BUDGET} calls a task. Their traces go to the "
        "learner, its prompts back to them. Method: model-free. Reflections have a simulated latency, so that the "
        f"batch size controller has something to measure: {REFLECT} s each, {IN_FLIGHT} at once, {CURATE} s a curator. "
        f"The learner starts after {BASELINE} tasks, so that there is something to compare with."
    )
    with (
        closing(world),
        Store.open(at, write=True, create=True) as store,
        traces_file(at).open("ab") as log,
        Screen(out, about=about) as screen,
    ):
        name = _unused(store)

        async def sink(published: Published) -> None:
            nonlocal last
            commit(store.prompt(name), published)
            last = published.update
            board.bullets = len(last.bullets)

        def finished(done: Done) -> None:
            board.count(done)
            late.append(done.success)
            log.write(message(done.trace) + b"\n")

        async def refresh() -> None:
            while True:
                board.seconds, board.reason = time.monotonic() - started, controller.explain().reason
                screen.show(board)
                await anyio.sleep(_REFRESH)

        async with anyio.create_task_group() as group:
            group.start_soon(refresh)
            await closed_loop(
                world,
                sink,
                name=name,
                method=Delayed(ModelFree(), 1 / speed),
                sizes=sizes,
                settings=Settings(seed=seed, in_flight=IN_FLIGHT),
                agents=agents,
                tasks=tasks,
                seed=seed,
                pause=lambda: anyio.sleep(THINK / speed),
                clock=time.monotonic,
                seconds=seconds,
                lineage=store.lineage,
                baseline=BASELINE,
                finished=finished,
            )
            group.cancel_scope.cancel()
        board.seconds, board.reason = time.monotonic() - started, controller.explain().reason
        screen.end(board, last, at, name)
    tail = late[-max(1, len(late) // 5) :]
    before = board.rates[0].share if 0 in board.rates else 0.0
    return DemoResult(before, sum(tail) / max(1, len(tail)), board, last, at, name)


def demo(at: str | None, *, seed: int, agents: int) -> int:
    """Run the demo on this terminal.

    :return: the exit code: 0.
    :raises BrokenPipeError: when nobody reads what it shows any more.
    """

    async def run() -> None:
        await run_demo(
            at=None if at is None else Path(at), seed=seed, agents=agents, tasks=TASKS, seconds=SECONDS, out=sys.stdout
        )

    try:
        anyio.run(run)
    except BaseExceptionGroup as group:
        if group.subgroup(BrokenPipeError):
            raise BrokenPipeError from None
        raise
    return 0


def _unused(store: Store) -> str:
    known, number = set(store.prompts()), 1
    while (name := PROMPT if number == 1 else f"{PROMPT}-{number}") in known:
        number += 1
    return name
