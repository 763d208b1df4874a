"""The bar over long reads: on a terminal only, and gone before results come."""

from __future__ import annotations

import io
import sys

import pytest

from stream.commands import watching
from stream.commands.watching import Watching
from tests.stream.running import logs_as_before


class Screen(io.StringIO):
    """A stderr that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def test_nothing_where_nobody_looks(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watching, "_QUIET_SECONDS", 0.0)
    shows = Watching(verbose=False)
    shows.at("reading topic/3", 1, 10)
    shows.hide()
    assert capsys.readouterr() == ("", "")


def test_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Screen()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setenv("TERM", "xterm")
    with logs_as_before():
        shows = Watching(verbose=False)
        shows.at("reading topic/3", 1, 10)
        assert screen.getvalue() == ""  # what is quick shows nothing
        monkeypatch.setattr(watching, "_QUIET_SECONDS", 0.0)
        for _ in range(2):
            shows.at("reading topic/3", 4, 10)
            shows.hide()
            assert "reading topic/3" in screen.getvalue()
            assert "40%" in screen.getvalue()
            shows.hide()
            screen.seek(0)
            screen.truncate()
