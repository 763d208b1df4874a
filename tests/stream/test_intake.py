"""Which traces of a log are new, whose prompt they are of, and what becomes of the others."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.stream.logs import Log, trace, write
from tests.stream.replaying import Versions, crashes, learned, replay, texts


@pytest.mark.parametrize("chunk", [1, 2, 512])
@pytest.mark.parametrize("size", [1, 2, 50])
def test_of_one_id_the_first_counts(tmp_path: Path, chunk: int, size: int) -> None:
    first = write(tmp_path / "1", trace("a"), trace("b", "one"), trace("a"), trace("b", "two"))
    second = write(tmp_path / "2", trace("c"), trace("a"), trace("b", "three"), trace("c"))
    root = tmp_path / "store"
    tally = replay(root, [first, second], size, chunk=chunk)
    assert learned(root) == {"default": ["a", "b", "c"]}
    assert (tally.learned, tally.duplicates, tally.conflicts) == (3, 5, 2)
    [shown] = texts(root).values()
    assert any("one" in text for text in shown)
    assert not any("two" in text or "three" in text for text in shown)
    # Nor does a later run take the other content.
    tally = replay(root, second, size, chunk=chunk)
    assert (tally.learned, tally.duplicates, tally.conflicts, tally.updates) == (0, 4, 1, 0)


def test_a_trace_without_an_id_is_told_by_its_content(tmp_path: Path) -> None:
    path = write(tmp_path / "log", trace("", "one"), trace("", "two"), trace("", "one"))
    tally = replay(tmp_path / "store", path, 8)
    assert (tally.learned, tally.duplicates, tally.conflicts) == (2, 1, 0)
    assert len(set(learned(tmp_path / "store")["default"])) == 2


def test_one_id_in_two_prompts_is_two_traces(tmp_path: Path) -> None:
    path = write(tmp_path / "log", trace("a", prompt="p"), trace("a", prompt="q"), trace("a", prompt="p"))
    tally = replay(tmp_path / "store", path, 8)
    assert learned(tmp_path / "store") == {"p": ["a"], "q": ["a"]}
    assert (tally.learned, tally.duplicates) == (2, 1)


def test_one_file_twice_and_a_file_and_its_folder_teach_once(tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    log = Log(count=30, prompts=2)
    path = log.write(folder / "log")
    tally = replay(tmp_path / "store", [path, folder, path], 8)
    assert learned(tmp_path / "store") == log.ids()
    assert (tally.learned, tally.duplicates, tally.conflicts) == (30, 60, 0)


def prompts(tmp_path: Path, lines: list[bytes], **settings: str) -> dict[str, list[str]]:
    path = write(tmp_path / "log", *lines)
    replay(tmp_path / "store", path, 2, replay=settings)
    return learned(tmp_path / "store")


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, {"mine": ["a", "b"], "default": ["c", "d"]}),
        ({"prompt": "other"}, {"mine": ["a", "b"], "other": ["c", "d"]}),
        ({"prompt": "of/{agent}"}, {"mine": ["a", "b"], "of/bot": ["c"], "default": ["d"]}),
        ({"force_prompt": "all"}, {"all": ["a", "b", "c", "d"]}),
        ({"force_prompt": "of/{agent}", "prompt": "never"}, {"of/bot": ["a", "c"], "default": ["b", "d"]}),
        ({"force_prompt": "{{{agent}}}"}, {"{bot}": ["a", "c"], "default": ["b", "d"]}),
        ({"prompt": "a\ud83d\ude00"}, {"mine": ["a", "b"], "a😀": ["c", "d"]}),
        ({"force_prompt": "x\udcff"}, {"x?": ["a", "b", "c", "d"]}),
    ],
)
def test_prompts(tmp_path: Path, settings: dict[str, str], expected: dict[str, list[str]]) -> None:
    lines = [trace("a", prompt="mine", agent="bot"), trace("b", prompt="mine"), trace("c", agent="bot"), trace("d")]
    assert prompts(tmp_path, lines, **settings) == expected


@pytest.mark.parametrize("name", ["../../etc", "x" * 300, "CON", "é", "e\u0301", " ", "a\nb", "\0", "%2f", "=", "."])
def test_prompt_names_are_data(tmp_path: Path, name: str) -> None:
    lines = [trace("a", prompt=name), trace("b", agent=name), trace("c", prompt=name)]
    expected = {name: ["a", "c"], f"by {name}": ["b"]}
    assert prompts(tmp_path, lines, prompt="by {agent}") == expected
    assert prompts(tmp_path, lines, prompt="by {agent}") == expected
    assert sorted(path.name for path in tmp_path.iterdir()) == ["log", "store"]


def test_a_repeat_in_the_chunk_in_which_its_window_closes(tmp_path: Path) -> None:
    # On resuming, passing over the trace of one prompt publishes what came before it in the same chunk.
    lines = [trace("done", prompt="q"), trace("a", prompt="p"), trace("more", prompt="q"), trace("a", prompt="p")]
    path = write(tmp_path / "log", *lines)
    short = write(tmp_path / "short", lines[0], lines[2])
    root = tmp_path / "store"
    assert crashes(root, short, Versions(2), 1)
    tally = replay(root, path, 1)
    assert learned(root) == {"p": ["a"], "q": ["done", "more"]}
    assert (tally.learned, tally.duplicates, tally.conflicts) == (1, 3, 0)


@pytest.mark.parametrize("chunk", range(1, 9))
def test_a_repeat_in_the_chunk_after(tmp_path: Path, chunk: int) -> None:
    lines = [trace("a", prompt="p"), trace("b", prompt="p"), trace("done", prompt="q"), trace("a", prompt="p")]
    path = write(tmp_path / "log", *lines, trace("b", "other", prompt="p"), trace("c", prompt="p"))
    short = write(tmp_path / "short", lines[2])
    root = tmp_path / "store"
    assert crashes(root, short, Versions(1), 2)
    tally = replay(root, path, 2, chunk=chunk)
    assert learned(root) == {"p": ["a", "b", "c"], "q": ["done"]}
    assert (tally.learned, tally.duplicates, tally.conflicts) == (3, 3, 1)


@pytest.mark.parametrize("size", [1, 2, 3, 4, 7])
def test_a_new_trace_before_those_that_were_done(tmp_path: Path, size: int) -> None:
    # The windows that were done must not swallow it, nor the next one wait for ever for a window that never comes.
    done = [trace(f"d{number}") for number in range(8)]
    root = tmp_path / "store"
    assert crashes(root, write(tmp_path / "log", *done), Versions(1), size)
    replay(root, write(tmp_path / "log", trace("n"), *done, trace("m")), size)
    [ids] = learned(root).values()
    assert sorted(ids) == sorted(["n", "m", *(f"d{number}" for number in range(8))])
    assert ids[:size] == [f"d{number}" for number in range(size)][: len(ids)]


def test_new_traces_of_others_that_make_the_bound_close_what_was_done_in_parts(tmp_path: Path) -> None:
    # The four traces of a's one window come to lie in two, which must not count: its next is the second.
    done = [trace(f"a{number}", prompt="a") for number in range(4)]
    others = (
        [trace("x", prompt=f"x{number}") for number in range(5)],
        [trace("y", prompt=f"y{number}") for number in range(5)],
    )
    more = [trace(f"b{number}", prompt="a") for number in range(5)]
    root, bound = tmp_path / "store", {"open_traces": 6}
    assert crashes(root, write(tmp_path / "log", *done), Versions(1), 4, learning=bound)
    replay(root, write(tmp_path / "log", *done[:2], *others[0], *done[2:], *others[1], *more), 4, learning=bound)
    found = learned(root)
    assert found["a"] == [f"a{number}" for number in range(4)] + [f"b{number}" for number in range(5)]
    assert len(found) == 11


def test_traces_done_before_a_crash_count_as_known(tmp_path: Path) -> None:
    log = Log(count=40, prompts=1)
    path, root = log.write(tmp_path / "log"), tmp_path / "store"
    assert crashes(root, path, Versions(3), 8)
    tally = replay(root, path, 8)
    assert (tally.learned, tally.duplicates, tally.updates) == (16, 24, 2)
