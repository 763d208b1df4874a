"""Logs: structlog and the standard library's loggers alike, to stderr, for a person on a terminal, else JSON lines.

What is bound with ``structlog.contextvars`` (prompt, window, version) stands in every line. What traces say is other
people's data, so above debug no text of theirs is written, and names that come from them cannot forge lines.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import MutableMapping
from typing import Any, Literal, TextIO

import structlog
from msgspec import Struct
from structlog.typing import Processor

from operators.values import Trace

Level = Literal["debug", "info", "warning", "error"]

TEXT_KEYS = frozenset(
    {
        "arguments",
        "content",
        "feedback",
        "insight",
        "line",
        "messages",
        "raw",
        "reasoning",
        "reply",
        "steps",
        "task",
        "text",
    }
)
"""Keys of a log line that hold text of traces or of replies to them; they are left out above debug."""


def configure(level: Level = "info", stream: TextIO | None = None) -> None:
    """Send all logs from ``level`` up to ``stream`` (stderr): coloured for a terminal, else one JSON object a line.

    Colour is left out where ``NO_COLOR`` is set. Calling it again replaces what was set before.
    """
    out = sys.stderr if stream is None else stream
    number = logging.getLevelNamesMapping()[level.upper()]
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        _keep_text_private,
        structlog.processors.format_exc_info,
    ]
    render: list[Processor]
    if out.isatty():
        colors = not os.environ.get("NO_COLOR")
        # The default would show the locals of every frame, and those hold traces and keys.
        plain = structlog.dev.plain_traceback
        render = [_one_line_each, structlog.dev.ConsoleRenderer(colors=colors, exception_formatter=plain)]
    else:
        render = [structlog.processors.JSONRenderer(default=str)]
    structlog.configure(
        processors=[*shared, *render],
        wrapper_class=structlog.make_filtering_bound_logger(number),
        logger_factory=structlog.WriteLoggerFactory(out),
        cache_logger_on_first_use=False,
    )
    handler = logging.StreamHandler(out)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[structlog.stdlib.add_logger_name, structlog.stdlib.ExtraAdder(), *shared],
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *render],
        )
    )
    logging.basicConfig(level=number, handlers=[handler], force=True)
    logging.captureWarnings(True)


def _keep_text_private(_: object, method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    if event.get("level", method) == "debug":
        return event
    for key in TEXT_KEYS.intersection(event):
        del event[key]
    for key, value in event.items():
        if isinstance(value, Trace):
            event[key] = value.id
        elif isinstance(value, Struct):
            event[key] = type(value).__name__
    return event


def _one_line_each(_: object, __: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    for key, value in event.items():
        if isinstance(value, str) and not value.isprintable():
            keep = "\n" if key in ("exception", "stack") else ""
            event[key] = "".join(c if c.isprintable() or c == keep else repr(c)[1:-1] for c in value)
    return event
