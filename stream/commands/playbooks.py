"""Reading prompts: ``show``, ``history``, ``diff``, ``export``."""

from __future__ import annotations

import json
from argparse import Namespace
from collections.abc import Sequence
from difflib import unified_diff
from pathlib import Path

from msgspec import UNSET

from operators.text import render
from operators.values import Bullet
from stream.commands.at import opened
from stream.commands.output import existing, put
from stream.config import Config
from stream.formats import FormatError, write
from stream.place import Prompt
from stream.terminal import document, line, say

_COLOURS = {"+": "\x1b[32m", "-": "\x1b[31m", "@": "\x1b[36m"}
_FORMATS = {".md": "markdown", ".markdown": "markdown", ".json": "json"}
_WITH_EXTRA = ("ace", "ace-json", "appworld", "skillbook")
_KEEPS_FILE = ("markdown", "skillbook")


def show(options: Namespace, config: Config) -> int:
    """Print one version of a prompt."""
    with opened(options, config) as place:
        prompt = place.prompt(options.prompt)
        document(_written(prompt, options.version, options.format))
    return 0


def export(options: Namespace, config: Config) -> int:
    """Write one version of a prompt to a file; without a file, to stdout."""
    to_stdout = options.output in (None, "-")
    path = Path("" if to_stdout else options.output)
    format = options.format or _FORMATS.get(path.suffix.lower(), "ace")
    with opened(options, config) as place:
        prompt = place.prompt(options.prompt)
        if to_stdout:
            document(_written(prompt, options.version, format))
            return 0
        previous = existing(path) if format in _KEEPS_FILE else None
        try:
            data = _written(prompt, options.version, format, previous)
        except FormatError as error:
            raise FormatError(f"{path}: {error}") from error
    put(path, data)
    say(f"wrote {path} ({format})")
    return 0


def _written(prompt: Prompt, version: int | None, format: str, previous: bytes | None = None) -> bytes:
    wanted = prompt.version if version is None else version
    if format == "json":
        return prompt.encoded(wanted) + b"\n"
    update = prompt.update(wanted)
    if format == "text":
        return (update.text + "\n").encode() if update.text else b""
    extra = prompt.extra(format, wanted) if format in _WITH_EXTRA else {}
    data = write(update.bullets, format, extra=extra, prompt=update.prompt, version=update.version, previous=previous)
    return data if not data or data.endswith(b"\n") else data + b"\n"


def history(options: Namespace, config: Config) -> int:
    """Print a line a version, oldest first."""
    with opened(options, config) as place:
        prompt = place.prompt(options.prompt)
        if not options.json:
            line("version    base  kind      changed  batch size  bullets  at")
        for entry in prompt.entries():
            is_window = entry.kind == "window"
            if options.json:
                traces = [id for id, _ in entry.traces] if is_window else []
                told = {
                    name: getattr(entry, name) for name in ("version", "base", "at", "kind", "changed", "batch_size")
                }
                line(json.dumps({**told, "traces": traces}))
                continue
            bullets = len(prompt.update(entry.version).bullets)
            size = f"{entry.batch_size:,}" if is_window else ""
            changed = "yes" if entry.changed else "no"
            line(
                f"{entry.version:>7} {entry.base:>7}  {entry.kind:<8}  {changed:<7}  {size:>10} {bullets:>8,}  "
                f"{entry.at or ''}".rstrip()
            )
    return 0


def diff(options: Namespace, config: Config) -> int:
    """Print what changed between two versions of a prompt."""
    with opened(options, config) as place:
        prompt = place.prompt(options.prompt)
        old, new = (prompt.update(version) for version in (options.a, options.b))
    lines = unified_diff(
        _lines(old.bullets, options.counts),
        _lines(new.bullets, options.counts),
        f"{options.prompt} version {options.a}",
        f"{options.prompt} version {options.b}",
        "" if old.at is UNSET else str(old.at),
        "" if new.at is UNSET else str(new.at),
        lineterm="",
    )
    for each in lines:
        line(each, _COLOURS.get(each[:1], ""))
    return 0


def _lines(bullets: Sequence[Bullet], counters: bool) -> list[str]:
    text = render(bullets, counters=counters)
    return text.split("\n") if text else []
