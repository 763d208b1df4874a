"""A bar for what takes long on a cluster."""

from __future__ import annotations

import sys
import time

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from stream.logs import Level, configure

_QUIET_SECONDS = 1.0


class Watching:
    """Shows on a terminal, and nowhere else, how far something has come, once it has taken a second.

    :param verbose: as the command's logs are.
    """

    def __init__(self, verbose: bool) -> None:
        self._level: Level = "debug" if verbose else "warning"
        self._started = time.monotonic()
        self._bar: Progress | None = None

    def at(self, doing: str, done: int, total: int) -> None:
        """Show how far something has come."""
        if not sys.stderr.isatty() or time.monotonic() < self._started + _QUIET_SECONDS:
            return
        if self._bar is None:
            self._bar = Progress(
                TextColumn("{task.description}"),
                BarColumn(),
                TaskProgressColumn(),
                TimeRemainingColumn(),
                console=Console(file=sys.stderr),
                transient=True,
            )
            self._bar.add_task("")
            self._bar.start()
            configure(self._level)  # to the bar's stderr, which writes above the bar and not into it
        self._bar.update(self._bar.task_ids[0], description=doing, completed=done, total=total)

    def hide(self) -> None:
        """Take the bar away, for results come now; what follows may show it again."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None
            configure(self._level)
