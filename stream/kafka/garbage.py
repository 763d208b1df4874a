"""How often a worker looks for garbage in cycles.

What is made by the million here (records, traces, facts) holds no cycle and goes as soon as nobody has it, yet there is
so much of it under way that Python's own thresholds would have a fifth of a worker's time go into looking through it.
"""

from __future__ import annotations

import gc

_THRESHOLDS = (50_000, 20, 10)


def collect_seldom() -> None:
    """Leave out of every collection what stands now, as a command's modules do, and collect less often from here on.

    Cycles are still found: those of a tenure that was let go weigh little beside what it had under way, which is freed
    with the last reference to it.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_THRESHOLDS)
