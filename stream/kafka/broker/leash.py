"""A process that ends another when whoever started both has died, however that died.

    python -I -S leash.py PID [FOLDER]

It reads a pipe of which only the starter has the other end, so its end of file is the starter's death. FOLDER is then
removed: nobody else will. Standard library only, and little of it: one runs beside every broker.
"""

from __future__ import annotations

import os
import select
import signal
import sys


def main() -> None:
    """Wait for the end of the starter, or of the process that is held."""
    pid = int(sys.argv[1])
    # A process's number may be another's by the time that it is needed; a descriptor of it never is.
    held = os.pidfd_open(pid) if hasattr(os, "pidfd_open") else None
    while True:
        ready, _, _ = select.select([0] if held is None else [0, held], [], [])
        if 0 in ready and not os.read(0, 1):
            break
        if held in ready:
            return
    try:
        if held is None:
            os.kill(pid, signal.SIGKILL)
        else:
            signal.pidfd_send_signal(held, signal.SIGKILL)
            select.select([held], [], [], 10)
    except ProcessLookupError:
        pass
    if len(sys.argv) > 2:
        import shutil

        shutil.rmtree(sys.argv[2], ignore_errors=True)


if __name__ == "__main__":
    main()
