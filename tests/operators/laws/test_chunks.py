"""The map of open facts against a plain dict, and that joining costs the change, counted in items copied."""

from __future__ import annotations

from itertools import pairwise
from operator import or_

from hypothesis import given
from hypothesis import strategies as st

from operators.chunks import Chunks, flat, get, join

news = st.dictionaries(st.integers(0, 30), st.integers(1, 15), min_size=1, max_size=12)


def copied(before: Chunks[int, int], after: Chunks[int, int]) -> int:
    """How many items the step wrote: those of the dicts that were not there before."""
    known = {id(chunk) for chunk in before}
    return sum(len(chunk) for chunk in after if id(chunk) not in known)


@given(st.lists(news, max_size=10))
def test_joins_as_a_plain_dict_would(steps: list[dict[int, int]]) -> None:
    chunks: Chunks[int, int] = ()
    model: dict[int, int] = {}
    for step in steps:
        before = dict(model)
        for key, value in step.items():
            model[key] = model.get(key, 0) | value
        chunks, moves = join(chunks, dict(step), or_)
        assert flat(chunks) == model
        assert {key: get(chunks, key) for key in range(31)} == {key: model.get(key) for key in range(31)}
        assert sorted(moves, key=lambda move: move[0]) == [
            (key, before.get(key), model[key]) for key in sorted(step) if before.get(key) != model[key]
        ]


@given(st.lists(news, min_size=1, max_size=8), st.data())
def test_gives_the_very_same_object_when_all_was_known(steps: list[dict[int, int]], data: st.DataObject) -> None:
    chunks: Chunks[int, int] = ()
    for step in steps:
        chunks, _ = join(chunks, dict(step), or_)
    known = flat(chunks)
    part = data.draw(st.sets(st.sampled_from(sorted(known)), min_size=1))
    assert join(chunks, {key: known[key] for key in part}, or_) == (chunks, [])
    assert join(chunks, {key: known[key] for key in part}, or_)[0] is chunks


@given(st.lists(news, min_size=1, max_size=10))
def test_leaves_older_chunks_as_they_were(steps: list[dict[int, int]]) -> None:
    chunks: Chunks[int, int] = ()
    kept: list[tuple[Chunks[int, int], dict[int, int]]] = []
    for step in steps:
        kept.append((chunks, dict(flat(chunks))))
        chunks, _ = join(chunks, dict(step), or_)
    for older, content in kept:
        assert flat(older) == content


def test_of_nothing_is_nothing() -> None:
    assert flat(()) == {}
    assert get((), 1) is None


@given(st.lists(st.integers(1, 40), min_size=1, max_size=60))
def test_stays_a_few_dicts_of_falling_size(sizes: list[int]) -> None:
    chunks: Chunks[int, int] = ()
    start = 0
    for size in sizes:
        chunks, _ = join(chunks, dict.fromkeys(range(start, start + size), 1), or_)
        start += size
        lengths = [len(chunk) for chunk in chunks]
        assert all(longer >= 4 * shorter for longer, shorter in pairwise(lengths))


def test_copies_a_few_items_for_each_new_one_however_many_there_are() -> None:
    def items_copied(steps: int) -> int:
        chunks: Chunks[int, int] = ()
        total = 0
        for step in range(steps):
            before = chunks
            # A new key, and one long known that changes: both ways through a join.
            chunks, _ = join(chunks, {step: 1, step // 2: 3}, or_)
            total += copied(before, chunks)
        return total

    few, many = items_copied(1_000) / 1_000, items_copied(64_000) / 64_000
    # Six doublings cost a few copies each; copying all at every step would multiply by 64.
    assert many < 4 * few
    assert many < 64
