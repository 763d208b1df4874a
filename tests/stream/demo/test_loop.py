"""The closed loop learns, and only by what it reads: no reflector, no rise; other names and rules, the same rise;
bullets that speak of other tools, no rise."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import closing
from typing import Any

import anyio.lowlevel
import pytest
from msgspec.structs import replace

from operators.lesson import parse
from operators.modelfree import ModelFree, union
from operators.settings import Settings
from operators.sizes import FixedSize
from operators.values import Bullet, Curation, Given, Reflection, Trace, Update
from operators.version import Published
from stream.demo.agents import Done, Prompts
from stream.demo.environment import Environment
from stream.demo.learning import Delayed
from stream.demo.run import closed_loop


class Silent:
    """A method without a reflector."""

    name = "silent"
    reduces = False

    def reflect(self, trace: Trace, seen: Sequence[Bullet]) -> Reflection:
        return Reflection(trace.id, trace.session)

    def curate(self, given: Sequence[Given], base: Sequence[Bullet]) -> Curation:
        return union(given)

    def reduce(self, proposals: Sequence[Bullet], base: Sequence[Bullet]) -> Curation:
        return Curation()


class Swapped(Prompts):
    """Gives agents each bullet as if it were about the next tool."""

    def publish(self, update: Update) -> None:
        lessons = [parse(bullet.content) for bullet in update.bullets]
        tools = sorted({lesson.tool for lesson in lessons if lesson})
        lines = []
        for bullet, lesson in zip(update.bullets, lessons, strict=True):
            if lesson:
                other = tools[(tools.index(lesson.tool) + 1) % len(tools)]
                lines.append(f"[{bullet.id}] {replace(lesson, tool=other)}")
        super().publish(replace(update, text="\n".join(lines)))


async def loop(
    seed: int, tasks: int, *, method: Any = None, prompts: Prompts | None = None
) -> tuple[list[Done], Update]:
    world = Environment(seed)
    done: list[Done] = []
    updates: list[Update] = []

    async def sink(published: Published) -> None:
        updates.append(published.update)

    with closing(world):
        await closed_loop(
            world,
            sink,
            name="demo",
            method=method or ModelFree(),
            sizes=FixedSize(16),
            settings=Settings(seed=seed),
            agents=8,
            tasks=tasks,
            seed=seed,
            pause=anyio.lowlevel.checkpoint,
            clock=time.monotonic,
            lineage="here",
            prompts=prompts,
            finished=done.append,
        )
    assert len(done) == tasks
    assert sum(update.learned.traces for update in updates) == tasks
    return done, updates[-1]


def rate(done: Sequence[Done]) -> float:
    return sum(one.success for one in done) / len(done)


async def test_without_the_reflector_the_rate_stays_flat() -> None:
    done, last = await loop(0, 600, method=Silent())
    assert 0.25 <= rate(done) <= 0.48
    assert abs(rate(done[:300]) - rate(done[300:])) < 0.12
    assert last.bullets == ()


@pytest.mark.parametrize("seed", [0, 5, 17])
async def test_with_other_names_and_rules_the_rate_still_rises(seed: int) -> None:
    done, last = await loop(seed, 800)
    fresh = [one for one in done if one.version == 0]
    assert rate(fresh) < 0.6
    assert rate(done[-200:]) > 0.9
    assert rate(done[-200:]) > rate(done[:100])
    assert len(last.bullets) >= 12
    assert all(parse(bullet.content) for bullet in last.bullets)
    assert sum(bullet.helpful for bullet in last.bullets) > 3 * sum(bullet.harmful for bullet in last.bullets)


async def test_with_bullets_swapped_between_tools_it_does_not_rise() -> None:
    done, last = await loop(0, 600, prompts=Swapped())
    assert len(last.bullets) >= 8
    assert rate(done[-300:]) < 0.5
    assert rate(done[-300:]) < rate(done[:100]) + 0.15


async def test_a_slow_method_learns_the_same_lessons() -> None:
    quick, slow = [(await loop(3, 160, method=method))[1] for method in (ModelFree(), Delayed(ModelFree(), 0.001))]
    assert {bullet.key for bullet in slow.bullets} & {bullet.key for bullet in quick.bullets}
