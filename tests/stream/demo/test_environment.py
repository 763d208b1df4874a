"""The environment: its database decides, its rules stand in no description, its names and rules follow the seed."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import closing
from itertools import pairwise

import pytest

from stream.demo.environment import Environment, Task
from stream.demo.rules import MESSAGES

SEEDS = range(8)


@pytest.fixture(params=SEEDS)
def world(request: pytest.FixtureRequest) -> Iterator[Environment]:
    world = Environment(request.param)
    yield world
    world.close()


def test_it_has_enough_tools_and_rules_of_every_kind(world: Environment) -> None:
    assert len(world.tools) >= 6
    assert len(world.rules) >= 10
    assert {rule.kind for _, rule in world.rules} == set(MESSAGES)
    names = [tool.name for tool in world.tools]
    assert len(set(names)) == len(names)
    arguments = [rule.argument for _, rule in world.rules if rule.argument]
    assert len(set(arguments)) == len(arguments)


def test_descriptions_tell_no_rule(world: Environment) -> None:
    told = " ".join(tool.description for tool in world.tools).casefold()
    for _, rule in world.rules:
        fixed = re.split(r"\{\w+\}", rule.message)
        assert not any(part.strip(" :'") in told for part in fixed if len(part) > 4)
        assert not rule.limit or str(rule.limit) not in told


def test_every_task_as_a_person_would_write_it_meets_an_error_of_the_tools_own(world: Environment) -> None:
    rules = world.rules
    for _ in range(60):
        task = world.draw()
        answer = world.call(task.tool, task.arguments)
        own = [rule for tool, rule in rules if tool == task.tool]
        if all(rule.kind == "most" or rule.kind == "opened" for rule in own):
            continue
        assert answer.error
        assert any(_says(rule.message, answer.error) for rule in own)
        assert not world.done(task)


def _says(message: str, error: str) -> bool:
    return re.fullmatch(re.sub(r"\\\{\w+\\\}", ".*", re.escape(message)), error) is not None


def test_a_call_that_is_wrong_in_form_is_an_error_and_does_nothing(world: Environment) -> None:
    task = world.draw()
    first, *rest = task.arguments.items()
    assert "no tool" in world.call("nothing", {}).error
    assert "required" in world.call(task.tool, dict(rest)).error
    assert "takes no" in world.call(task.tool, {**task.arguments, "x": 1}).error
    assert "there is no" in world.call(task.tool, {**task.arguments, first[0]: "unknown"}).error
    helpers = [tool for tool in world.tools if {parameter.name for parameter in tool.parameters} <= {first[0]}]
    assert len(helpers) == 3
    for tool in helpers:
        assert json.loads(world.call(tool.name, {first[0]: first[1]}).content)[first[0]] == task.job
        assert "there is no" in world.call(tool.name, {first[0]: "unknown"}).error
    assert not world.done(task)


def test_hostile_values_are_values(world: Environment) -> None:
    task = world.draw()
    for value in ("'; DROP TABLE stored; --", ["x"], {"a": 1}, None, True, 1e308, "x" * 100_000):
        arguments = dict.fromkeys(task.arguments, value) | dict([next(iter(task.arguments.items()))])
        world.call(task.tool, arguments)
    assert not world.done(task)


def test_a_counted_task_is_done_by_its_sum_and_by_nothing_else() -> None:
    world = Environment(26)  # its counted tool has but one more rule, that something is opened first
    tool, rule = next((tool, rule) for tool, rule in world.rules if rule.kind == "most")
    assert [other.kind for name, other in world.rules if name == tool and other is not rule] == ["opened"]
    for over in (0, 1):
        task = _draw(world, tool)
        job, count = next(iter(task.arguments)), task.arguments[rule.argument]
        closed = world.call(tool, {**task.arguments, rule.argument: 1})
        assert closed.error
        for helper in world.tools:
            if [parameter.name for parameter in helper.parameters] == [job]:
                world.call(helper.name, {job: task.arguments[job]})
        assert world.call(tool, {**task.arguments, rule.argument: rule.limit + 1}).error
        for part in (1, *[rule.limit] * (count // rule.limit), count % rule.limit - 1 + over):
            assert not world.done(task)
            world.call(tool, {**task.arguments, rule.argument: part})
        assert world.done(task) is (not over)
    world.close()


def _draw(world: Environment, tool: str) -> Task:
    return next(task for task in iter(world.draw, None) if task.tool == tool)


def test_names_and_rules_follow_the_seed() -> None:
    shapes = []
    for seed in (*SEEDS, SEEDS[0]):
        with closing(Environment(seed)) as world:
            shapes.append(list(world.rules))
    assert shapes[0] == shapes.pop()
    for one, other in pairwise(shapes):
        assert {tool for tool, _ in one} != {tool for tool, _ in other}
        assert [rule.kind for _, rule in one] != [rule.kind for _, rule in other]
    assert len({tuple(sorted({tool for tool, _ in shape})) for shape in shapes}) == len(shapes)
    assert len({next(rule.limit for _, rule in shape if rule.kind == "most") for shape in shapes}) > 1
