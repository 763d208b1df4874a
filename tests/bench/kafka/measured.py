"""What a process says of itself, and what it took."""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct


class Measured(Struct, frozen=True):
    """One run of one process over a topic.

    :param seconds: from the first trace delivered to the last commit, and ``cpu`` the process's CPU time of those.
    :param peak: resident memory at its highest, start included, in MB.
    """

    traces: int
    seconds: float
    cpu: float
    peak: float

    @property
    def rate(self) -> float:
        """Traces a second."""
        return self.traces / self.seconds

    @property
    def micros(self) -> float:
        """CPU microseconds a trace."""
        return self.cpu / self.traces * 1e6


def memory(field: str, pid: int | str = "self") -> float:
    """Resident memory of a process in MB.

    :param field: ``VmRSS`` for now, ``VmHWM`` for the highest since its start (ru_maxrss would hold its parent's, too).
    """
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith(field))) / 1024
