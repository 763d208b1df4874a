"""What the service has counted, and when too much of what it reads is no trace."""

from __future__ import annotations

import structlog

from stream.config import Rejects
from stream.replay import TooManyRejects

log = structlog.get_logger()


class Tally:
    """Counts of a worker since its start.

    :param limits: how many rejects are too many.
    """

    def __init__(self, limits: Rejects) -> None:
        self._limits = limits
        self.records = 0
        self.learned = 0
        self.rejected = 0
        self.duplicates = 0
        self.refused = 0
        self.skipped = 0
        self.lost = 0
        self.versions = 0
        self.early = 0
        """Windows that a bound or the span closed before their size or time."""
        self.foreign = 0
        self._bad_run = 0

    def good(self, count: int) -> None:
        """Count records that are traces."""
        if count:
            self.records += count
            self._bad_run = 0

    def bad(self, where: str, reason: str) -> None:
        """Count a record that is rejected.

        :raises TooManyRejects: past the configured limits.
        """
        self.records += 1
        self.rejected += 1
        if self.rejected.bit_count() == 1:  # the first, and at ever greater distances, or a flood would fill the log
            log.warning("record rejected", where=where, reason=reason, rejected=self.rejected, records=self.records)
        self._bad_run += 1
        limits = self._limits
        in_a_row = self._bad_run >= limits.run
        if not in_a_row and not (self.records >= limits.after and self.rejected > limits.share * self.records):
            return
        which = f"{self._bad_run:,} records in a row" if in_a_row else f"{self.rejected:,} of {self.records:,} records"
        raise TooManyRejects(
            f"{which} were rejected, the last at {where} ({reason}). What was published is kept, and what was not is "
            "read again. Is this a topic of traces? If so, raise the limits under [rejects] in the configuration"
        )
