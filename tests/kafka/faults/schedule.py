"""What goes wrong, round by round: a pure function of the seed."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Literal, NamedTuple

Kind = Literal[
    "kill",
    "stop",
    "add",
    "remove",
    "freeze",
    "kill in transaction",
    "kill all",
    "stop broker",
    "kill broker",
    "kill broker in transaction",
    "freeze broker",
    "poison",
]

BAG: dict[Kind, int] = {
    "kill": 3,
    "stop": 2,
    "add": 1,
    "remove": 1,
    "freeze": 3,
    "kill in transaction": 4,
    "kill all": 1,
    "stop broker": 1,
    "kill broker": 1,
    "kill broker in transaction": 1,
    "freeze broker": 1,
    "poison": 3,
}
"""How often each is drawn before all are drawn again, so that a few rounds have most of them."""


class Round(NamedTuple):
    """One round. Times are seconds.

    :param traces: how many are sent; the fault comes ``delay`` after the first of them.
    :param which: from 0 to 1, which of the workers it is about.
    :param lasts: how long what is frozen or down stays so, over what a session lasts for a worker.
    :param waits: whether the next round waits until something is published again, else only for ``rest``.
    :param seed: of what is drawn within the round.
    """

    kind: Kind
    traces: int
    delay: float
    which: float
    lasts: float
    rest: float
    waits: bool
    seed: int


def rounds(seed: int, most: int = 300) -> Iterator[Round]:
    """Rounds without end.

    :param most: traces that one sends.
    """
    random = Random(seed)
    while True:
        bag = [kind for kind, times in BAG.items() for _ in range(times)]
        random.shuffle(bag)
        for kind in bag:
            yield Round(
                kind=kind,
                traces=random.randint(most // 5, most),
                delay=random.choice((0.0, 0.02, 0.1, 0.5, 2.0)) * 2 * random.random(),
                which=random.random(),
                lasts=random.uniform(0.0, 4.0),
                rest=random.uniform(0.0, 2.0),
                waits=random.random() < 0.6,
                seed=random.getrandbits(32),
            )
