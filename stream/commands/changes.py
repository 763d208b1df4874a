"""Changing prompts by hand: ``rollback`` and ``import``."""

from __future__ import annotations

import getpass
import socket
import sys
from argparse import Namespace
from datetime import UTC, datetime
from pathlib import Path

from operators.imports import import_delta
from stream.commands.at import opened
from stream.config import Config
from stream.formats import FormatError, Imported, read
from stream.place import Asked
from stream.terminal import counted, line, say

_MOST_TOLD = 20


def rollback(options: Namespace, config: Config) -> int:
    """Make the lessons of an older version the newest version."""
    with opened(options, config) as place:
        made = place.rollback(options.prompt, options.to, _asked())
    same = "" if made.changed else ", which are those it had"
    line(
        f"{options.prompt}: version {made.version} has the lessons of version {options.to}{same} "
        f"({counted(made.bullets, 'bullet')})"
    )
    return 0


def import_(options: Namespace, config: Config) -> int:
    """Merge a playbook file into a prompt."""
    imported = _read(options.file, options.format)
    with opened(options, config) as place:
        made = place.merge(options.prompt, imported, _asked())
    if not made.made:
        line(f"{options.prompt}: version {made.version} has all of it already, no new version")
        if made.hidden:
            say(f"{counted(made.hidden, 'bullet')} of it are not shown any more: replaced, removed or over budget")
        return 0
    if made.evicted:
        budget = "budget" if made.budget is None else f"budget of {made.budget:,} tokens"
        say(
            f"{counted(made.evicted, 'bullet')} beyond the {budget} went, the least useful ones; token_budget under "
            "[learning] in the configuration sets it"
        )
    line(
        f"{options.prompt}: version {made.version} has {counted(made.bullets, 'bullet')}, "
        f"{counted(len(imported.bullets), 'bullet')} of {options.file} merged in"
    )
    return 0


def _read(file: str, format: str | None) -> Imported:
    """The bullets of a file; what was not understood in it is said.

    :raises FormatError: when there is none.
    """
    path = Path(file)
    data = sys.stdin.buffer.read() if file == "-" else path.read_bytes()
    try:
        imported = read(data, path.name, format)
    except FormatError as error:
        raise FormatError(f"{file}: {error}") from error
    troubles = [*imported.warnings, *(f"{each.where} left out: {each.reason}" for each in imported.refused)]
    for trouble in troubles[:_MOST_TOLD]:
        say(f"{file}: {trouble}")
    if len(troubles) > _MOST_TOLD:
        say(f"{file}: and so on, {len(troubles) - _MOST_TOLD:,} more")
    if not import_delta(imported.bullets).texts:
        raise FormatError(f"{file}: no bullet in it (read as {imported.format}), so nothing was imported")
    return imported


def _asked() -> Asked:
    at = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    return Asked(f"{_user()}@{socket.gethostname()}", at)


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError):  # a container's user need not have a name
        return "unknown"
