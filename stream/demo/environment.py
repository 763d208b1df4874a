"""The environment that the demo's agents work in: tools over an SQLite database, built and named by seed.

A task is done when the database says so, whatever an agent believes. Tool descriptions say what a tool is for and what
its arguments are called, none of the rules; an agent learns of a rule from the error that it gets for breaking it.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

from msgspec import Struct

from stream.demo import names as words
from stream.demo.names import ARGUMENTS, Names
from stream.demo.rules import MESSAGES, SINGLE, Pair, Rule, pairs

TOOLS, TWICE = 10, 9
"""How many tools do something (the others look up, open or show), and how many kinds of rule come twice."""


class Parameter(Struct, frozen=True):
    """One argument of a tool, as its schema shows it."""

    name: str
    type: str
    required: bool = True


class Tool(Struct, frozen=True):
    """What an agent is told about a tool."""

    name: str
    description: str
    parameters: tuple[Parameter, ...]


class Task(Struct, frozen=True):
    """What an agent is asked to do: reach ``tool`` with what ``arguments`` mean, as a person would write them."""

    job: str
    text: str
    tool: str
    arguments: dict[str, Any]


class Answer(Struct, frozen=True):
    """What a tool answers: its output, or an error."""

    content: str = ""
    error: str = ""


class _Doing(Struct, frozen=True):
    """A tool that does something, with the rules it hides, in the order in which they are checked."""

    tool: Tool
    rules: tuple[Rule, ...]


class Environment:
    """Tools, tables and rules.

    :param seed: of the names, of which tool hides which rules, and of the tasks.
    """

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)
        self._names = Names(self._random)
        self._tables = sqlite3.connect(":memory:", isolation_level=None)
        self._tables.executescript(
            "CREATE TABLE stored (argument TEXT, value, PRIMARY KEY (argument, value)) WITHOUT ROWID;"
            "CREATE TABLE sheet (job TEXT, argument TEXT, value, PRIMARY KEY (job, argument)) WITHOUT ROWID;"
            "CREATE TABLE tokens (job TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID;"
            "CREATE TABLE opened (job TEXT PRIMARY KEY) WITHOUT ROWID;"
        )
        self._job = self._names.deal(words.CASES)
        self._note = self._names.deal(words.NOTES)
        self._draws: dict[str, Callable[[], Pair]] = {}
        self._people: dict[str, str] = {}
        self._wanted: dict[str, dict[str, Any]] = {}
        self._doing = self._build()
        self._calls: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {}
        self._helpers = self._build_helpers()
        self.tools: tuple[Tool, ...] = (*(one.tool for one in self._doing.values()), *self._helpers)

    @property
    def rules(self) -> tuple[tuple[str, Rule], ...]:
        """Every hidden rule with its tool; for tests and people, never for agents."""
        return tuple((tool, rule) for tool, doing in self._doing.items() for rule in doing.rules)

    def close(self) -> None:
        """Close the database."""
        self._tables.close()

    def draw(self) -> Task:
        """A new task, with a case of its own."""
        tool, doing = self._random.choice(list(self._doing.items()))
        job = f"{self._job}-{len(self._wanted) + 1001}"
        arguments: dict[str, Any] = {self._job: job}
        wanted: dict[str, Any] = {}
        for rule in doing.rules:
            if rule.argument in self._draws:
                arguments[rule.argument], value = self._draws[rule.argument]()
                wanted[rule.argument] = value
                if rule.kind in ("minor units", "duration"):
                    self._tables.execute("INSERT INTO sheet VALUES (?, ?, ?)", (job, rule.argument, value))
        arguments[self._note] = wanted[self._note] = self._random.choice(("as agreed", "asked by letter", "second try"))
        self._wanted[job] = wanted
        given = ", ".join(f"{name} {value}" for name, value in arguments.items())
        return Task(job, f"{tool}: {given}", tool, arguments)

    def done(self, task: Task) -> bool:
        """Whether the database holds what the task asked for: the sum of what is counted, all else to the letter."""
        wanted = self._wanted[task.job]
        counted = [rule.argument for rule in self._doing[task.tool].rules if rule.kind == "most"]
        columns = ", ".join(
            f"sum({_q(name)})" if name in counted else f"min({_q(name)}), max({_q(name)})" for name in wanted
        )
        expected = [value for name, value in wanted.items() for _ in range(1 if name in counted else 2)]
        row = self._tables.execute(
            f"SELECT {columns} FROM {_q(task.tool)} WHERE {_q(self._job)} = ?", (task.job,)
        ).fetchone()
        return list(row) == expected

    def call(self, tool: str, arguments: dict[str, Any]) -> Answer:
        """Call a tool."""
        known = next((one for one in self.tools if one.name == tool), None)
        if known is None:
            return Answer(error=f"there is no tool '{tool}'")
        accepted = {parameter.name for parameter in known.parameters}
        for name in arguments:
            if name not in accepted:
                return Answer(error=f"{tool} takes no '{name}'")
        for parameter in known.parameters:
            if parameter.required and parameter.name not in arguments:
                return Answer(error=f"{parameter.name} is required")
        try:
            return (
                self._do(tool, arguments) if tool in self._doing else Answer(json.dumps(self._calls[tool](arguments)))
            )
        except LookupError as error:
            return Answer(error=str(error.args[0]))

    def _do(self, tool: str, arguments: dict[str, Any]) -> Answer:
        doing = self._doing[tool]
        job = str(arguments[self._job])
        if job not in self._wanted:
            raise LookupError(f"there is no {self._job} '{job}'")
        for rule in doing.rules:
            error = rule.broken(self._tables, job, arguments.get(rule.argument))
            if error:
                return Answer(error=error)
        names = [parameter.name for parameter in doing.tool.parameters]
        places = ", ".join("?" * len(names))
        self._tables.execute(f"INSERT INTO {_q(tool)} VALUES ({places})", [arguments.get(name) for name in names])
        return Answer(json.dumps({self._job: job, "state": "accepted"}))

    def _build(self) -> dict[str, _Doing]:
        """Deal the rules to the tools: every tool gets two or three."""
        kinds = [*MESSAGES, *self._random.sample([kind for kind in MESSAGES if kind not in SINGLE], TWICE)]
        self._random.shuffle(kinds)
        built: dict[str, _Doing] = {}
        for number in range(TOOLS):
            name = self._names.deal(words.VERBS, words.THINGS)
            rules = tuple(map(self._rule, kinds[number::TOOLS]))
            parameters = [Parameter(self._job, "string")]
            for rule in rules:
                if rule.argument:
                    number_like = rule.kind in ("minor units", "duration", "most")
                    parameters.append(
                        Parameter(rule.argument, "number" if number_like else "string", rule.kind != "token")
                    )
            parameters.append(Parameter(self._note, "string"))
            what = " ".join(name.replace("-", " ").replace("_", " ").split())
            built[name] = _Doing(Tool(name, f"{what} for a {self._job}", tuple(parameters)), rules)
            columns = ", ".join(_q(parameter.name) for parameter in parameters)
            self._tables.execute(f"CREATE TABLE {_q(name)} ({columns})")
        return built

    def _rule(self, kind: str) -> Rule:
        argument = self._names.deal(ARGUMENTS[kind]) if kind in ARGUMENTS else ""
        found = pairs(kind, self._random)
        if callable(found):
            self._draws[argument] = found
        elif found:
            self._tables.executemany(
                "INSERT OR IGNORE INTO stored VALUES (?, ?)", [(argument, stored) for _, stored in found]
            )
            self._draws[argument] = lambda: self._random.choice(found)
        if kind == "person":
            self._people = dict(found)  # type: ignore[arg-type]
        limit = self._random.randrange(30, 60, 5) if kind == "most" else 0
        if limit:
            self._draws[argument] = lambda: (wanted := self._random.randrange(limit // 2, limit * 2), wanted)
        return Rule(kind, argument, self._random.choice(MESSAGES[kind]), limit)

    def _build_helpers(self) -> list[Tool]:
        """Tools that look up, open and show; which rule needs which is for agents to find out."""
        job = (Parameter(self._job, "string"),)
        person = next(rule.argument for _, rule in self.rules if rule.kind == "person")
        return [
            self._helper((words.LOOKERS, words.THINGS), (Parameter(person, "string"),), self._look_up),
            self._helper((words.ISSUERS, words.THINGS), job, self._issue),
            self._helper((words.OPENERS, words.THINGS), job, self._open),
            self._helper((words.VIEWERS, words.THINGS), job, self._show),
        ]

    def _helper(
        self,
        pools: Sequence[tuple[str, ...]],
        parameters: tuple[Parameter, ...],
        call: Callable[[dict[str, Any]], dict[str, Any]],
    ) -> Tool:
        name = self._names.deal(*pools)
        self._calls[name] = call
        what = " ".join(name.replace("-", " ").replace("_", " ").split())
        return Tool(name, f"{what} by {parameters[0].name}", parameters)

    def _look_up(self, arguments: dict[str, Any]) -> dict[str, Any]:
        ((argument, name),) = arguments.items()
        if name not in self._people:
            raise LookupError(f"nobody is called '{name}'")
        return {argument: name, "record": {"number": self._people[name], "since": 2019}}

    def _issue(self, arguments: dict[str, Any]) -> dict[str, Any]:
        job = self._known(arguments)
        token = f"{self._random.choice('XYZ')}{self._random.randrange(10**5, 10**6)}"
        self._tables.execute("INSERT OR REPLACE INTO tokens VALUES (?, ?)", (job, token))
        return {self._job: job, "granted": token}

    def _open(self, arguments: dict[str, Any]) -> dict[str, Any]:
        job = self._known(arguments)
        self._tables.execute("INSERT OR IGNORE INTO opened VALUES (?)", (job,))
        return {self._job: job, "state": "open"}

    def _show(self, arguments: dict[str, Any]) -> dict[str, Any]:
        return {self._job: self._known(arguments), "state": "new", "file": f"F-{self._random.randrange(100, 999)}"}

    def _known(self, arguments: dict[str, Any]) -> str:
        job = str(arguments[self._job])
        if job not in self._wanted:
            raise LookupError(f"there is no {self._job} '{job}'")
        return job


def _q(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
