"""The batch size controller, seen from outside: what it assigns, given what it is told."""

from collections import Counter, deque
from collections.abc import Callable, Sequence
from math import exp, inf, log, nan
from random import Random

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from operators.controller import CANDIDATES, BatchSizes
from operators.explanation import SizesState
from operators.overload import Load, Overload
from operators.shuffle import groups, place_carried, window_seed

Delay = Callable[[int], float]


def power(alpha: float, a: float = 100.0, noise: float = 0.0, seed: int = 0) -> Delay:
    """d(n) = A n^(1-alpha), so T(n)/N = A n^-alpha, with noise of that share."""
    random = Random(seed)
    return lambda n: a * pow(float(n), 1 - alpha) * max(0.01, random.gauss(1, noise))


def run(sizes: BatchSizes, windows: int, delay: Delay, prompts: Sequence[str] = ("p",)) -> list[int]:
    """Windows one after another that all fill."""
    dealt = []
    for window in range(windows):
        size = sizes.assign(prompts[window % len(prompts)])
        sizes.sample(size, delay(size), True)
        dealt.append(size)
    return dealt


def true_plateau(alpha: float) -> float:
    return min(128.0, 8 * exp(log(62.5) / (1 + alpha)))


# Profiling


def test_sizes_are_dealt_in_rising_order_three_windows_each() -> None:
    assert run(BatchSizes(), 16, power(0.7)) == [8] * 3 + [16] * 3 + [32] * 3 + [64] * 3 + [128] * 3 + [91]


def test_nobody_waits_for_a_report() -> None:
    sizes = BatchSizes()

    dealt = [sizes.assign("p") for _ in range(18)]

    # All is dealt after fifteen; before there is a fit the smallest candidate is safe.
    assert dealt == [8] * 3 + [16] * 3 + [32] * 3 + [64] * 3 + [128] * 3 + [8] * 3
    for size in reversed(dealt):
        sizes.sample(size, power(0.7)(size), True)
    assert sizes.assign("p") == 91


def test_a_prompts_first_window_is_the_smallest() -> None:
    sizes = BatchSizes()

    dealt = [sizes.assign(prompt) for prompt in ("a", "b", "a", "a", "c", "a", "c")]

    # The first windows of a and b count among the three of size 8, that of c comes when they are dealt.
    assert dealt == [8, 8, 8, 16, 8, 16, 16]
    run(sizes, 100, power(0.7))
    assert sizes.explain().stage == "fitted"
    assert (sizes.assign("new"), sizes.assign("new")) == (8, 91)


@pytest.mark.parametrize(("windows", "within"), [(1, 0.20), (3, 0.10)])
@pytest.mark.parametrize("alpha", [0.5, 0.6, 0.7, 0.8, 0.9, 1.0])
def test_accuracy_under_ten_percent_noise(windows: int, within: float, alpha: float) -> None:
    good = 0
    for seed in range(1000):
        sizes = BatchSizes(windows_per_size=windows)
        run(sizes, 5 * windows, power(alpha, a=10.0 ** (seed % 7 - 3), noise=0.1, seed=seed))
        explained = sizes.explain()
        assert explained.stage == "fitted"
        good += abs(explained.size / true_plateau(alpha) - 1) <= within

    assert good >= 950


def test_the_plateau_is_clamped_to_the_candidates() -> None:
    steep, shallow = BatchSizes((100, 200, 300)), BatchSizes((8, 16, 32))
    run(steep, 9, power(1.0))
    run(shallow, 9, power(0.5))

    assert steep.explain().plateau == pytest.approx(790.6, abs=0.1)
    assert steep.assign("p") == 300
    assert shallow.assign("p") == 32


# No gain, no fit


def test_batching_that_gains_nothing_stays_at_the_smallest_and_says_so() -> None:
    sizes = BatchSizes()
    run(sizes, 15, power(0.05))

    assert sizes.assign("p") == 8
    explained = sizes.explain()
    assert (explained.stage, explained.size, explained.plateau) == ("flat", 8, None)
    assert explained.alpha == pytest.approx(0.05)
    assert "batching gains nothing measurable" in explained.reason


def test_a_fit_that_explains_little_stays_at_the_smallest() -> None:
    sizes = BatchSizes()
    noise = iter([1, 9, 2, 8, 1, 9, 2, 9, 1, 7, 1, 9, 3, 1, 8])
    run(sizes, 15, lambda n: next(noise) * n**0.6)

    explained = sizes.explain()
    assert explained.alpha is not None
    assert explained.alpha > 0.1
    assert explained.r2 is not None
    assert explained.r2 < 0.5
    assert (explained.stage, sizes.assign("p")) == ("flat", 8)


def slow_stream(sizes: BatchSizes, windows: int, fills: int, delay: Delay) -> list[tuple[int, bool]]:
    """Windows larger than ``fills`` close by time; nobody holds one any longer than that."""
    seen = []
    for _ in range(windows):
        size = sizes.assign("p")
        sizes.sample(size, delay(min(size, fills)), size <= fills)
        seen.append((size, size <= fills))
    return seen


def test_a_size_that_closed_by_time_twice_is_left_out() -> None:
    sizes = BatchSizes()

    seen = slow_stream(sizes, 14, 32, power(0.8))

    assert seen == [(s, True) for s in (8, 8, 8, 16, 16, 16, 32, 32, 32)] + [(64, False)] * 2 + [(128, False)] * 2 + [
        (80, False)
    ]
    explained = sizes.explain()
    assert explained.left_out == (64, 128)
    assert {point.size for point in explained.points} == {8, 16, 32}
    assert "64, 128 left out" in explained.reason


def test_once_by_time_is_chance() -> None:
    sizes = BatchSizes()
    run(sizes, 3, power(0.8))
    sizes.sample(sizes.assign("p"), 1.0, False)

    assert run(sizes, 4, power(0.8)) == [16, 16, 16, 32]


def test_a_stream_too_slow_for_three_sizes_has_no_fit_until_it_is_faster() -> None:
    sizes = BatchSizes()
    slow_stream(sizes, 12, 16, power(0.8))

    explained = sizes.explain()
    assert (explained.stage, explained.size, explained.a, explained.plateau) == ("starved", 8, None, None)
    assert "too few sizes filled" in explained.reason
    # Windows that close by time show that it is still slow; those that fill, that it may be faster.
    for _ in range(500):
        sizes.sample(sizes.assign("p"), 600.0, False)
    assert sizes.explain().stage == "starved"
    run(sizes, 49, power(0.8))
    assert sizes.explain().stage == "starved"
    run(sizes, 16, power(0.8))
    assert (sizes.explain().stage, sizes.assign("p")) == ("fitted", 80)


def test_a_stream_that_never_fills_a_window_is_fine() -> None:
    sizes = BatchSizes()

    seen = slow_stream(sizes, 1000, 3, power(0.8))

    assert Counter(size for size, _ in seen) == {8: 992, 16: 2, 32: 2, 64: 2, 128: 2}
    assert sizes.explain().left_out == CANDIDATES


def test_a_fitted_stream_that_turns_slow_keeps_its_plateau_for_a_backlog() -> None:
    sizes = BatchSizes()
    run(sizes, 15, power(0.7))
    slow_stream(sizes, 500, 5, power(0.7))

    assert sizes.assign("p") == 91


# What is never heard of again, and what is no measurement


def test_lost_windows_do_not_block_profiling() -> None:
    sizes = BatchSizes()
    prompts = [f"p{number}" for number in range(10)]
    for prompt in prompts:
        sizes.sample(sizes.assign(prompt), 100 * 8**0.3, True)
    lost = [sizes.assign("p0") for _ in range(4)]
    assert lost == [16, 16, 16, 32]

    run(sizes, 200, power(0.7), prompts)

    explained = sizes.explain()
    assert (explained.stage, explained.left_out) == ("fitted", (16,))
    assert explained.size == 91


def test_one_lost_window_is_dealt_again() -> None:
    sizes = BatchSizes()
    run(sizes, 4, power(0.7))
    assert sizes.assign("p") == 16

    dealt = run(sizes, 100, power(0.7))

    assert dealt[:11] == [16] + [32] * 3 + [64] * 3 + [128] * 3 + [8]
    assert dealt.count(16) == 2
    assert sizes.explain().stage == "fitted"
    assert sizes.explain().left_out == ()


@pytest.mark.parametrize("delay", [0.0, -1.0, nan, inf, -inf, 1e-300, 1e300])
def test_absurd_delays_are_harmless(delay: float) -> None:
    sizes = BatchSizes()
    run(sizes, 15, power(0.7))
    run(sizes, 100, lambda _: delay)
    assert (sizes.explain().stage, sizes.explain().profiles, sizes.assign("p")) == ("fitted", 1, 91)

    only = BatchSizes()
    run(only, 100, lambda _: delay)
    assert (only.explain().stage, only.assign("p")) == ("starved", 8)


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["a", "b", "c"]),
            st.sampled_from([-1, 0, 8, 16, 32, 64, 128, 91, 10**9]),
            st.floats(),
            st.booleans(),
            st.integers(0, 30),
        ),
        max_size=150,
    ),
    st.integers(1, 3),
)
def test_whatever_is_reported_a_size_is_a_size(
    events: list[tuple[str, int, float, bool, int]], windows_per_size: int
) -> None:
    sizes = BatchSizes(windows_per_size=windows_per_size)
    seen = set()
    for prompt, size, delay, filled, raw in events:
        assigned = sizes.assign(prompt)
        assert 8 <= assigned <= sizes.overload(prompt).clamp <= 128
        assert assigned == 8 or prompt in seen
        seen.add(prompt)
        sizes.sample(size, delay, filled)
        sizes.observe(prompt, Load(size, 30, 30 - raw, raw, 30 - raw))
        explained = sizes.explain()
        assert explained.reason
        msgspec.json.encode(explained)


# A fit that no longer predicts


@pytest.mark.parametrize(
    ("alpha", "a"),
    [(0.7, 200.0), (0.7, 50.0), (0.7, 1000.0), (0.5, 100.0), (0.9, 100.0), (1.0, 30.0), (0.02, 100.0)],
)
def test_after_the_endpoint_changed_it_profiles_and_fits_anew(alpha: float, a: float) -> None:
    sizes = BatchSizes()
    run(sizes, 60, power(0.7, noise=0.1, seed=1))
    before = sizes.explain()

    changed = power(alpha, a, noise=0.1, seed=2)
    dealt = run(sizes, 25, changed)

    # Three of the last five samples show it, then the sizes are dealt again: fifteen windows.
    assert dealt[:3] == [before.size] * 3
    assert dealt[3:18] == [8] * 3 + [16] * 3 + [32] * 3 + [64] * 3 + [128] * 3
    after = sizes.explain()
    assert (before.profiles, after.profiles) == (1, 2)
    assert after.alpha == pytest.approx(alpha, abs=0.1)
    assert after.a == pytest.approx(a, rel=0.4)
    assert dealt[-1] == after.size == (8 if alpha < 0.1 else round(min(128.0, after.plateau or 0)))


def test_a_change_shows_at_the_smallest_candidate_too() -> None:
    sizes = BatchSizes()
    run(sizes, 40, power(0.05, noise=0.1))
    assert sizes.explain().stage == "flat"

    run(sizes, 30, power(0.8, a=1000.0, noise=0.1))

    assert sizes.explain().stage == "fitted"
    assert sizes.assign("p") == pytest.approx(true_plateau(0.8), rel=0.1)


@pytest.mark.parametrize("windows_per_size", [1, 3])
def test_noise_alone_never_refits(windows_per_size: int) -> None:
    for seed in range(20):
        sizes = BatchSizes(windows_per_size=windows_per_size)
        run(sizes, 1000, power(0.5 + seed / 40, noise=0.1, seed=seed), ["a", "b", "c"])
        assert sizes.explain().profiles == 1


def test_two_bad_delays_in_five_are_no_change() -> None:
    sizes = BatchSizes()
    run(sizes, 20, power(0.7))
    for number in range(200):
        size = sizes.assign("p")
        sizes.sample(size, power(0.7)(size) * (50 if number % 5 < 2 else 1), True)

    assert sizes.explain().profiles == 1


def test_while_it_profiles_anew_other_windows_keep_the_plateau() -> None:
    sizes = BatchSizes()
    run(sizes, 20, power(0.7))
    run(sizes, 3, power(0.7, a=1000.0))

    dealt = [sizes.assign("p") for _ in range(20)]

    assert dealt == [8] * 3 + [16] * 3 + [32] * 3 + [64] * 3 + [128] * 3 + [91] * 5


# The overload clamp


class Curators:
    """One prompt's windows under curators that saturate as Combee measured, half of the reflections with a lesson.

    A lesson is in front of the curators of its copies, then twice of one, a window of another size later each time,
    then it enters raw.
    """

    KEPT = ((0, 0.0), (1, 0.5), (5, 2.0), (10, 2.4), (20, 3.9), (50, 4.7), (100, 4.2), (1000, 4.2))

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.seed = seed
        self.window = 0
        self.due: dict[int, list[int]] = {}

    def capacity(self, given: int) -> int:
        for (low, kept), (high, more) in zip(self.KEPT, self.KEPT[1:], strict=False):
            if given <= high:
                mean = kept + (more - kept) * (given - low) / (high - low)
                return int(mean + self.random.random())
        raise AssertionError(given)

    def curate(self, n: int) -> Load:
        self.window += 1
        dealt = groups(n, window_seed(self.seed, "p", self.window))
        lessons = {index for index in range(n) if self.random.random() < 0.5}
        carried = self.due.pop(self.window, [])
        places = place_carried(len(carried), len(dealt), window_seed(self.seed, "p", self.window))
        covered = set[tuple[str, int]]()
        for number, group in enumerate(dealt):
            joined = [("carried", index) for index, place in enumerate(places) if place == number]
            shown = [("first", index) for index in group if index in lessons] + joined
            room = self.capacity(len(group) + len(joined))
            covered.update(self.random.sample(shown, min(room, len(shown))))
        again = [1 for index in lessons if ("first", index) not in covered]
        missed = [times for index, times in enumerate(carried) if ("carried", index) not in covered]
        again += [2 for times in missed if times == 1]
        self.due.setdefault(self.window + 2, []).extend(again)
        first = sum(kind == "first" for kind, _ in covered)
        return Load(n, len(lessons), first, sum(times == 2 for times in missed), len(covered))


def test_overloaded_curators_lower_the_clamp_and_it_settles_at_sixteen() -> None:
    reached, spent, raw, covered = [], Counter[int](), 0, 0
    for seed in range(20):
        sizes, curators = BatchSizes(), Curators(seed)
        delay = power(0.7, noise=0.1, seed=seed)
        opened = deque([sizes.assign("p"), sizes.assign("p")])  # one fills while the one before aggregates
        clamps = []
        for window in range(400):
            size = opened.popleft()
            load = curators.curate(size)
            sizes.sample(size, delay(size), True)
            sizes.observe("p", load)
            opened.append(sizes.assign("p"))
            clamps.append(sizes.overload("p").clamp)
            if window >= 100:
                spent[size] += 1
                raw += load.entered_raw
                covered += load.covered
        reached.append(next(window for window, clamp in enumerate(clamps) if clamp <= 16))
        assert sizes.explain().clamps == {"p": clamps[-1]}

    assert sorted(reached)[10] < 50
    assert max(reached) < 100
    assert spent[16] / spent.total() > 0.8
    assert max(spent) <= 32
    assert raw / (raw + covered) == pytest.approx(0.08, abs=0.015)


def test_a_clamp_is_its_prompts_own() -> None:
    sizes = BatchSizes()
    run(sizes, 20, power(0.7), ["a", "b"])
    for _ in range(5):
        sizes.observe("a", Load(91, 45, 20, 20, 25))

    assert (sizes.assign("a"), sizes.assign("b")) == (64, 91)
    assert sizes.explain().clamps == {"a": 64}
    assert "overload clamps 1 prompt" in sizes.explain().reason


def test_a_clamped_prompt_is_not_dealt_more() -> None:
    sizes = BatchSizes()
    sizes.restore("low", Overload(16))
    sizes.restore("high", Overload(128))
    run(sizes, 6, power(0.7), ["low"])

    assert [sizes.assign("low") for _ in range(3)] == [16] * 3
    assert [sizes.assign("high") for _ in range(4)] == [32, 32, 32, 64]


def test_where_every_prompt_is_clamped_the_fit_is_made_of_what_there_is() -> None:
    sizes = BatchSizes()
    sizes.restore("p", Overload(32))

    dealt = run(sizes, 100, power(0.7))

    assert set(dealt[9:]) == {32}
    assert sizes.explain().stage == "fitted"
    assert sizes.explain().size == 91


# Kept and explained


def test_a_restored_controller_goes_on_as_if_nothing_had_been() -> None:
    for cut in range(0, 60, 3):
        whole, delay = BatchSizes(), power(0.7, noise=0.1)
        slower = power(0.5, a=300.0, noise=0.1)
        run(whole, min(cut, 30), delay)
        run(whole, max(0, cut - 30), slower)
        kept = msgspec.json.decode(msgspec.json.encode(whole.export()), type=SizesState)
        memory = msgspec.json.decode(msgspec.json.encode(whole.overload("p")), type=Overload)
        restored = BatchSizes(state=kept)
        if cut:
            restored.restore("p", memory)

        assert restored.export() == whole.export()
        assert restored.explain() == whole.explain()
        assert run(restored, 60, power(0.6)) == run(whole, 60, power(0.6))


def test_windows_that_were_open_at_a_crash_are_dealt_again() -> None:
    sizes = BatchSizes()
    run(sizes, 4, power(0.7))
    for _ in range(5):
        sizes.assign("p")
    restored = BatchSizes(state=sizes.export())
    restored.restore("p", sizes.overload("p"))

    assert run(restored, 4, power(0.7)) == [16, 16, 32, 32]


def test_the_newest_copy_has_the_greatest_revision() -> None:
    sizes = BatchSizes()
    revisions = []
    for _ in range(40):
        run(sizes, 1, power(0.7))
        revisions.append(sizes.export().revision)

    assert revisions == sorted(set(revisions))


def test_other_candidates_begin_anew() -> None:
    sizes = BatchSizes()
    run(sizes, 20, power(0.7))
    other = BatchSizes((10, 20, 40), state=sizes.export())
    other.restore("p", Overload(32))
    other.restore("tiny", Overload(8))

    assert other.explain().stage == "profiling"
    assert other.explain().clamps == {"p": 20, "tiny": 10}


def test_the_explanation_can_be_plotted() -> None:
    sizes = BatchSizes()
    assert sizes.explain().reason == "profiling sizes 8, 16, 32, 64, 128; samples so far of none"
    run(sizes, 15, power(0.75))

    explained = sizes.explain(traces=1000)

    assert explained.a is not None
    assert explained.alpha is not None
    assert explained.a == pytest.approx(100_000)
    assert explained.alpha == pytest.approx(0.75)
    assert explained.r2 == pytest.approx(1)
    assert explained.plateau == pytest.approx(8 * 62.5 ** (1 / 1.75))
    assert (explained.size, explained.candidates) == (85, CANDIDATES)
    assert [point.size for point in explained.points] == [8] * 3 + [16] * 3 + [32] * 3 + [64] * 3 + [128] * 3
    for point in explained.points:
        assert point.total == pytest.approx(explained.a * point.size**-explained.alpha)
        assert point.delay == pytest.approx(point.total * point.size / 1000)
    assert explained.reason == "T = 1e+05 n^-0.75 explains 100% of the variance and flattens at 85.0; windows hold 85"


def test_fewer_than_three_candidates_are_a_fixed_size() -> None:
    assert run(BatchSizes((40,)), 60, power(0.7)) == [40] * 60
    assert run(BatchSizes((40, 80)), 120, power(0.7)) == [40] * 120


@pytest.mark.parametrize("candidates", [(), (0, 1, 2), (8, 8, 16), (16, 8, 32), (-8, 8, 16)])
def test_candidates_that_are_none(candidates: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="cannot profile"):
        BatchSizes(candidates)
    with pytest.raises(ValueError, match="with 0 windows each"):
        BatchSizes(windows_per_size=0)
