"""What every command's arguments are made of: the parser, a command's description, and kinds of arguments."""

from __future__ import annotations

import os
import re
from argparse import ArgumentParser, ArgumentTypeError, Namespace, RawDescriptionHelpFormatter
from collections.abc import Callable
from importlib import import_module
from typing import Any, NamedTuple, NoReturn, cast

from stream.config import Config
from stream.exits import USAGE

Run = Callable[[Namespace, Config], int]

_DAY = 86_400
_NUMBER = re.compile(r"-?[0-9]{1,19}")


class Command(NamedTuple):
    """A command: where its function is, what it is about, an example of it, and what adds its arguments.

    :param name: one word, or that of a group and its own.
    :param more: what else its help says, after what it is about.
    """

    name: str
    function: str
    about: str
    example: str
    add_arguments: Callable[[Parser], None]
    more: str = ""

    def load(self) -> Run:
        """Import the function, which is not done before it runs: ``show`` need not wait for what ``replay`` needs."""
        module, _, name = self.function.partition(".")
        return cast(Run, getattr(import_module(f"stream.commands.{module}"), name))


class Parser(ArgumentParser):
    """A parser whose errors are one line, and that takes no flag for another because it begins like it."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"allow_abbrev": False, "formatter_class": RawDescriptionHelpFormatter, **options})

    def error(self, message: str) -> NoReturn:
        """Say what is wrong, and leave."""
        self.exit(USAGE, f"{self.prog}: {message}; see {self.prog} --help\n")


def name(text: str) -> str:
    """A prompt's name."""
    if not text:
        raise ArgumentTypeError("a prompt's name is empty")
    try:
        return os.fsencode(text).decode()  # names are UTF-8, also where the locale is not
    except UnicodeError:
        raise ArgumentTypeError("a prompt's name is not UTF-8") from None


def place(text: str) -> str:
    """A path or an address."""
    if not text:
        raise ArgumentTypeError("an empty path")
    return text


def number(text: str) -> int:
    """A whole number."""
    if not _NUMBER.fullmatch(text):
        raise ArgumentTypeError(f"{text!r} is no whole number")
    return int(text)


def count(text: str) -> int:
    """A whole number from 1 up."""
    value = number(text)
    if value < 1:
        raise ArgumentTypeError(f"{text} is less than 1")
    return value


def seconds(text: str) -> float:
    """A time from 0 up to a day."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= _DAY:
        raise ArgumentTypeError(f"{text!r} is no number of seconds from 0 to {_DAY:,}")
    return value


def number_or_text(text: str) -> int | str:
    """What is no number is left to the configuration, which knows what else is allowed."""
    return int(text) if _NUMBER.fullmatch(text) else text
