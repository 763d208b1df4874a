"""Split a refused update along the scan's tree, so that only the leaves at fault are held back.

The total is tried first: the usual window costs one question. A refused node's halves are tried on what has passed
already, first left then right; a leaf that fails alone is refused. With r refused leaves of k that is at most
1 + 2 r ceil(log2 k) questions, if the same value always gets the same answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

from msgspec import Struct

from operators.scan import Node

V = TypeVar("V")


class Settled(Struct, Generic[V], frozen=True):
    """What passed, as one value (None if nothing did), and the leaves that were refused, first to last."""

    accepted: V | None
    refused: tuple[Node[V], ...] = ()


def settle(root: Node[V], accept: Callable[[V], bool], combine: Callable[[V, V], V]) -> Settled[V]:
    """Ask ``accept`` about the total, then about ever smaller parts; the value returned is one that it accepted.

    :param root: a tree that the scan made with the same ``combine``.
    """
    splitting = _Splitting(combine)
    for candidate in splitting.questions(root):
        splitting.answer = accept(candidate)
    return splitting.settled()


class _Splitting(Generic[V]):
    """The decisions, apart from who answers: set ``answer`` to each question before asking for the next."""

    def __init__(self, combine: Callable[[V, V], V]) -> None:
        self.answer = False
        self._combine = combine
        self._passed: list[V] = []  # at most one value: all that has passed, combined
        self._refused: list[Node[V]] = []

    def questions(self, node: Node[V], known_bad: bool = False) -> Iterator[V]:
        """The values to ask about. ``known_bad``: ``node`` on what has passed is a value that was refused already."""
        if not known_bad:
            value = self._combine(self._passed[0], node.value) if self._passed else node.value
            yield value
            if self.answer:
                self._passed = [value]
                return
        if node.left is None or node.right is None:
            self._refused.append(node)
            return
        refused = len(self._refused)
        yield from self.questions(node.left)
        # Where all of the left half passed, the right half on it is this node once more.
        yield from self.questions(node.right, known_bad=len(self._refused) == refused)

    def settled(self) -> Settled[V]:
        return Settled(self._passed[0] if self._passed else None, tuple(self._refused))
