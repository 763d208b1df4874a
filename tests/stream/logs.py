"""Trace logs for tests: realistic, as long as one likes, and each line known from its number alone.

Agents call tools and get some of the arguments wrong at first, so there is something to learn; lines are half a
kilobyte to a kilobyte and come at some hundred thousand a second.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from hashlib import blake2b
from pathlib import Path
from typing import Any

from msgspec import Struct

_TOOLS = ("refund", "ship", "quote", "search", "book", "cancel", "invoice", "transfer", "lookup", "notify")
_ARGUMENTS = (
    ("amount", "12.50", "1250", "amount must be a whole number of cents, got 12.50"),
    ("date", '"3 May"', '"2026-05-03"', "date must look like YYYY-MM-DD, got '3 May'"),
    ("currency", '"euro"', '"EUR"', "currency 'euro' is not an ISO 4217 code"),
    ("reason", '""', '"damaged on arrival"', "reason is required"),
    ("limit", "5000", "100", "limit 5000 is over the limit of 100"),
)
_TALK = (
    "Let me look at what the customer wrote and check the order before anything is changed. ",
    "The order is there, it was paid by card, and nothing has been sent back so far. ",
    "Das Konto von Zoë ist aktiv – ich prüfe die Lieferadresse noch einmal. ",
    "I will do this step by step, and tell the customer what was done at the end. ",
)
_SYSTEM = '{"role":"system","content":"You help customers of a shop that sells furniture. Be brief."},'
_BAD = (
    b'{"schema":1,"id":"t-%d","prompt":"p","steps":[{"role":"assis',
    b'{"level":"info","message":"request %d done"}',
    b"\xff\xfe not JSON %d",
    b'{"id":"t-%d","steps":{"role":"user"}}',
)
_MONTHS = 28 * 24 * 3600


class Log(Struct, frozen=True, kw_only=True):
    """A recipe for a log.

    :param count: how many different traces there are.
    :param seed: other seeds give other traces with other ids.
    :param prompts: how many prompts they are of; the first has the most.
    :param repeats: of 1,000 lines, how many repeat an earlier one.
    :param conflicts: of 1,000 lines, how many have the id of an earlier one and other content.
    :param bad: of 1,000 lines, how many are no trace.
    :param named: display ids; every fifth trace says that its agent had read three of them.
    :param bare: without the talk, a quarter of the size.
    """

    count: int
    seed: int = 0
    prompts: int = 3
    repeats: int = 0
    conflicts: int = 0
    bad: int = 0
    named: tuple[str, ...] = ()
    bare: bool = False

    def id(self, number: int) -> str:
        """The id of trace ``number``, from 0."""
        return f"t{self.seed}-{number}"

    def prompt(self, number: int) -> str:
        """The prompt of trace ``number``."""
        return self._prompt(self._dice(number))

    def line(self, number: int, task: str = "") -> bytes:
        """Trace ``number`` as a line without its end; ``task`` makes it another trace of the same id."""
        dice = self._dice(number)
        kind, tool = dice[0] % 20, _TOOLS[dice[1] % len(_TOOLS)]
        argument, wrong, right, error = _ARGUMENTS[dice[2] % len(_ARGUMENTS)]
        order = f'"order":"O-{number % 9973}"'
        good = _call("c2", tool, f'{order},"{argument}":{right}') + _answer("c2", number)
        bad = _call("c1", tool, f'{order},"{argument}":{wrong}') + _failure("c1", error)
        outcome = '{"success":true,"reward":1.0}'
        if kind < 10:
            steps = good
        elif kind < 16:
            steps = bad + good
        elif kind == 16:
            steps = bad * 3
            outcome = f'{{"success":false,"reward":0.0,"feedback":"the {argument} was never put right"}}'
        elif kind == 17:
            steps = good
            outcome = f'{{"success":false,"feedback":"{tool} was called for a customer who had only asked"}}'
        else:
            steps, outcome = good, "{}"
        talk = "" if self.bare else f'{{"role":"assistant","content":"{_TALK[dice[3] % 4]}{_TALK[dice[4] % 4]}"}},'
        named = ""
        if self.named and dice[5] % 5 == 0:
            chosen = {self.named[die % len(self.named)] for die in dice[6:9]}
            named = f'"bullets":[{",".join(map(json.dumps, sorted(chosen)))}],'
        times = ""
        if dice[9] % 16:
            second = (number + dice[10] % 60) % _MONTHS  # a little out of order
            day, rest = divmod(second, 86400)
            times = f'"ended":"2026-02-{day + 1:02}T{rest // 3600:02}:{rest // 60 % 60:02}:{rest % 60:02}Z",'
        return (
            f'{{"schema":1,"id":"{self.id(number)}","prompt":"{self._prompt(dice)}","agent":"shop-bot",{named}{times}'
            f'"session":"s{self.seed}-{number // 3}","task":"{task or "Handle"} order O-{number % 9973}","steps":['
            f'{"" if self.bare else _SYSTEM}{talk}{steps}{{"role":"assistant","content":"Done."}}],'
            f'"outcome":{outcome}}}'
        ).encode()

    def lines(self) -> Iterator[bytes]:
        """All lines, without their ends."""
        odd = self.repeats + self.conflicts + self.bad
        for number in range(self.count):
            yield self.line(number)
            if not odd:
                continue
            dice = self._dice(-number - 1)
            chance = int.from_bytes(dice[:4], "big") % 1000
            back = number - int.from_bytes(dice[4:8], "big") % (number + 1) // (1 + dice[8] % 50)
            if chance < self.repeats:
                yield self.line(back)
            elif chance < self.repeats + self.conflicts:
                yield self.line(back, "Dispute")
            elif chance < odd:
                yield _BAD[dice[9] % len(_BAD)] % number

    def write(self, path: Path) -> Path:
        """Write the log to a file, and return its path."""
        with path.open("wb") as file:
            for line in self.lines():
                file.write(line + b"\n")
        return path

    def ids(self) -> dict[str, list[str]]:
        """The ids of each prompt's traces, in order."""
        found: dict[str, list[str]] = {}
        for number in range(self.count):
            found.setdefault(self.prompt(number), []).append(self.id(number))
        return found

    def _dice(self, number: int) -> bytes:
        return blake2b(b"%d %d" % (self.seed, number), digest_size=16).digest()

    def _prompt(self, dice: bytes) -> str:
        share = int.from_bytes(dice[12:16], "big") / 2**32
        return f"shop/{int(share * share * self.prompts)}"


def _call(id: str, tool: str, arguments: str) -> str:
    return f'{{"role":"assistant","content":"","calls":[{{"id":"{id}","name":"{tool}","arguments":{{{arguments}}}}}]}},'


def _answer(id: str, number: int) -> str:
    return f'{{"role":"tool","call":"{id}","content":"{{\\"ok\\":true,\\"reference\\":{number}}}"}},'


def _failure(id: str, error: str) -> str:
    return f'{{"role":"tool","call":"{id}","content":"","error":"{error}"}},'


def trace(id: str, task: str = "a task", **fields: Any) -> bytes:
    """A trace that teaches a lesson of its own; without an id, one that has none."""
    steps = [
        {"role": "assistant", "calls": [{"id": "1", "name": "pay", "arguments": {"way": task}}]},
        {"role": "tool", "call": "1", "error": f"the way {task} is closed for {id}"},
        {"role": "assistant", "calls": [{"id": "2", "name": "pay", "arguments": {"way": "cash"}}]},
        {"role": "tool", "call": "2", "content": "paid"},
    ]
    value = {"schema": 1, "task": task, "steps": steps, **fields}
    return json.dumps({"id": id, **value} if id else value).encode()


def write(path: Path, *lines: bytes) -> Path:
    """Write lines to a file, and return its path."""
    path.write_bytes(b"\n".join(lines) + b"\n")
    return path
