"""What the demo shows: a screen that lives on a terminal, plain lines elsewhere."""

from __future__ import annotations

import shlex
from pathlib import Path
from textwrap import fill
from typing import TextIO

from msgspec import Struct, field
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from operators.values import Update
from stream.demo.agents import Done
from stream.demo.learning import Closed

_ROWS = 10
_BAR = 30


class Rate(Struct):
    """Tasks done with versions ``first`` to ``last`` of the prompt."""

    first: int
    last: int
    tasks: int = 0
    successes: int = 0
    calls: int = 0

    @property
    def share(self) -> float:
        return self.successes / self.tasks if self.tasks else 0.0

    @property
    def versions(self) -> str:
        return str(self.first) if self.first == self.last else f"{self.first}-{self.last}"


class Board(Struct):
    """What has happened so far."""

    rates: dict[int, Rate] = field(default_factory=dict)
    windows: list[Closed] = field(default_factory=list)
    bullets: int = 0
    reason: str = ""
    seconds: float = 0.0

    def count(self, done: Done) -> None:
        """Count a finished task to its version."""
        rate = self.rates.setdefault(done.version, Rate(done.version, done.version))
        rate.tasks += 1
        rate.successes += done.success
        rate.calls += sum(len(step.calls) for step in done.trace.steps)

    @property
    def tasks(self) -> int:
        return sum(rate.tasks for rate in self.rates.values())

    def rows(self, most: int = _ROWS) -> list[Rate]:
        """Rates by version, neighbours joined so that each row but the first has its share of the tasks."""
        enough = max(20, self.tasks // most)
        rows: list[Rate] = []
        for version in sorted(self.rates):
            rate = self.rates[version]
            if rows and rows[-1].first > 0 and rows[-1].tasks < enough:
                last = rows[-1]
                last.last = version
                last.tasks += rate.tasks
                last.successes += rate.successes
                last.calls += rate.calls
            else:
                rows.append(Rate(version, version, rate.tasks, rate.successes, rate.calls))
        return rows


class Screen:
    """Shows a board; use as a context manager."""

    def __init__(self, out: TextIO, *, about: str, width: int | None = None) -> None:
        self.console = Console(file=out, width=width, highlight=False, soft_wrap=not out.isatty())
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
            last = board.rows()[-1]
            self.console.print(
                f"{board.seconds:5.1f} s  version {len(board.windows)}  batch size {board.windows[-1].traces}  "
                f"{board.bullets} bullets  versions {last.versions}: {last.share:.0%} of {last.tasks} tasks succeed",
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
        store = shlex.quote(str(at))
        out.print()
        out.print(f"The store is {at}. Look at it with:", markup=False)
        for command in (
            f"tracecomb show {prompt} --at {store} --format ace",
            f"tracecomb history {prompt} --at {store}",
            f"tracecomb diff {prompt} 1 {len(board.windows)} --at {store}",
            f"tracecomb replay {shlex.quote(str(traces_file(at)))} --at ./again.d     # the same traces, as a log",
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
