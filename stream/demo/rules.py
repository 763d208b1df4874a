"""The rules of an environment that its tool descriptions do not tell: SQL over its tables, and the errors they give.

A rule knows pairs of what a person would write and what the table holds. What a call passes is accepted when the
table, the sheet of the case or a limit says so; nothing here says how to get from one to the other.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from datetime import date, time, timedelta
from random import Random
from typing import Any

from msgspec import Struct

Pair = tuple[Any, Any]
"""What a person would write, and what the environment holds."""

_STORED = "SELECT 1 FROM stored WHERE argument = :argument AND value IS :value"
_SHEET = (
    "SELECT 1 FROM sheet WHERE job = :job AND argument = :argument AND value IS :value AND typeof(:value) = 'integer'"
)

CHECKS = {
    "minor units": _SHEET,
    "duration": _SHEET,
    "person": _STORED,
    "token": "SELECT 1 FROM tokens WHERE job = :job AND value IS :value",
    "most": "SELECT typeof(:value) = 'integer' AND :value BETWEEN 1 AND :limit",
    "opened": "SELECT 1 FROM opened WHERE job = :job",
}
"""How each kind of rule is checked; the kinds that are not here look in the table of stored values."""

SINGLE = ("person", "token", "most", "opened")
"""Kinds of which an environment has one rule only: each has a tool or a table of its own."""

MESSAGES = {
    "minor units": ("{name} {value} is not on the sheet", "the books have no {name} of {value}"),
    "duration": ("{name} {value} does not fit the roster", "no slot has a {name} of {value}"),
    "day": ("{name}: '{value}' is not a day in the calendar", "cannot read {name} '{value}'"),
    "clock": ("{name}: '{value}' is not a time of ours", "{name} '{value}' is not in the timetable"),
    "code": ("unknown {name} '{value}'", "{name} '{value}' is not listed"),
    "padded": ("no {name} '{value}'", "{name} '{value}' does not exist"),
    "choice": ("{name} '{value}' is not one of ours", "'{value}' is no {name}"),
    "digits": ("{name} '{value}' is malformed", "cannot dial {name} '{value}'"),
    "filed name": ("nobody is filed as {name} '{value}'", "{name} '{value}' is not on file"),
    "person": ("{name} '{value}' has no record", "there is no record of {name} '{value}'"),
    "token": ("{name} is missing or not valid", "not allowed without a valid {name}"),
    "most": ("{name} may be {limit} at most in one call", "more than {limit} {name} in one call"),
    "opened": ("nothing is open here yet", "this is still closed"),
}
"""The environment's own words, two for each kind; the seed takes one."""

WORDS = ("Ann Lee", "Bo Chen", "Cara Diaz", "Dan Roy", "Eve Okoro", "Finn Moss", "Gita Rao", "Hugo Brandt")


class Rule(Struct, frozen=True):
    """One hidden rule of a tool. ``argument`` is empty for a rule about the order of calls."""

    kind: str
    argument: str
    message: str
    limit: int = 0

    def broken(self, tables: sqlite3.Connection, job: str, value: Any) -> str:
        """The error when the tables do not accept ``value`` for this case, else the empty text."""
        if not isinstance(value, str | int | float | None):
            value = str(value)
        named = {"argument": self.argument, "value": value, "job": job, "limit": self.limit}
        check = CHECKS.get(self.kind, _STORED)
        row = tables.execute(check, named).fetchone()
        return "" if row and row[0] else self.message.format(name=self.argument, value=value, limit=self.limit)


def pairs(kind: str, random: Random) -> Callable[[], Pair] | list[Pair]:
    """The pairs of a kind, in the spelling that the seed chose: a list, or a function that draws one where they have
    no end."""
    make = _MAKERS.get(kind)
    return make(random) if make else []


def _scaled(factors: tuple[int, ...]) -> Callable[[Random], Callable[[], Pair]]:
    def make(random: Random) -> Callable[[], Pair]:
        factor = random.choice(factors)

        def draw() -> Pair:
            twentieths = random.randrange(40) * 20 + random.randrange(1, 20)  # never a whole number
            return round(twentieths / 20, 2), twentieths * factor // 20

        return draw

    return make


def _days(random: Random) -> list[Pair]:
    style = random.choice(("%Y-%m-%d", "%Y%m%d", "%d.%m.%Y"))
    days = [date(2026, 1, 1) + timedelta(day) for day in range(365)]
    return [(f"{day.day} {day:%B %Y}", day.strftime(style)) for day in days]


def _times(random: Random) -> list[Pair]:
    style = random.choice(("%H:%M", "%H%M", "%H.%M"))
    times = [time(hour, minute) for hour in range(24) for minute in (0, 10, 15, 30, 45)]
    return [(f"{at:%I:%M %p}".lstrip("0").lower(), at.strftime(style)) for at in times]


def _codes(random: Random) -> list[Pair]:
    codes = sorted({"".join(random.choices("ABCDEFGHKLMNPRSTUVW", k=3)) for _ in range(60)})
    return [(code.lower(), code) for code in codes]


def _padded(random: Random) -> list[Pair]:
    width = random.randrange(6, 10)
    return [(str(number), str(number).zfill(width)) for number in sorted(random.sample(range(101, 99_999), 60))]


def _choices(random: Random) -> list[Pair]:
    first, second, third = ("next", "same", "slow"), ("day", "week", "night"), ("air", "road", "sea")
    plain = [(one, two, three) for one in first for two in second for three in third]
    spell: Callable[[tuple[str, ...]], str] = random.choice(
        (
            lambda words: "_".join(words).upper(),
            lambda words: "-".join(words),
            lambda words: "".join(map(str.title, words)),
        )
    )
    return [(" ".join(words), spell(words)) for words in plain]


def _digits(random: Random) -> list[Pair]:
    parts = [
        (random.randrange(30, 99), random.randrange(100, 999), random.randrange(10_000, 99_999)) for _ in range(60)
    ]
    return [(f"+{a} ({b}) {c // 1000}-{c % 1000:03}", f"{a}{b}{c}") for a, b, c in parts]


def _filed(random: Random) -> list[Pair]:
    case = random.choice((str, str.upper))
    return [(name, f"{case(name.split()[1])}, {name.split()[0]}") for name in WORDS]


def _people(random: Random) -> list[Pair]:
    letter = random.choice("BCDGKMP")
    return [
        (name, f"{letter}-{number}")
        for name, number in zip(WORDS, random.sample(range(10_000, 99_999), 8), strict=True)
    ]


_MAKERS: dict[str, Callable[[Random], Callable[[], Pair] | list[Pair]]] = {
    "minor units": _scaled((100, 1000)),
    "duration": _scaled((60, 3600)),
    "day": _days,
    "clock": _times,
    "code": _codes,
    "padded": _padded,
    "choice": _choices,
    "digits": _digits,
    "filed name": _filed,
    "person": _people,
}
