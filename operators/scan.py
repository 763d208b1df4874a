"""A parallel prefix scan over any associative combine, which keeps its tree.

The up-sweep makes the tree: k - 1 combines give the total, each inner node as soon as both its halves are there, in
whatever order the leaves complete. The down-sweep, only for who asks, makes every prefix with k - 1 - ceil(log2 k)
more: 2k - 2 - ceil(log2 k) in all, and no chain of combines is longer than 2 ceil(log2 k) - 1 (Combee, arXiv
2604.04247, "parallel scan aggregation"; the bounds are those of work-efficient scans). Leaves keep their order, so the
combine need not commute.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from inspect import isawaitable
from typing import Generic, TypeVar, cast

from msgspec import Struct

V = TypeVar("V")


class Node(Struct, Generic[V], frozen=True):
    """The combination of leaves ``start`` … ``stop`` - 1; a leaf has no halves, every other node has two."""

    value: V
    start: int
    stop: int
    left: Node[V] | None = None
    right: Node[V] | None = None

    def leaves(self) -> Iterator[Node[V]]:
        """The leaves below, first to last."""
        if self.left is None or self.right is None:
            yield self
        else:
            yield from self.left.leaves()
            yield from self.right.leaves()


def scan(values: Sequence[V], combine: Callable[[V, V], V]) -> Node[V]:
    """Combine ``values`` with k - 1 combines, without a task; the root's ``value`` is the total.

    :raises ValueError: if there is nothing to scan.
    """
    level = [Node(value, index, index + 1) for index, value in enumerate(values)]
    if not level:
        raise ValueError("nothing to scan")
    while len(level) > 1:
        above = [_join(level[i], level[i + 1], combine) for i in range(0, len(level) - 1, 2)]
        if len(level) % 2:
            above.append(level[-1])
        level = above
    return level[0]


async def scan_as_completed(leaves: Sequence[V | Awaitable[V]], combine: Callable[[V, V], V]) -> Node[V]:
    """The same tree from leaves that may still have to complete: a node is combined as soon as both halves are in.

    Leaves that are plain values only cost no task.

    :raises ValueError: if there is nothing to scan.
    :raises Exception: the first failure of a leaf or a combine, after the leaves in flight were cancelled.
    :raises asyncio.CancelledError: if a leaf was.
    """
    if not any(isawaitable(leaf) for leaf in leaves):
        return scan(cast("Sequence[V]", leaves), combine)
    growing = _Growing(len(leaves), combine)

    async def complete(index: int, leaf: V | Awaitable[V]) -> None:
        growing.place(index, await leaf if isawaitable(leaf) else leaf)

    try:
        async with asyncio.TaskGroup() as tasks:
            for index, leaf in enumerate(leaves):
                tasks.create_task(complete(index, leaf))
    except BaseExceptionGroup as failures:
        raise failures.exceptions[0] from None
    return growing.root()


def prefixes(root: Node[V], combine: Callable[[V, V], V]) -> list[V]:
    """The combination of leaves 0 … i for every leaf i, from a tree made with the same combine."""
    found: list[V] = []
    # Of each node: what stands before it (None at the very left) and the prefix that ends with it. The latter is
    # known before the node is entered, so only the end of a left half that has something before it costs a combine.
    stack: list[tuple[Node[V], Node[V] | None, V]] = [(root, None, root.value)]
    while stack:
        node, before, through = stack.pop()
        if node.left is None or node.right is None:
            found.append(through)
            continue
        middle = node.left if before is None else Node(combine(before.value, node.left.value), 0, node.left.stop)
        stack.append((node.right, middle, through))
        stack.append((node.left, before, middle.value))
    return found


class _Growing(Generic[V]):
    """A tree under construction. Node i of a level joins 2i and 2i + 1 of the one below; an odd last one moves up."""

    def __init__(self, count: int, combine: Callable[[V, V], V]) -> None:
        self._count = count
        self._combine = combine
        self._waiting: dict[tuple[int, int], Node[V]] = {}

    def place(self, index: int, value: V) -> None:
        """Take leaf ``index`` and combine upwards as far as what is there allows."""
        node, level, width = Node(value, index, index + 1), 0, self._count
        while width > 1:
            if index ^ 1 < width:
                other = self._waiting.pop((level, index ^ 1), None)
                if other is None:
                    break
                node = _join(other, node, self._combine) if index & 1 else _join(node, other, self._combine)
            index, level, width = index >> 1, level + 1, (width + 1) >> 1
        self._waiting[level, index] = node

    def root(self) -> Node[V]:
        """The whole tree. A task group passes over a leaf that was cancelled from outside; then there is none."""
        for node in self._waiting.values():
            if node.stop - node.start == self._count:
                return node
        raise asyncio.CancelledError("a leaf was cancelled")


def _join(left: Node[V], right: Node[V], combine: Callable[[V, V], V]) -> Node[V]:
    return Node(combine(left.value, right.value), left.start, right.stop, left, right)
