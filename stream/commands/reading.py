"""What commands that read trace files have in common: a first look at the paths, and a bar."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, SpinnerColumn, TextColumn, TimeRemainingColumn

from stream.files import TraceFiles
from stream.logs import Level, configure


def check_paths(paths: list[str]) -> None:
    """Fail on what was asked for by name and cannot be read; what lies in a folder is only skipped.

    :raises OSError: naming the path.
    """
    for path in paths:
        if os.path.isfile(path):
            open(path, "rb").close()
        elif os.path.isdir(path):
            os.scandir(path).close()


@contextmanager
def progress(files: TraceFiles, verbose: bool) -> Iterator[Callable[[str], None]]:
    """Show on a terminal, and nowhere else, how far ``files`` were read, beside a text that the caller hands in."""
    if not sys.stderr.isatty():
        yield lambda text: None
        return
    bar = Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TimeRemainingColumn(),
        console=Console(file=sys.stderr),
        transient=True,
    )
    task = bar.add_task("reading", total=files.bytes_total)
    level: Level = "debug" if verbose else "warning"
    try:
        with bar:
            configure(level)  # to the bar's stderr, which writes above the bar and not into it
            yield lambda text: bar.update(task, completed=files.bytes_read, description=text)
    finally:
        configure(level)
