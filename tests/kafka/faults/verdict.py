"""All that can be wrong with what a run leaves, in one list."""

from __future__ import annotations

from operators.settings import Settings
from tests.kafka.faults.again import otherwise
from tests.kafka.faults.fates import wrong_fates
from tests.kafka.faults.history import History
from tests.kafka.faults.steady import Sight, unsteady
from tests.kafka.faults.versions import wrong_versions


async def findings(history: History, sights: list[Sight], settings: Settings, lineage: str) -> list[str]:
    """Judge a run; nothing where all is well.

    :param sights: what a read_committed reader got while it went on.
    :param settings: and ``lineage``: those of the service.
    """
    found = [*wrong_fates(history), *wrong_versions(history), *unsteady(history, sights)]
    return found + [each async for each in otherwise(history, settings, lineage)]
