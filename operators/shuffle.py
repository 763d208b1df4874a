"""Augmented shuffle: which groups the copies of a window's reflections, and its carried insights, go to.

Combee (arXiv 2604.04247, "augmented shuffle"): k = floor(sqrt n) groups, p copies of each reflection. Unlike public
implementations the copies of one reflection never meet in a group. Everything is a function of the seed, so a replay
and a resumed run group alike on any machine and Python version.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b, shake_128
from itertools import count
from math import isqrt
from operator import mod
from struct import unpack


def group_count(n: int) -> int:
    """How many groups ``n`` reflections make: k = floor(sqrt n), one group below four, none of none."""
    return isqrt(n) if n >= 4 else min(n, 1)


def window_seed(seed: int, prompt: str, window: int) -> int:
    """The seed (64 bits) of window number ``window`` of ``prompt`` in a run seeded with ``seed``."""
    # The prompt comes last: it may hold anything, the separator included.
    material = f"{seed} {window} {prompt}".encode("utf-8", "surrogatepass")
    return int.from_bytes(blake2b(material, digest_size=8).digest(), "big")


def groups(n: int, seed: int, copies: int = 2) -> list[list[int]]:
    """Deal ``copies`` copies of reflections 0 … n-1 to :func:`group_count` groups, no two of one into the same group.

    With ``copies`` or fewer groups each reflection is given once. Group sizes differ by at most one, every group is
    equally likely for every reflection, and the reflections that share one group are spread over all others in their
    second copies.

    :param n: the window's traces.
    :param seed: from :func:`window_seed`.
    :return: the members of each group.
    :raises ValueError: if ``n`` is negative or ``copies`` is below one.
    """
    if n < 0 or copies < 1:
        raise ValueError(f"cannot deal {copies} copies of {n} reflections")
    k = group_count(n)
    if k < 2:
        return [list(range(n))] * k
    words = _words(seed, b"groups", n + 2 * k)
    order = _permutation(words[:n])
    # Slot j belongs to group j mod k, which keeps the sizes level whatever fills the slots. A block of k reflections
    # fills k slots in a row; its next copy is the same block rotated, so no reflection returns to its group. The
    # rotations go through all of 1 … k-1 before one is used again, which spreads those that share a group.
    full = n - n % k
    if copies == 1 or k <= copies:
        slots = order
    else:
        slots = order[:full]
        turns = [turn + 1 for turn in _permutation(words[n : n + k - 1])]
        turn = 0
        for start in range(0, full, k):
            block = order[start : start + k]
            for _ in range(copies - 1):
                by = turns[turn]
                slots += block[by:]
                slots += block[:by]
                turn = turn + 1 if turn < k - 2 else 0
        for index in order[full:]:
            slots += [index] * copies
    return [slots[group::k] for group in _permutation(words[n + k :])]


def place_carried(count: int, k: int, seed: int) -> list[int]:
    """The group (0 … k-1) that each of ``count`` carried insights joins, as evenly as ``count`` allows.

    :param k: the number of groups; carried insights do not count for it, so with no group there is no place.
    :param seed: the window's, from :func:`window_seed`.
    :raises ValueError: if insights are carried and there is no group.
    """
    if count and k < 1:
        raise ValueError(f"no group for {count} carried insights")
    words = _words(seed, b"carried", k + count)
    labels = _permutation(words[:k])
    return [labels[slot % k] for slot in _permutation(words[k:])]


def _words(seed: int, purpose: bytes, count: int) -> tuple[int, ...]:
    """``count`` random 32-bit words. A hash (FIPS 202), for it can never change and costs a third of seeding Random."""
    return unpack(f"<{count}I", shake_128(b"%d %s" % (seed, purpose)).digest(4 * count))


def _permutation(words: Sequence[int]) -> list[int]:
    """A random order of 0 … len(words)-1."""
    order: list[int] = []
    put = order.insert
    for item, place in enumerate(map(mod, words, count(1))):
        put(place, item)
    return order
