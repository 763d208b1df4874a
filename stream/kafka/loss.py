"""What to do about records that were gone before they were read."""

from __future__ import annotations

from collections.abc import Sequence

import structlog

from stream.kafka.checks import Ours
from stream.kafka.errors import RecordsLost
from stream.kafka.shared import Shared

log = structlog.get_logger()

_TOLD = 10


def face_loss(shared: Shared, ours: Ours, lost: Sequence[tuple[int, int]]) -> None:
    """Say what is lost, and go on without it where the configuration says so.

    :param lost: (first, last) of offsets.
    :raises RecordsLost: where it does not.
    """
    if not lost:
        return
    count = sum(last + 1 - first for first, last in lost)
    shown = ", ".join(f"{first} to {last}" for first, last in lost[:_TOLD])
    told = (
        f"{count:,} offsets of {ours.source} ({shown}) are gone from the topic, by retention or deletion, before they "
        "were read"
    )
    if shared.config.service.on_loss == "stop":
        raise RecordsLost(f'{told}; on_loss = "continue" under [service] in the configuration goes on without them')
    shared.tally.lost += count
    log.error(told)
