"""The augmented shuffle: sizes, copies apart, spread, seeded."""

from collections import Counter
from itertools import combinations
from math import ceil, isqrt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from operators.shuffle import group_count, groups, place_carried, window_seed

sizes = st.integers(1, 300)
seeds = st.integers(0, 2**64 - 1)


@given(sizes, seeds, st.integers(1, 4))
def test_every_copy_is_in_a_group_of_its_own(n: int, seed: int, copies: int) -> None:
    dealt = groups(n, seed, copies)

    k = isqrt(n) if n >= 4 else 1
    assert len(dealt) == k == group_count(n)
    assert all(len(set(group)) == len(group) for group in dealt)
    copied = copies if k > copies else 1
    assert Counter(index for group in dealt for index in group) == dict.fromkeys(range(n), copied)


@given(sizes, seeds, st.integers(1, 4))
def test_group_sizes_differ_by_at_most_one(n: int, seed: int, copies: int) -> None:
    lengths = [len(group) for group in groups(n, seed, copies)]

    assert max(lengths) - min(lengths) <= 1


@given(st.integers(9, 300), seeds)
def test_reflections_of_one_group_part_in_their_second_copies(n: int, seed: int) -> None:
    dealt = groups(n, seed)

    k = len(dealt)
    homes: dict[int, list[int]] = {index: [] for index in range(n)}
    for number, group in enumerate(dealt):
        for index in group:
            homes[index].append(number)
    shared = Counter(tuple(home) for home in homes.values())
    # Each of the k - 1 rotations serves as few of the n // k blocks as can be, in both directions; the rest adds two.
    assert max(shared.values()) <= 2 * ceil((n // k) / (k - 1)) + 2


@given(sizes, seeds)
def test_the_same_seed_deals_the_same(n: int, seed: int) -> None:
    assert groups(n, seed) == groups(n, seed)


@pytest.mark.parametrize("n", [11, 50])
def test_any_reflection_and_any_pair_of_groups_are_equally_likely(n: int) -> None:
    runs, k = 4000, isqrt(n)
    first, last = Counter[int](), Counter[int]()
    pairs = Counter[tuple[int, ...]]()
    for window in range(runs):
        dealt = groups(n, window_seed(0, "p", window))
        homes = [number for number, group in enumerate(dealt) if 0 in group]
        pairs[tuple(homes)] += 1
        first.update(homes)
        last.update(number for number, group in enumerate(dealt) if n - 1 in group)

    def chi2(counts: Counter[int] | Counter[tuple[int, ...]], cells: int) -> float:
        expected = sum(counts.values()) / cells
        return sum((count - expected) ** 2 / expected for count in counts.values()) + (cells - len(counts)) * expected

    # Each bound is above the 99.9 % quantile of chi square; the seeds are fixed.
    assert set(pairs) == set(combinations(range(k), 2))
    assert chi2(pairs, k * (k - 1) // 2) < {3: 13.9, 21: 45.4}[k * (k - 1) // 2]
    assert chi2(first, k) < {3: 13.9, 7: 22.5}[k]
    assert chi2(last, k) < {3: 13.9, 7: 22.5}[k]


def test_small_windows() -> None:
    assert groups(0, 1) == []
    assert [sorted(group) for group in groups(3, 1)] == [[0, 1, 2]]
    assert sorted(len(group) for group in groups(8, 1)) == [4, 4]  # two groups are not more than two copies: one each


def test_a_seed_deals_the_same_for_ever() -> None:
    seed = window_seed(0, "support/refunds", 1)

    assert seed == 2663661235723439130
    assert groups(11, seed) == [[10, 0, 9, 8, 5, 2, 1], [7, 5, 6, 10, 4, 9, 3], [8, 4, 2, 7, 0, 6, 3, 1]]
    assert place_carried(7, 3, seed) == [1, 2, 0, 1, 2, 0, 0]


def test_seeds_differ_by_run_prompt_and_window() -> None:
    prompts = ["", "a", "1 a", "\ud800", "a\x00"]
    found = {window_seed(seed, prompt, window) for seed in range(12) for prompt in prompts for window in range(12)}

    assert len(found) == 12 * len(prompts) * 12


@given(st.integers(0, 200), st.integers(1, 20), seeds)
def test_carried_insights_spread_evenly(count: int, k: int, seed: int) -> None:
    places = place_carried(count, k, seed)

    held = [places.count(group) for group in range(k)]
    assert len(places) == count == sum(held)
    assert max(held) - min(held) <= 1
    assert places == place_carried(count, k, seed)


def test_any_carried_insight_may_join_any_group() -> None:
    seen = Counter(place_carried(4, 5, window_seed(0, "p", window))[0] for window in range(2000))

    assert set(seen) == set(range(5))
    assert max(seen.values()) - min(seen.values()) < 120


def test_what_cannot_be_dealt() -> None:
    with pytest.raises(ValueError, match="-1 reflections"):
        groups(-1, 0)
    with pytest.raises(ValueError, match="0 copies"):
        groups(9, 0, 0)
    with pytest.raises(ValueError, match="no group"):
        place_carried(1, 0, 0)
    assert place_carried(0, 0, 0) == []
