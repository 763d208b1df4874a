"""The parallel prefix scan: equal to the sequential one, within the bounds of combines and depth, as soon as it can."""

import asyncio
from collections.abc import Awaitable
from itertools import accumulate
from math import ceil, floor, log2

import pytest
from hypothesis import given
from hypothesis import strategies as st

from operators.scan import Node, prefixes, scan, scan_as_completed

words = st.lists(st.text(max_size=3), min_size=1, max_size=70)


class Counting:
    """Concatenation (which does not commute) of (text, depth of the longest chain of combines)."""

    def __init__(self) -> None:
        self.combines = 0

    def __call__(self, left: tuple[str, int], right: tuple[str, int]) -> tuple[str, int]:
        self.combines += 1
        return left[0] + right[0], 1 + max(left[1], right[1])


def future() -> asyncio.Future[str]:
    return asyncio.get_running_loop().create_future()


def concat(left: str, right: str) -> str:
    return left + right


@pytest.mark.parametrize("k", [*range(1, 131), 255, 256, 257, 1000])
def test_combines_and_depth_keep_to_the_bounds(k: int) -> None:
    combine = Counting()
    leaves = [(chr(0x4E00 + index), 0) for index in range(k)]

    root = scan(leaves, combine)
    assert combine.combines == k - 1
    assert root.value[1] <= ceil(log2(k))

    found = prefixes(root, combine)
    assert [text for text, _ in found] == list(accumulate(text for text, _ in leaves))
    if k >= 2:
        assert combine.combines <= 2 * k - 2 - floor(log2(k))
        assert max(depth for _, depth in found) <= 2 * ceil(log2(k)) - 1


@given(words)
def test_the_tree_holds_every_range_once(values: list[str]) -> None:
    root = scan(values, concat)

    def check(node: Node[str]) -> None:
        assert node.value == "".join(values[node.start : node.stop])
        if node.left is None or node.right is None:
            assert node.left is node.right is None
            assert node.stop == node.start + 1
        else:
            assert (node.start, node.left.stop, node.stop) == (node.left.start, node.right.start, node.right.stop)
            check(node.left)
            check(node.right)

    check(root)
    assert (root.start, root.stop) == (0, len(values))
    assert [leaf.value for leaf in root.leaves()] == values


@given(words, st.data())
def test_any_order_of_completion_gives_the_sequential_scan(values: list[str], data: st.DataObject) -> None:
    order = data.draw(st.permutations(range(len(values))))
    ready = data.draw(st.sets(st.sampled_from(order)))
    pause = data.draw(st.sets(st.sampled_from(order)))

    async def run() -> Node[str]:
        futures = {index: future() for index in order if index not in ready}
        leaves: list[str | Awaitable[str]] = [futures.get(index, values[index]) for index in range(len(values))]
        scanning = asyncio.create_task(scan_as_completed(leaves, concat))
        for index in order:
            if index in futures:
                futures[index].set_result(values[index])
            if index in pause:
                await asyncio.sleep(0)
        return await scanning

    root = asyncio.run(run())
    assert root == scan(values, concat)
    assert prefixes(root, concat) == list(accumulate(values))


async def test_a_node_is_combined_as_soon_as_both_halves_are_in() -> None:
    made: list[str] = []

    def combine(left: str, right: str) -> str:
        made.append(left + right)
        return left + right

    leaves = [future() for _ in range(5)]
    scanning = asyncio.create_task(scan_as_completed(leaves, combine))
    for index, done in [(3, []), (4, []), (2, ["cd"]), (0, ["cd"]), (1, ["cd", "ab", "abcd", "abcde"])]:
        leaves[index].set_result("abcde"[index])
        for _ in range(3):
            await asyncio.sleep(0)
        assert made == done
    assert (await scanning).value == "abcde"


def test_values_cost_no_task() -> None:
    running = scan_as_completed(["a", "b", "c"], concat)

    # Without an event loop: it neither suspends nor makes a task.
    with pytest.raises(StopIteration) as done:
        running.send(None)
    assert done.value.value == scan(["a", "b", "c"], concat)


async def test_a_failed_leaf_cancels_the_others_and_is_raised() -> None:
    cancelled: list[int] = []

    async def wait(index: int) -> str:
        try:
            return await future()
        except asyncio.CancelledError:
            cancelled.append(index)
            raise

    async def fail() -> str:
        await asyncio.sleep(0)
        raise LookupError("leaf 1")

    leaves: list[str | Awaitable[str]] = [wait(0), fail(), wait(2), "d"]
    with pytest.raises(LookupError, match="leaf 1"):
        await scan_as_completed(leaves, concat)
    assert sorted(cancelled) == [0, 2]


async def test_a_failed_combine_is_raised() -> None:
    def combine(left: str, right: str) -> str:
        raise ArithmeticError(left + right)

    async def leaf() -> str:
        return "c"

    leaves: list[str | Awaitable[str]] = ["a", "b", leaf()]
    with pytest.raises(ArithmeticError, match="ab"):
        await scan_as_completed(leaves, combine)


async def test_cancelling_the_scan_cancels_its_leaves() -> None:
    leaf = future()
    leaves: list[str | Awaitable[str]] = [leaf, "b"]
    scanning = asyncio.create_task(scan_as_completed(leaves, concat))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    scanning.cancel()

    with pytest.raises(asyncio.CancelledError):
        await scanning
    assert leaf.cancelled()


async def test_a_leaf_cancelled_from_outside_is_no_result() -> None:
    leaf = future()
    leaf.cancel()

    leaves: list[str | Awaitable[str]] = ["a", leaf, "c"]
    with pytest.raises(asyncio.CancelledError, match="a leaf was cancelled"):
        await scan_as_completed(leaves, concat)


async def test_nothing_to_scan() -> None:
    with pytest.raises(ValueError, match="nothing to scan"):
        scan([], concat)
    with pytest.raises(ValueError, match="nothing to scan"):
        await scan_as_completed([], concat)
