"""What the demo shows: a screen that lives on a terminal, plain lines elsewhere."""

from __future__ import annotations

import shlex
from collections import deque
from pathlib import Path
from textwrap import fill
from typing import TextIO

from msgspec import Struct, field
from msgspec.structs import replace
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from operators.values import Update
from stream.demo.agents import Done
from stream.demo.learning import Closed
from stream.terminal import invoked

_FIRST_ROW, _GROWTH = 30, 1.4
_BAR = 30
_RECENT = 50


class Rate(Struct):
    """Tasks done with versions ``first`` to ``last`` of the prompt."""

    first: int
    last: int
    tasks: int = 0
    successes: int = 0
    calls: int = 0

    def join(self, other: Rate) -> None:
        """Take in the tasks of the versions that follow."""
        self.last = other.last
        self.tasks += other.tasks
        self.successes += other.successes
        self.calls += other.calls

    @property
    def share(self) -> float:
        return self.successes / self.tasks if self.tasks else 0.0

    @property
    def versions(self) -> str:
        return str(self.first) if self.first == self.last else f"{self.first}-{self.last}"


class Board(Struct):
    """What has happened so far."""

    rates: dict[int, Rate] = field(default_factory=dict)
    recent: deque[bool] = field(default_factory=lambda: deque(maxlen=_RECENT))
    windows: list[Closed] = field(default_factory=list)
    bullets: int = 0
    reason: str = ""
    seconds: float = 0.0

    def count(self, done: Done) -> None:
        """Count a finished task to its version."""
        self.recent.append(done.success)
        rate = self.rates.setdefault(done.version, Rate(done.version, done.version))
        rate.tasks += 1
        rate.successes += done.success
        rate.calls += sum(len(step.calls) for step in done.trace.steps)

    @property
    def tasks(self) -> int:
        return sum(rate.tasks for rate in self.rates.values())

    def rows(self) -> list[Rate]:
        """Rates by version, neighbours joined: a row is the larger the later it comes, for most happens early."""
        rows: list[Rate] = []
        for version in sorted(self.rates):
            rate = self.rates[version]
            if len(rows) > 1 and rows[-1].tasks < _FIRST_ROW * _GROWTH ** (len(rows) - 2):
                rows[-1].join(rate)
            else:
                rows.append(replace(rate))
        return rows


class _Console(Console):
    def on_broken_pipe(self) -> None:
        """Leave it to the command line what a closed stdout ends with; rich would end the process."""
        raise BrokenPipeError


class Screen:
    """Shows a board; use as a context manager."""

    def __init__(self, out: TextIO, *, about: str, width: int | None = None) -> None:
        self.console = _Console(file=out, width=width, highlight=False, soft_wrap=not out.isatty())
        self._about = about
        self._live = Live(console=self.console, auto_refresh=False) if self.console.is_terminal else None
        self._told = 0

    def __enter__(self) -> Screen:
        self.console.print(fill(self._about, min(100, self.console.width)), markup=False)
        self.console.print()
        if self._live:
            self._live.start()
        return self

    def __exit__(self, *exception: object) -> None:
        if self._live:
            self._live.stop()

    def show(self, board: Board) -> None:
        """Bring the screen up to date; off a terminal, a line when versions have come since the last."""
        if self._live:
            self._live.update(_picture(board), refresh=True)
        elif len(board.windows) >= self._told + 4 or (board.windows and not self._told):
            self._told = len(board.windows)
            self.console.print(
                f"{board.seconds:5.1f} s  version {len(board.windows)}  batch size {board.windows[-1].traces}  "
                f"{board.bullets} bullets  {sum(board.recent)} of the last {len(board.recent)} tasks succeeded",
                markup=False,
            )

    def end(self, board: Board, update: Update | None, at: Path, prompt: str) -> None:
        """Show the end: rates, sizes, the playbook, where it is, and what to run next."""
        if self._live:
            self._live.update(_picture(board), refresh=True)
            self._live.stop()
            self._live = None
        else:
            self.console.print()
            self.console.print(_rates(board))
            self.console.print(_sizes(board))
        out = self.console
        out.print()
        if update is None or not update.text.strip():
            out.print("Nothing was learned.")
        else:
            text = Text(update.text.rstrip())
            out.print(
                Panel(text, title=f"learned: version {update.version}", title_align="left") if out.is_terminal else text
            )
        store, ours = shlex.quote(str(at)), invoked()
        out.print()
        out.print(f"The store is {at}. Look at it with:", markup=False)
        for command in (
            f"{ours} show {prompt} --at {store} --format ace",
            f"{ours} history {prompt} --at {store}",
            f"{ours} diff {prompt} 1 {len(board.windows)} --at {store}",
            f"{ours} replay {shlex.quote(str(traces_file(at)))} --at ./again.d     # the same traces, as a log",
        ):
            out.print(f"  {command}", markup=False)


def traces_file(at: Path) -> Path:
    """Where the demo's traces are written: beside its store."""
    return at.with_name(f"{at.name}.traces.jsonl")


def _picture(board: Board) -> RenderableType:
    return Group(_rates(board), Text(), _sizes(board))


def _rates(board: Board) -> Table:
    table = Table(
        box=None, padding=(0, 2, 0, 0), title=f"{board.tasks} tasks, {board.seconds:.0f} s", title_justify="left"
    )
    table.add_column("prompt version", justify="right")
    table.add_column("tasks", justify="right")
    table.add_column("calls a task", justify="right")
    table.add_column("success")
    for rate in board.rows():
        bar = "█" * round(rate.share * _BAR)
        colour = "green" if rate.share > 0.8 else "yellow" if rate.share > 0.5 else "red"
        name = "none" if rate.last == 0 else rate.versions
        calls = f"{rate.calls / rate.tasks:.1f}" if rate.tasks else ""
        table.add_row(name, str(rate.tasks), calls, Text.assemble((f"{bar:<{_BAR}}", colour), f" {rate.share:4.0%}"))
    return table


def _sizes(board: Board) -> Text:
    sizes = " ".join(str(window.traces) for window in board.windows) or "-"
    return Text(f"batch sizes: {sizes}\ncontroller: {board.reason or 'waits for the first window'}")
