"""One agent's work on one task: do what the prompt's lessons say, and where an error comes anyway, try things.

The agent knows the task, the tools' schemas and the text of its prompt. It follows any lesson that is worded as
``operators.lesson`` documents; which tools, arguments and rules there are it only ever reads.
"""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from random import Random
from typing import Any, Protocol

from operators.lesson import Lesson, parse, readable
from operators.mask import mask
from operators.values import Call, Step
from stream.demo.transforms import by_example, guesses, limit


class Parameter(Protocol):
    """An argument of a tool, as its schema has it."""

    @property
    def name(self) -> str: ...
    @property
    def required(self) -> bool: ...


class Tool(Protocol):
    """A tool, as an agent is told of it."""

    @property
    def name(self) -> str: ...
    @property
    def parameters(self) -> Sequence[Parameter]: ...


class Answer(Protocol):
    """What a tool answers."""

    @property
    def content(self) -> str: ...
    @property
    def error(self) -> str: ...


CallTool = Callable[[str, dict[str, Any]], Awaitable[Answer]]
Move = Callable[[], Awaitable[Iterable[dict[str, Any]]]]
"""Something to try after an error; it gives the arguments to call again with, one after the other."""

_LINE = re.compile(r"\s*(?:- )?(?:\[[^\]]*\] )?(.*)")


def lessons(prompt: str) -> list[Lesson]:
    """The lessons in a prompt's text, in its order; lines that are no lessons are passed over."""
    found = (parse(match[1]) for line in prompt.splitlines() if (match := _LINE.fullmatch(line)))
    return [lesson for lesson in found if lesson is not None]


class GaveUp(Exception):
    """The calls are spent, or there is nothing left to try."""


class Episode:
    """One try at one task.

    :param learned: the lessons of the agent's prompt.
    :param budget: the most calls, of any tool.
    :param random: decides in which order things are tried, and what slips the agent's mind.
    :param slips: the share of lessons that do so, as they do a model's, until the error reminds of them.
    """

    def __init__(
        self,
        tool: str,
        arguments: Mapping[str, Any],
        tools: Sequence[Tool],
        learned: Sequence[Lesson],
        call: CallTool,
        random: Random,
        budget: int,
        slips: float = 0.0,
    ) -> None:
        self.steps: list[Step] = []
        self._tool = tool
        self._given = dict(arguments)
        self._tools = {each.name: each for each in tools}
        self._accepted = [parameter.name for parameter in self._tools[tool].parameters]
        self._learned: list[Lesson] = []
        self._slipped: list[Lesson] = []
        for lesson in learned:
            if lesson.tool == tool:
                (self._slipped if random.random() < slips else self._learned).append(lesson)
        self._call_tool = call
        self._random = random
        self._left = budget
        self._limits: dict[str, int] = {}

    async def run(self) -> bool:
        """Work until the tool has accepted everything or the calls are spent; whether the agent believes it is done."""
        try:
            arguments = await self._prepared()
            await self._accept_all(arguments)
        except GaveUp:
            return False
        return True

    async def _accept_all(self, arguments: dict[str, Any]) -> None:
        """Call until accepted, and again for what a limit has left over."""
        rest = {name: value for name, value in self._given.items() if type(value) is int}
        while True:
            arguments = await self._accepted_with(self._limited(arguments))
            rest = {name: value - arguments[name] for name, value in rest.items() if name in self._limits}
            if not any(value > 0 for value in rest.values()):
                return
            arguments = {**arguments, **{name: value for name, value in rest.items() if value > 0}}

    def _limited(self, arguments: dict[str, Any]) -> dict[str, Any]:
        capped = {name: min(arguments[name], most) for name, most in self._limits.items() if name in arguments}
        return {**arguments, **capped}

    async def _accepted_with(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """Call with these arguments, and try others as long as errors come."""
        answer = await self._call(self._tool, arguments)
        while answer.error:
            arguments, answer = await self._mend(arguments, answer.error)
        return arguments

    async def _mend(self, arguments: dict[str, Any], error: str) -> tuple[dict[str, Any], Answer]:
        """Try one thing after another until another error comes or none; what did not help is undone."""
        same = mask(error, arguments)
        for move in self._moves(arguments, error):
            for changed in await move():
                answer = await self._call(self._tool, changed)
                if not answer.error or mask(answer.error, changed) != same:
                    self._note_limit(arguments, changed)
                    return changed, answer
        raise GaveUp

    def _note_limit(self, before: dict[str, Any], after: dict[str, Any]) -> None:
        for name, value in after.items():
            most = limit(before.get(name), value)
            if most is not None and self._given.get(name) == before.get(name):
                self._limits[name] = most

    async def _prepared(self) -> dict[str, Any]:
        """The arguments of the first call, after what the lessons say."""
        arguments = dict(self._given)
        for lesson in sorted(self._learned, key=lambda lesson: lesson.fix != "call first"):
            await self._follow(lesson, arguments)
        return self._limited(arguments)

    async def _follow(self, lesson: Lesson, arguments: dict[str, Any]) -> None:
        """Do what a lesson says: call other tools, write values otherwise."""
        if lesson.fix == "call first":
            for name in lesson.first:
                await self._call_first(name)
        elif lesson.argument not in self._accepted:
            return
        elif lesson.fix == "pass":
            for value in (await self._looked_up(lesson.first[0], lesson.field))[:1]:
                arguments[lesson.argument] = value
        elif lesson.fix == "leave out":
            arguments.pop(lesson.argument, None)
        else:
            self._rewrite(arguments, lesson)

    def _rewrite(self, arguments: dict[str, Any], lesson: Lesson) -> None:
        name = lesson.argument
        try:
            before, after = (readable(text) if text else None for text in (lesson.before, lesson.after))
        except ValueError:
            return
        if lesson.fix == "add":
            arguments.setdefault(name, after)
        elif lesson.fix == "change" and name in arguments:
            transform, most = by_example(before, after), limit(before, after)
            if most is not None:
                self._limits[name] = most
            elif transform is not None and arguments[name] == self._given.get(name):
                try:
                    arguments[name] = transform(arguments[name])
                except (ValueError, TypeError, IndexError):
                    return

    def _moves(self, arguments: dict[str, Any], error: str) -> Iterator[Move]:
        """What to try: what the error reminds of, then other writings of what it names and other tools, shuffled."""
        reminded = [lesson for lesson in self._slipped if mask(lesson.error, arguments) == mask(error, arguments)]
        named = [name for name in self._accepted if re.search(rf"(?<!\w){re.escape(name)}(?!\w)", error)]
        moves: list[Move] = []
        for name in named:
            value = arguments.get(name)
            others = (*self._numbers(value, error), *guesses(value))
            moves.extend(self._try_value(arguments, name, other) for other in others)
            if not isinstance(value, int | float):
                moves.extend(self._try_answer(arguments, name, other) for other in self._callable())
        if not named:
            moves.extend(self._try_first(arguments, other) for other in self._callable())
        self._random.shuffle(moves)
        return iter([*(self._try_lesson(arguments, lesson) for lesson in reminded), *moves])

    def _numbers(self, value: Any, error: str) -> list[int]:
        return [int(number) for number in re.findall(r"(?<![\w.])\d+(?![\w.])", error)] if type(value) is int else []

    def _try_value(self, arguments: dict[str, Any], name: str, value: Any) -> Move:
        async def move() -> Iterable[dict[str, Any]]:
            return [{**arguments, name: value}]

        return move

    def _try_lesson(self, arguments: dict[str, Any], lesson: Lesson) -> Move:
        async def move() -> Iterable[dict[str, Any]]:
            followed = dict(arguments)
            await self._follow(lesson, followed)
            return [self._limited(followed)]

        return move

    def _try_answer(self, arguments: dict[str, Any], name: str, other: str) -> Move:
        async def move() -> Iterable[dict[str, Any]]:
            return [{**arguments, name: value} for value in await self._looked_up(other, "")]

        return move

    def _try_first(self, arguments: dict[str, Any], other: str) -> Move:
        async def move() -> Iterable[dict[str, Any]]:
            await self._call_first(other)
            return [arguments]

        return move

    def _callable(self) -> list[str]:
        """The other tools that the task's own values are enough to call."""
        return [name for name in self._tools if name != self._tool and self._filled(name) is not None]

    def _filled(self, tool: str) -> dict[str, Any] | None:
        parameters = self._tools[tool].parameters if tool in self._tools else ()
        if not parameters or any(parameter.required and parameter.name not in self._given for parameter in parameters):
            return None
        return {
            parameter.name: self._given[parameter.name] for parameter in parameters if parameter.name in self._given
        }

    async def _call_first(self, tool: str) -> str:
        filled = self._filled(tool)
        return (await self._call(tool, filled)).content if filled is not None else ""

    async def _looked_up(self, tool: str, field: str) -> list[Any]:
        """The values in another tool's answer that the task did not have: those of ``field``, or all."""
        try:
            answer = json.loads(await self._call_first(tool))
        except ValueError:
            return []
        known = set(map(str, self._given.values()))
        return [leaf for where, leaf in _leaves("", answer) if field in ("", where) and str(leaf) not in known]

    async def _call(self, tool: str, arguments: dict[str, Any]) -> Answer:
        if self._left == 0:
            raise GaveUp
        self._left -= 1
        call = f"c{len(self.steps) // 2 + 1}"
        answer = await self._call_tool(tool, arguments)
        self.steps.append(Step("assistant", calls=(Call(call, tool, dict(arguments)),)))
        self.steps.append(Step("tool", answer.content, call=call, name=tool, error=answer.error or None))
        return answer


def _leaves(path: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _leaves(f"{path}.{key}" if path else str(key), inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _leaves(f"{path}[]", inner)
    else:
        yield path, value
