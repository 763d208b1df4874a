"""Windows close at their size, in time, at the bound or at drain; how traces were chunked never matters."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from hypothesis import example
from hypothesis import given as examples
from hypothesis import strategies as st

from operators.values import Trace
from operators.window import Window, Windows
from tests.operators.scripted import trace


class Deal:
    """Numbers windows from 1 and deals sizes by number, the last one for ever."""

    def __init__(self, *sizes: int) -> None:
        self._sizes = sizes
        self._numbers: dict[str, int] = {}

    def __call__(self, prompt: str) -> tuple[int, int]:
        number = self._numbers[prompt] = self._numbers.get(prompt, 0) + 1
        return number, self._sizes[min(number, len(self._sizes)) - 1]


def traces(*numbers: int, prompt: str = "p") -> list[Trace]:
    return [trace(number, prompt=prompt) for number in numbers]


def ids(window: Window) -> list[str]:
    return [trace.id for trace in window.traces]


def take(windows: Windows, part: Sequence[Trace], now: float = 0.0) -> list[tuple[int, list[str], str | None]]:
    """What each window took, and whether that closed it."""
    return [
        (window.number, [each.id for each in taken], window.cause)
        for window, taken in windows.add(part[0].prompt if part else "p", part, now)
    ]


def test_a_window_closes_at_its_size() -> None:
    windows = Windows(Deal(3))
    assert take(windows, traces(1, 2)) == [(1, ["t1", "t2"], None)]
    assert take(windows, traces(3, 4)) == [(1, ["t3"], "size"), (2, ["t4"], None)]
    assert windows.held == 1


def test_one_chunk_fills_several_windows_of_several_sizes() -> None:
    windows = Windows(Deal(1, 3, 2))
    assert take(windows, traces(*range(1, 8))) == [
        (1, ["t1"], "size"),
        (2, ["t2", "t3", "t4"], "size"),
        (3, ["t5", "t6"], "size"),
        (4, ["t7"], None),
    ]


def test_the_size_is_fixed_when_the_window_opens() -> None:
    size = [5]
    windows = Windows(lambda prompt: (1, size[0]))
    take(windows, traces(1))
    size[0] = 1
    assert take(windows, traces(2, 3, 4, 5))[0][2] == "size"


@pytest.mark.parametrize("size", [0, -3])
def test_no_size_is_below_one(size: int) -> None:
    assert take(Windows(lambda prompt: (1, size)), traces(1)) == [(1, ["t1"], "size")]


def test_nothing_added_opens_nothing() -> None:
    windows = Windows(Deal(3), bound=5)
    assert take(windows, []) == []
    assert list(windows.close_all()) == []


def test_prompts_have_windows_of_their_own() -> None:
    windows = Windows(Deal(2))
    take(windows, traces(1, prompt="a"))
    assert take(windows, traces(2, 3, prompt="b")) == [(1, ["t2", "t3"], "size")]
    assert [(window.prompt, ids(window), window.cause) for window in windows.close_all()] == [("a", ["t1"], "drain")]
    assert windows.held == 0


def test_a_window_is_overdue_once_it_was_open_for_max_wait() -> None:
    windows = Windows(Deal(9), max_wait=10.0)
    take(windows, traces(1, prompt="b"), now=100.0)
    take(windows, traces(2, prompt="a"), now=104.0)
    take(windows, traces(3, prompt="b"), now=109.0)
    assert list(windows.overdue(109.9)) == []
    assert [(window.prompt, ids(window), window.cause) for window in windows.overdue(110.0)] == [
        ("b", ["t1", "t3"], "time")
    ]
    assert list(windows.overdue(113.9)) == []
    assert [window.prompt for window in windows.overdue(200.0)] == ["a"]


def test_without_max_wait_nothing_is_overdue() -> None:
    windows = Windows(Deal(9))
    take(windows, traces(1), now=0.0)
    assert list(windows.overdue(1e12)) == []


def test_windows_close_oldest_first() -> None:
    windows = Windows(Deal(9), max_wait=1.0)
    for at, prompt in enumerate("cab"):
        take(windows, traces(at, prompt=prompt), now=0.0)
    assert [window.prompt for window in windows.overdue(5.0)] == ["c", "a", "b"]


def test_the_bound_closes_the_window_with_the_oldest_first_trace() -> None:
    windows = Windows(Deal(9), bound=3)
    for at, prompt in enumerate("bab"):
        take(windows, traces(at, prompt=prompt))
    assert windows.over_bound() is None
    take(windows, traces(9, prompt="c"))
    closed = windows.over_bound()
    assert closed is not None
    assert (closed.prompt, ids(closed), closed.cause) == ("b", ["t0", "t2"], "bound")
    assert windows.over_bound() is None


def test_windows_that_closed_by_size_are_not_closed_again() -> None:
    windows = Windows(Deal(2), bound=3)
    for at in range(300):
        take(windows, traces(at, prompt=f"p{at // 2 % 7}"))
        assert windows.over_bound() is None
    for at, prompt in enumerate("abcd"):
        take(windows, traces(at, prompt=prompt))
    closed = windows.over_bound()
    assert closed is not None
    assert closed.prompt == "a"


def test_what_is_passed_over_counts_and_holds_no_trace() -> None:
    windows = Windows(Deal(2), bound=10)
    first = windows.pass_over("p", 0.0, {1: 2}.get)
    assert (first.number, first.cause, windows.held) == (1, None, 1)
    assert windows.pass_over("p", 0.0, {1: 2}.get).cause == "size"
    assert (first.traces, windows.held) == ([], 0)
    assert windows.pass_over("p", 0.0, {1: 2}.get).number == 2


def test_the_bound_does_not_close_what_is_passed_over_before_it_holds_what_it_held() -> None:
    # After a crash an automatic size may be larger than before, so more is open than when the window closed.
    windows = Windows(Deal(9), bound=2)
    first = windows.pass_over("p", 0.0, {1: 2}.get)
    take(windows, traces(1, 2, 3, prompt="q"))
    closed = windows.over_bound()
    assert closed is not None
    assert closed.prompt == "q"
    windows.pass_over("p", 0.0, {1: 2}.get)
    take(windows, traces(4, prompt="r"))
    assert windows.over_bound() is first


def test_windows_whose_first_traces_tie_close_in_the_order_they_opened() -> None:
    # A straggler that moves on while a chunk is taken apart is counted at the place of another's first trace.
    windows = Windows(Deal(9), bound=1)
    for prompt in "ba":
        list(windows.add(prompt, traces(1, prompt=prompt), 0.0, [7]))
    closed = windows.over_bound()
    assert closed is not None
    assert closed.prompt == "b"


def test_who_stops_half_way_leaves_the_other_windows_open() -> None:
    windows = Windows(Deal(9), max_wait=1.0)
    for prompt in "ab":
        take(windows, traces(1, prompt=prompt))
    assert next(windows.overdue(5.0)).prompt == "a"
    assert [window.prompt for window in windows.close_all()] == ["b"]


def test_a_discarded_window_was_never_opened() -> None:
    windows = Windows(Deal(5), bound=2)
    windows.pass_over("p", 0.0, {1: 2}.get)
    windows.discard("p")
    windows.discard("q")
    assert windows.held == 0
    assert list(windows.close_all()) == []


# Chunks


def play(prompts: Sequence[str], sizes: Sequence[int], bound: int, chunks: Sequence[int]) -> list[tuple[str, str, str]]:
    """The windows that a log closes, as a learner feeds it: by prompt in each chunk, one by one near the bound."""
    windows = Windows(Deal(*sizes), bound=bound)
    log = [trace(at, prompt=prompt) for at, prompt in enumerate(prompts)]
    closed: list[Window] = []
    at = turn = 0
    while at < len(log):
        chunk = log[at : at + chunks[turn % len(chunks)]]
        at, turn = at + len(chunk), turn + 1
        feed(windows, chunk, closed.append)
    closed += windows.close_all()
    return sorted((window.prompt, str(window.cause), " ".join(ids(window))) for window in closed)


def feed(windows: Windows, chunk: Sequence[Trace], closed: Callable[[Window], None]) -> None:
    room = windows.room()
    assert room is not None
    parts: dict[str, tuple[list[Trace], list[int]]] = {}
    if len(chunk) <= room:
        for at, each in enumerate(chunk, windows.arrived):
            part = parts.setdefault(each.prompt, ([], []))
            part[0].append(each)
            part[1].append(at)
        for prompt, (part_traces, arrivals) in parts.items():
            for window, _ in windows.add(prompt, part_traces, 0.0, arrivals):
                if window.cause is not None:
                    closed(window)
        return
    for each in chunk:
        for window, _ in windows.add(each.prompt, (each,), 0.0):
            if window.cause is not None:
                closed(window)
        while (late := windows.over_bound()) is not None:
            closed(late)


@examples(
    st.lists(st.sampled_from("abcd"), max_size=40),
    st.lists(st.integers(1, 5), min_size=1, max_size=3),
    st.integers(1, 8),
    st.lists(st.integers(1, 9), min_size=1, max_size=4),
)
@example(list("aaabaccddab"), [3], 5, [2, 3])  # one chunk fills a window of a, opens one of b, then opens another of a
def test_chunks_change_no_window(prompts: list[str], sizes: list[int], bound: int, chunks: list[int]) -> None:
    assert play(prompts, sizes, bound, chunks) == play(prompts, sizes, bound, [1])


@examples(st.lists(st.sampled_from("abc"), max_size=40), st.integers(1, 5), st.integers(1, 8))
def test_every_trace_is_in_one_window_in_order(prompts: list[str], size: int, bound: int) -> None:
    closed = play(prompts, [size], bound, [7])
    ids = [id for _, _, each in closed for id in each.split()]
    assert sorted(ids) == sorted(f"t{at}" for at in range(len(prompts)))
    for _, cause, each in closed:
        numbers = [int(id[1:]) for id in each.split()]
        assert numbers == sorted(numbers)
        assert len(numbers) == size if cause == "size" else len(numbers) < size


# The span


def span_windows(
    log: Sequence[tuple[int, str]], size: int, span: int, bound: int | None, chunks: Sequence[int]
) -> list[tuple[str, str, str]]:
    """The windows that a log of (offset, prompt or nothing) closes, in their order; "" is a record without a trace."""
    windows = Windows(Deal(size), span=span, bound=bound)
    closed: list[Window] = []
    at = turn = 0
    while at < len(log):
        chunk = log[at : at + chunks[turn % len(chunks)]]
        at, turn = at + len(chunk), turn + 1
        held = [(offset, prompt) for offset, prompt in chunk if prompt]
        while held:
            closed += windows.over_span(held[0][0])
            count = windows.before_span([offset for offset, _ in held])
            assert count > 0
            for prompt in dict.fromkeys(prompt for _, prompt in held[:count]):
                mine = [offset for offset, each in held[:count] if each == prompt]
                for window, _ in windows.add(prompt, [trace(each, prompt=prompt) for each in mine], 0.0, mine):
                    if window.cause is not None:
                        closed.append(window)
            held = held[count:]
        closed += windows.over_span(chunk[-1][0])
    closed += windows.close_all()
    return sorted((window.prompt, str(window.cause), " ".join(ids(window))) for window in closed)


def span_model(log: Sequence[tuple[int, str]], size: int, span: int) -> list[tuple[str, str, str]]:
    """The same, one record at a time, with nothing but a dict of what is open."""
    held: dict[str, list[int]] = {}
    closed: list[tuple[str, str, list[int]]] = []
    for offset, prompt in log:
        late = [each for each, mine in held.items() if mine[0] + span <= offset]
        closed += [(each, "span", held.pop(each)) for each in late]
        if prompt:
            held.setdefault(prompt, []).append(offset)
            if len(held[prompt]) == size:
                closed.append((prompt, "size", held.pop(prompt)))
    closed += [(prompt, "drain", mine) for prompt, mine in held.items()]
    return sorted((prompt, cause, " ".join(f"t{each}" for each in mine)) for prompt, cause, mine in closed)


@examples(
    st.lists(st.tuples(st.sampled_from([1, 1, 1, 2, 5, 12]), st.sampled_from("abcd")), max_size=60),
    st.lists(st.integers(0, 59), max_size=10),
    st.integers(1, 6),
    st.integers(1, 15),
    st.sampled_from([None, 1000]),
    st.lists(st.integers(1, 20), min_size=1, max_size=4),
)
@example([(1, "a"), (1, "b"), (1, "a")], [], 5, 2, None, [3])  # one chunk opens a window and closes it
def test_the_span_closes_windows_whatever_the_chunks(
    steps: list[tuple[int, str]], without: list[int], size: int, span: int, bound: int | None, chunks: list[int]
) -> None:
    log: list[tuple[int, str]] = []
    offset = 100
    for number, (step, prompt) in enumerate(steps):
        offset += step
        log.append((offset, "" if number in without else prompt))
    assert span_windows(log, size, span, bound, chunks) == span_model(log, size, span)


def test_a_window_closes_when_a_record_arrives_a_span_past_its_first_trace() -> None:
    windows = Windows(Deal(9), span=10)
    list(windows.add("a", traces(100, 105, prompt="a"), 0.0, [100, 105]))
    list(windows.add("b", traces(104, prompt="b"), 0.0, [104]))
    assert list(windows.over_span(109)) == []
    assert windows.before_span([108, 109, 110, 111]) == 2
    assert [(window.prompt, window.cause, ids(window)) for window in windows.over_span(110)] == [
        ("a", "span", ["t100", "t105"])
    ]
    assert windows.held == 1


def test_without_a_span_no_arrival_closes_a_window() -> None:
    windows = Windows(Deal(9), bound=50)
    take(windows, traces(0))
    assert windows.before_span([1, 1 << 60]) == 2
    assert list(windows.over_span(1 << 60)) == []
