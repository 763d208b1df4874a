"""What the partitions of one worker share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from operators.calls import Calls
from operators.controller import BatchSizes
from operators.method import Method
from operators.settings import Settings
from operators.sizes import Sizes
from stream.config import Config
from stream.kafka.checks import Ours
from stream.kafka.remembered import Reflections
from stream.kafka.takeover import Reads
from stream.kafka.tally import Tally
from stream.kafka.writers import Writers


@dataclass(slots=True)
class Shared:
    """One of each for the whole worker.

    :param count: N, the number of partitions.
    :param calls: the limiter of all model calls.
    :param sizes: who decides how large windows are; ``controller`` is asked for them unless they are fixed.
    :param reflections: finished ones that may be asked for again.
    :param clock: seconds, monotonic.
    :param writers: of prompts' states.
    """

    config: Config
    connection: Mapping[str, Any]
    cluster: str
    count: int
    lineage: str
    settings: Settings
    method: Method
    calls: Calls
    controller: BatchSizes
    sizes: Sizes
    reads: Reads
    reflections: Reflections
    tally: Tally
    clock: Callable[[], float]
    writers: Writers = field(default_factory=Writers)

    def ours(self, partition: int) -> Ours:
        """A partition of ours, and what is expected of it."""
        return Ours(
            cluster=self.cluster,
            group=self.config.kafka.group,
            topics=self.config.topics,
            partition=partition,
            count=self.count,
            lineage=self.lineage,
            latest=self.config.kafka.start == "latest",
        )
