"""Reading prompts: ``show``, ``history``, ``diff``, ``export``."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Sequence
from difflib import unified_diff
from pathlib import Path

from msgspec import UNSET
from rich.console import Console
from rich.table import Table

from operators.text import render
from operators.values import Bullet
from operators.wire import encode
from stream.atomic import Disk, replace
from stream.formats import write
from stream.promptstore import PromptStore
from stream.states import entries, update_of
from stream.store import Store
from stream.storeerrors import refusals

_COLOURS = {"+": "\x1b[32m", "-": "\x1b[31m", "@": "\x1b[36m"}


def show(options: Namespace) -> int:
    """Print one version of a prompt."""
    with Store.open(options.at, write=False) as store:
        prompt = store.prompt(options.prompt)
        sys.stdout.buffer.write(_written(prompt, options.version, options.format, None))
    return 0


def export(options: Namespace) -> int:
    """Write one version of a prompt to a file, whole or not at all; without a file, to stdout."""
    with Store.open(options.at, write=False) as store:
        prompt = store.prompt(options.prompt)
        if options.output in (None, "-"):
            sys.stdout.buffer.write(_written(prompt, options.version, options.format, None))
            return 0
        path = Path(options.output)
        with refusals(path):
            previous = path.read_bytes() if path.exists() else None
            replace(Disk(), path, _written(prompt, options.version, options.format, previous))
    print(f"wrote {path}", file=sys.stderr)
    return 0


def _written(prompt: PromptStore, version: int | None, format: str, previous: bytes | None) -> bytes:
    wanted = prompt.version if version is None else version
    update = update_of(prompt, wanted)
    if format == "json":
        return (prompt.update(wanted) if wanted else encode(update)) + b"\n"
    if format == "text":
        return (update.text + "\n").encode() if update.text else b""
    extra = _extra(prompt, format, wanted) if format in ("skillbook", "ace-json") else {}
    data = write(update.bullets, format, extra=extra, prompt=update.prompt, version=update.version, previous=previous)
    return data if not data or data.endswith(b"\n") else data + b"\n"


def _extra(prompt: PromptStore, format: str, version: int) -> dict[str, object]:
    """What the newest import of this format held besides bullets, so that an export gives it back."""
    extra: dict[str, object] = {}
    for entry in entries(prompt):
        if entry.version <= version and entry.kind == "import" and entry.audit.get("format") == format:
            extra = entry.audit.get("extra") or {}
    return extra


def history(options: Namespace) -> int:
    """Print a line a version, oldest first."""
    with Store.open(options.at, write=False) as store:
        prompt = store.prompt(options.prompt)
        if options.json:
            for entry in entries(prompt):
                line = {
                    "version": entry.version,
                    "base": entry.base,
                    "at": entry.at,
                    "kind": entry.kind,
                    "changed": entry.changed,
                    "batch_size": entry.batch_size,
                    "traces": [id for id, _ in entry.traces] if entry.kind == "window" else [],
                }
                sys.stdout.buffer.write(encode(line) + b"\n")
            return 0
        table = Table(box=None, pad_edge=False)
        for column in ("version", "base", "kind", "changed", "batch size", "bullets", "at"):
            table.add_column(
                column, justify="right" if column in ("version", "base", "batch size", "bullets") else "left"
            )
        for entry in entries(prompt):
            table.add_row(
                str(entry.version),
                str(entry.base),
                entry.kind,
                "yes" if entry.changed else "no",
                str(entry.batch_size) if entry.kind == "window" else "",
                str(len(update_of(prompt, entry.version).bullets)),
                entry.at or "",
            )
        Console(file=sys.stdout).print(table)
    return 0


def diff(options: Namespace) -> int:
    """Print what changed between two versions of a prompt."""
    with Store.open(options.at, write=False) as store:
        prompt = store.prompt(options.prompt)
        old, new = (update_of(prompt, version) for version in (options.a, options.b))
    lines = unified_diff(
        _lines(old.bullets, options.counts),
        _lines(new.bullets, options.counts),
        f"{options.prompt} version {options.a}",
        f"{options.prompt} version {options.b}",
        "" if old.at is UNSET else str(old.at),
        "" if new.at is UNSET else str(new.at),
        lineterm="",
    )
    colour = sys.stdout.isatty()
    for line in lines:
        paint = _COLOURS.get(line[:1]) if colour else None
        print(f"{paint}{line}\x1b[0m" if paint else line)
    return 0


def _lines(bullets: Sequence[Bullet], counters: bool) -> list[str]:
    return render(bullets, counters=counters).split("\n")
