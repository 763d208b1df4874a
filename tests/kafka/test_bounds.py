"""Pausing: the bounds hold to a chunk a partition, nobody starves another, and half is enough to go on."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from stream.kafka.bounds import Decision, Load, decide

BOUNDS = Load(1000, 100_000, 200)

loads = st.builds(Load, st.integers(0, 1200), st.integers(0, 120_000), st.integers(0, 250)).map(
    lambda load: load if load.traces else Load(0, 0, 0)
)


def alone(traces: int = 1, bytes: int = 1, span: int = 1) -> dict[str, Load]:
    return {"a": Load(traces, bytes, span)}


def test_each_bound_pauses_and_half_of_it_resumes() -> None:
    for at, most in (("traces", 500), ("bytes", 50_000), ("span", 200)):
        open = ["a"] if at != "span" else []
        assert decide(alone(**{at: most - 1}), set(), BOUNDS) == Decision([], [], [])
        assert decide(alone(**{at: most}), set(), BOUNDS) == Decision(["a"], [], open)
    for at, half in (("traces", 333), ("bytes", 33_333), ("span", 100)):
        open = ["a"] if at != "span" else []
        assert decide(alone(**{at: half + 1}), {"a"}, BOUNDS) == Decision([], [], open)
        assert decide(alone(**{at: half}), {"a"}, BOUNDS) == Decision([], ["a"], [])


def test_open_windows_are_not_closed_for_what_closed_ones_hold_up() -> None:
    assert decide(alone(traces=500, span=101), {"a"}, BOUNDS).relieve == []
    assert decide(alone(traces=500, span=100), {"a"}, BOUNDS).relieve == ["a"]


@given(st.dictionaries(st.sampled_from("abcdef"), loads), st.sets(st.sampled_from("abcdef")))
def test_whoever_is_not_read_gets_relief_or_waits_for_the_span(each: dict[str, Load], paused: set[str]) -> None:
    pause, resume, relieve = decide(each, paused, BOUNDS)
    now = {key for key in (paused | set(pause)) - set(resume) if key in each}
    assert {key for key in now if 2 * each[key].span <= BOUNDS.span} == set(relieve)


@given(st.dictionaries(st.sampled_from("abcdef"), loads), st.sets(st.sampled_from("abcdef")))
def test_a_decision_changes_only_what_it_must(each: dict[str, Load], paused: set[str]) -> None:
    pause, resume, _ = decide(each, paused, BOUNDS)
    assert not set(pause) & paused
    assert set(resume) <= paused & set(each)
    now = (paused | set(pause)) - set(resume)
    assert not any(each[key].traces == 0 for key in now if key in each), "one that holds nothing is paused"
    again = decide(each, now, BOUNDS)
    assert not again.pause, "what was just resumed is paused"
    assert not again.resume, "what was just paused is resumed"


@given(
    st.integers(1, 6),
    st.lists(st.tuples(st.integers(0, 5), st.integers(0, 1), st.integers(1, 60)), max_size=200),
)
def test_the_bounds_hold_and_whoever_has_nothing_left_reads_on(count: int, steps: list[tuple[int, int, int]]) -> None:
    chunk = 50
    held = dict.fromkeys(range(count), 0)
    paused: set[int] = set()
    for who, action, amount in steps:
        key = who % count
        if action == 0 and key not in paused:
            held[key] += min(amount, chunk)
        elif action == 1:
            held[key] -= min(amount, held[key])
        each = {key: Load(traces, traces * 10, min(traces, 150)) for key, traces in held.items()}
        pause, resume, _ = decide(each, paused, BOUNDS)
        paused = (paused | set(pause)) - set(resume)
        assert sum(held.values()) < BOUNDS.traces + chunk * count
    for key in held:  # as its own work gets done it goes on, whatever the others hold
        others = {**held, key: 0}
        each = {key: Load(traces, traces * 10, min(traces, 150)) for key, traces in others.items()}
        assert key not in (paused - set(decide(each, paused, BOUNDS).resume))


@given(st.integers(1, 8))
def test_full_partitions_share_and_leave_as_much_to_the_next(count: int) -> None:
    held = dict.fromkeys(range(count), 0)
    paused: set[int] = set()
    while len(paused) < count:
        held = {key: traces + (key not in paused) for key, traces in held.items()}
        each = {key: Load(traces, 0, 0) for key, traces in held.items()}
        paused |= set(decide(each, paused, BOUNDS).pause)
    share = BOUNDS.traces / (count + 1)
    assert all(abs(traces - share) <= count for traces in held.values())
    newcomer = 0
    while not decide(each | {count: Load(newcomer, 0, 0)}, paused, BOUNDS).pause:
        newcomer += 1
    assert newcomer >= share / 2 - count
