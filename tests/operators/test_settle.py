"""Splitting a refused update: nothing good is lost, nothing bad passes, few questions."""

from collections.abc import Collection
from math import ceil, log2

from hypothesis import given
from hypothesis import strategies as st

from operators.scan import scan
from operators.settle import Settled, settle

Leaves = tuple[int, ...]


def singles(k: int) -> list[Leaves]:
    return [(leaf,) for leaf in range(k)]


def join(left: Leaves, right: Leaves) -> Leaves:
    return left + right


class Judge:
    """Accepts what holds none of the ``bad`` leaves and none of the ``clashing`` pairs; keeps what it was asked."""

    def __init__(self, bad: set[int], clashing: Collection[tuple[int, int]] = ()) -> None:
        self.bad = bad
        self.clashing = clashing
        self.asked: list[Leaves] = []

    def __call__(self, leaves: Leaves) -> bool:
        self.asked.append(leaves)
        held = set(leaves)
        return not held & self.bad and not any(a in held and b in held for a, b in self.clashing)


@st.composite
def trials(draw: st.DrawFn) -> tuple[int, set[int], set[tuple[int, int]]]:
    k = draw(st.integers(1, 70))
    leaf = st.integers(0, k - 1)
    pairs = (
        st.sets(st.tuples(leaf, leaf).filter(lambda pair: pair[0] < pair[1]), max_size=8) if k > 1 else st.just(set())
    )
    return k, draw(st.sets(leaf, max_size=12)), draw(pairs)


@given(trials())
def test_the_result_passes_and_no_refused_leaf_would(trial: tuple[int, set[int], set[tuple[int, int]]]) -> None:
    k, bad, clashing = trial
    judge = Judge(bad, clashing)

    settled = settle(scan(singles(k), join), judge, join)

    accepted = settled.accepted or ()
    refused = [leaf.start for leaf in settled.refused]
    assert sorted((*accepted, *refused)) == list(range(k))
    assert list(accepted) == sorted(accepted)
    assert refused == sorted(refused)
    if accepted:
        assert Judge(bad, clashing)(accepted)
    # Each was refused on what stood before it, so it is refused on all that passed.
    assert not any(Judge(bad, clashing)((*accepted, leaf)) for leaf in refused)
    if not clashing:
        assert set(refused) == bad


@given(trials())
def test_few_questions_and_none_twice(trial: tuple[int, set[int], set[tuple[int, int]]]) -> None:
    k, bad, clashing = trial
    judge = Judge(bad, clashing)

    settled = settle(scan(singles(k), join), judge, join)

    assert len(judge.asked) <= 1 + 2 * len(settled.refused) * ceil(log2(k))
    assert len(set(judge.asked)) == len(judge.asked)
    assert judge.asked[0] == tuple(range(k))


def test_the_usual_update_costs_one_question_and_no_combine() -> None:
    def never(left: Leaves, right: Leaves) -> Leaves:
        raise AssertionError((left, right))

    judge = Judge(set())
    tree = scan(singles(3), join)

    assert settle(tree, judge, never) == Settled((0, 1, 2))
    assert judge.asked == [(0, 1, 2)]


def test_nothing_may_pass() -> None:
    tree = scan(singles(2), join)

    assert settle(tree, Judge({0, 1}), join) == Settled(None, tuple(tree.leaves()))


def test_halves_are_tried_on_what_has_passed() -> None:
    judge = Judge({1})

    settled = settle(scan(singles(4), join), judge, join)

    assert settled.accepted == (0, 2, 3)
    assert judge.asked == [
        (0, 1, 2, 3),
        (0, 1),
        (0,),
        (0, 2, 3),
    ]  # of (0,) and (1,) the first passed, so not the second
