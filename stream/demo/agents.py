"""The fleet: scripted agents that take tasks, read the newest prompt they have, work, and write a trace of it.

An agent has general knowledge (:mod:`stream.demo.transforms`), a way to try things (:mod:`stream.demo.episode`) and
its prompt. It keeps nothing from one task to the next; what it learns it learns from the prompt.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from random import Random
from typing import Any, Protocol

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from msgspec import Struct

from operators.lesson import Lesson
from operators.values import Outcome, Step, Trace, Update
from stream.demo.episode import Answer, Episode, Tool, lessons

BUDGET = 12
"""The most calls an agent makes for one task."""
SLIPS = 0.15
"""The share of lessons that an agent does not think of before an error reminds it."""


class Goal(Protocol):
    """A task, as an agent gets it: which tool must accept what these values mean."""

    @property
    def text(self) -> str: ...
    @property
    def tool(self) -> str: ...
    @property
    def arguments(self) -> dict[str, Any]: ...


class World(Protocol):
    """What agents work in."""

    @property
    def tools(self) -> Sequence[Tool]:
        """Names and schemas."""

    def draw(self) -> Any:
        """A new task."""

    def done(self, task: Any) -> bool:
        """Whether what the task asked for is so; agents do not ask this, whoever grades their traces does."""

    def call(self, tool: str, arguments: dict[str, Any]) -> Answer:
        """Call a tool."""


class Prompts:
    """Prompt updates to all who subscribed, in process."""

    def __init__(self) -> None:
        self._subscribers: list[tuple[MemoryObjectSendStream[Update], Subscription]] = []

    def subscribe(self) -> Subscription:
        """From now on."""
        send, receive = anyio.create_memory_object_stream[Update](float("inf"))
        subscription = Subscription(receive)
        self._subscribers.append((send, subscription))
        return subscription

    def publish(self, update: Update) -> None:
        """Give an update to every subscriber; none is waited for."""
        for send, _ in self._subscribers:
            send.send_nowait(update)

    def close(self) -> None:
        """End all subscriptions."""
        for send, subscription in self._subscribers:
            send.close()
            subscription.close()
        self._subscribers.clear()


class Subscription:
    """One agent's prompt: the newest update it has received, read once."""

    def __init__(self, updates: MemoryObjectReceiveStream[Update]) -> None:
        self._updates = updates
        self.update: Update | None = None
        self.lessons: list[Lesson] = []

    def refresh(self) -> None:
        """Take what has come in since."""
        newest = None
        while True:
            try:
                newest = self._updates.receive_nowait()
            except (anyio.WouldBlock, anyio.EndOfStream):
                break
        if newest is not None:
            self.update, self.lessons = newest, lessons(newest.text)

    def close(self) -> None:
        """Take no more."""
        self._updates.close()


class Done(Struct, frozen=True):
    """One finished task: the prompt version it was done with (0: none), and whether it succeeded."""

    version: int
    success: bool
    trace: Trace


class Fleet:
    """Agents that share a supply of tasks.

    :param pause: waited for before each tool call, the time an agent takes to think and a tool to answer.
    :param more: asked before each task; no more tasks when it says no.
    :param finished: told of every finished task.
    """

    def __init__(
        self,
        world: World,
        prompts: Prompts,
        traces: MemoryObjectSendStream[Done],
        *,
        name: str,
        seed: int,
        pause: Callable[[], Awaitable[None]],
        more: Callable[[], bool],
        finished: Callable[[Done], None] = lambda done: None,
    ) -> None:
        self._world = world
        self._prompts = prompts
        self._traces = traces
        self._name = name
        self._seed = seed
        self._pause = pause
        self._more = more
        self._finished = finished
        self._taken = 0

    async def run(self, agents: int) -> None:
        """Work until there are no more tasks, then close the stream of traces."""
        async with self._traces, anyio.create_task_group() as group:
            for number in range(1, agents + 1):
                group.start_soon(self._agent, f"agent-{number}", self._prompts.subscribe())

    async def _agent(self, agent: str, prompt: Subscription) -> None:
        random = Random(f"{self._seed} {agent}")
        while self._more():
            self._taken += 1
            number, task = self._taken, self._world.draw()
            prompt.refresh()
            steps, believed = await self._work(task, prompt.lessons, random)
            trace = self._trace(agent, number, task, prompt.update, steps, believed)
            done = Done(trace.version or 0, bool(trace.outcome.success), trace)
            self._finished(done)
            await self._traces.send(done)

    async def _work(self, task: Goal, learned: Sequence[Lesson], random: Random) -> tuple[tuple[Step, ...], bool]:
        async def call(tool: str, arguments: dict[str, Any]) -> Answer:
            await self._pause()
            return self._world.call(tool, arguments)

        episode = Episode(task.tool, task.arguments, self._world.tools, learned, call, random, BUDGET, SLIPS)
        believed = await episode.run()
        last = "That is done." if believed else "I could not get this done."
        return (Step("user", task.text), *episode.steps, Step("assistant", last)), believed

    def _trace(
        self, agent: str, number: int, task: Goal, prompt: Update | None, steps: tuple[Step, ...], believed: bool
    ) -> Trace:
        return Trace(
            id=f"{self._name}-{number:05d}",
            prompt=self._name,
            version=prompt.version if prompt else None,
            lineage=prompt.lineage if prompt else None,
            bullets=tuple(bullet.id for bullet in prompt.bullets) if prompt else None,
            agent=agent,
            session=f"{self._name}-{number:05d}",
            task=task.text,
            steps=steps,
            outcome=Outcome(self._world.done(task), termination="finished" if believed else "gave_up"),
        )
