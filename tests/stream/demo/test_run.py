"""The whole demo: what it keeps, what it shows, and that it can be run again."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest

from operators.values import Outcome, Trace
from stream.demo.agents import Done
from stream.demo.learning import Closed, digest
from stream.demo.run import DemoResult, demo, run_demo
from stream.demo.screen import Board, Rate, Screen, traces_file
from stream.files import TraceFiles
from stream.records import Found
from stream.states import entries, newest, update_of
from stream.store import Store


async def run(at: Path | None, out: io.StringIO, **changed: Any) -> DemoResult:
    given = {"seed": 5, "agents": 6, "tasks": 120, "seconds": 30.0, "speed": 40.0}
    return await run_demo(at=at, out=out, **{**given, **changed})


async def test_it_leaves_a_store_and_its_traces_and_says_where(tmp_path: Path) -> None:
    at, out = tmp_path / "a b" / "store", io.StringIO()
    result = await run(at, out)
    text = out.getvalue()
    with Store.open(at, write=False) as store:
        assert store.prompts() == ["demo"]
        prompt = store.prompt("demo")
        assert newest(prompt).now.bullets == (result.update and result.update.bullets)
        log = list(entries(prompt))
        kept = {id: content for entry in log for id, content in entry.traces}
    assert sum(entry.batch_size for entry in log) == len(kept) == 120
    assert [window.traces for window in result.board.windows] == [entry.batch_size for entry in log]
    found = [record for chunk in TraceFiles([traces_file(at)]) for record in chunk]
    assert {one.trace.id: one.digest.hex() for one in found if isinstance(one, Found)} == kept
    assert all(isinstance(one, Found) and digest(one.trace) == kept[one.trace.id] for one in found)
    assert "simulated latency" in text
    assert "\x1b" not in text
    assert f"tracecomb show demo --at '{at}'" in text
    assert result.update is not None
    for bullet in result.update.bullets:
        assert bullet.content in text


async def test_a_closed_stdout_ends_it_as_such(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Closed(io.StringIO):
        def write(self, text: str, /) -> int:
            if "version" in text:
                raise BrokenPipeError
            return len(text)

    with pytest.raises(BaseExceptionGroup) as caught:
        await run(tmp_path / "s", Closed())
    assert caught.value.subgroup(BrokenPipeError)
    assert caught.value.subgroup(SystemExit) is None


def test_the_command_says_that_nobody_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def broken(**given: object) -> None:
        raise ExceptionGroup("tasks", [ExceptionGroup("inner", [BrokenPipeError()])])

    monkeypatch.setattr("stream.demo.run.run_demo", broken)
    with pytest.raises(BrokenPipeError):
        demo(str(tmp_path / "s"), seed=0, agents=1)


async def test_run_again_it_takes_another_prompt_so_that_agents_start_anew(tmp_path: Path) -> None:
    first = await run(tmp_path / "s", io.StringIO(), tasks=30)
    second = await run(tmp_path / "s", io.StringIO(), tasks=30)
    assert (first.prompt, second.prompt) == ("demo", "demo-2")
    assert 0 in second.board.rates
    with Store.open(tmp_path / "s", write=False) as store:
        assert store.prompts() == ["demo", "demo-2"]
        assert update_of(store.prompt("demo"), 1).lineage == store.lineage


async def test_it_stops_by_time_and_learns_what_was_done(tmp_path: Path) -> None:
    result = await run(tmp_path / "s", io.StringIO(), tasks=10**6, seconds=0.5)
    assert 0 < result.board.tasks < 10**6
    assert sum(window.traces for window in result.board.windows) == result.board.tasks


def done(version: int, success: bool) -> Done:
    return Done(version, success, Trace(outcome=Outcome(success)))


def board() -> Board:
    made = Board(windows=[Closed(8, 8, 0.5)], bullets=3, reason="because", seconds=2.0)
    for version in range(40):
        for task in range(20):
            made.count(done(version, task < version))
    return made


def test_rows_join_neighbours_and_lose_no_task() -> None:
    made = board()
    rows = made.rows()
    assert rows[0] == Rate(0, 0, 20, 0, 0)
    assert sum(row.tasks for row in rows) == made.tasks == 800
    assert [row.first for row in rows[1:]] == [row.last + 1 for row in rows[:-1]]
    assert len(rows) < 12
    assert made.rates[1] == Rate(1, 1, 20, 1, 0)


@pytest.mark.parametrize("terminal", [True, False])
def test_the_screen_shows_rates_sizes_and_what_is_simulated(terminal: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")
    out = io.StringIO()
    monkeypatch.setattr(out, "isatty", lambda: terminal)
    with Screen(out, about="a simulated latency [x]") as screen:
        screen.show(Board())
        screen.show(board())
        screen.end(board(), None, Path("/s"), "demo")
    text = out.getvalue()
    assert "a simulated latency [x]" in text
    assert ("\x1b" in text) is terminal
    for part in (
        "batch sizes: 8",
        "because",
        "800 tasks",
        "none",
        "100%",
        "Nothing was learned",
        "tracecomb history demo",
    ):
        assert part in text
    assert ("3 bullets" in text) is not terminal


def test_an_empty_board_has_no_rows() -> None:
    assert Board().rows() == []
    assert Rate(0, 0).share == 0.0
