"""What is logged, in which form, and what never is."""

from __future__ import annotations

import io
import json
import logging
import warnings
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest
import structlog

from operators.values import Step, Trace
from stream import logs


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    """Undo what ``configure`` sets for the whole process."""
    root = logging.getLogger()
    level, handlers = root.level, list(root.handlers)
    root.handlers = []
    yield
    structlog.reset_defaults()
    structlog.contextvars.clear_contextvars()
    logging.captureWarnings(False)
    root.handlers = handlers
    root.setLevel(level)


def lines(out: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in out.getvalue().splitlines()]


def test_json_lines_with_what_is_bound() -> None:
    out = io.StringIO()
    logs.configure("info", out)
    with structlog.contextvars.bound_contextvars(prompt="support/refunds", window=3, version=4):
        structlog.get_logger().info("window closed", traces=40)
        logging.getLogger("aiokafka").warning("lost %s", "broker", extra={"node": 1})
    ours, theirs = lines(out)
    bound = {"prompt": "support/refunds", "window": 3, "version": 4}
    assert ours.items() >= {**bound, "event": "window closed", "level": "info", "traces": 40}.items()
    assert (
        theirs.items() >= {**bound, "event": "lost broker", "level": "warning", "logger": "aiokafka", "node": 1}.items()
    )
    for line in (ours, theirs):
        assert datetime.fromisoformat(line["timestamp"]).utcoffset() == timedelta(0)


def test_level_holds_for_all_loggers() -> None:
    out = io.StringIO()
    logs.configure("warning", out)
    structlog.get_logger().info("ours")
    logging.getLogger("theirs").info("theirs")
    assert out.getvalue() == ""
    logs.configure("debug", out)
    structlog.get_logger().debug("ours")
    logging.getLogger("theirs").debug("theirs")
    assert [line["event"] for line in lines(out)] == ["ours", "theirs"]


@pytest.mark.parametrize("stream", [io.StringIO, Terminal])
def test_text_of_traces_stays_out_above_debug(stream: type[io.StringIO]) -> None:
    trace = Trace(id="t-1", task="secret", steps=(Step(content="secret"),))

    def say(level: str) -> str:
        out = stream()
        logs.configure("debug", out)
        for logger in (structlog.get_logger(), logging.getLogger("stdlib")):
            extra = {"extra": {"content": "secret"}} if isinstance(logger, logging.Logger) else {"content": "secret"}
            getattr(logger, level)("reflected", **extra)
        getattr(structlog.get_logger(), level)("reflected", trace=trace, step=trace.steps[0])
        return out.getvalue()

    for level in ("info", "warning", "error"):
        assert "secret" not in say(level)
        assert "t-1" in say(level)
    assert say("debug").count("secret") >= 3


@pytest.mark.parametrize("stream", [io.StringIO, Terminal])
def test_exceptions_show_no_locals(stream: type[io.StringIO]) -> None:
    out = stream()
    logs.configure("info", out)
    task = "sec" + "ret"
    try:
        raise ValueError("went wrong")
    except ValueError:
        structlog.get_logger().exception("failed")
        logging.getLogger("theirs").exception("failed", extra={"size": len(task)})
    assert out.getvalue().count("ValueError: went wrong") == 2
    assert "secret" not in out.getvalue()


@pytest.mark.parametrize("stream", [io.StringIO, Terminal])
def test_names_cannot_forge_lines(stream: type[io.StringIO]) -> None:
    out = stream()
    logs.configure("info", out)
    structlog.get_logger().info("closed\nforged", prompt="a\r\nforged\x1b[2J\u2028\udc80b")
    assert len(out.getvalue().splitlines()) == 1
    assert "\x1b[2J" not in out.getvalue()


def test_colour_on_terminals_unless_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    coloured, plain = Terminal(), Terminal()
    logs.configure("info", coloured)
    structlog.get_logger().info("hello")
    monkeypatch.setenv("NO_COLOR", "1")
    logs.configure("info", plain)
    structlog.get_logger().info("hello")
    assert "\x1b[" in coloured.getvalue()
    assert "\x1b[" not in plain.getvalue()
    assert "hello" in plain.getvalue()


def test_stderr_is_the_default(capsys: pytest.CaptureFixture[str]) -> None:
    logs.configure()
    structlog.get_logger().info("hello")
    out, err = capsys.readouterr()
    assert out == ""
    assert json.loads(err)["event"] == "hello"


def test_warnings_are_logged() -> None:
    out = io.StringIO()
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        logs.configure("info", out)
        warnings.warn("odd", stacklevel=1)
        logging.captureWarnings(False)
    assert "UserWarning: odd" in lines(out)[0]["event"]
