"""Where ``send`` remembers how far each log was sent: a small file a log, replaced whole."""

from __future__ import annotations

import os
from collections.abc import Mapping
from hashlib import blake2b
from pathlib import Path

import msgspec

from operators.wire import encode
from stream.atomic import Disk, make_directories, replace
from stream.kafka.cursor import Sent

_decoder = msgspec.json.Decoder(Sent)


class _Quick(Disk):
    """No waiting for the device: what a power cut takes is sent again, under the same ids."""

    def sync(self, fd: int) -> None:
        pass


class Memory:
    """What was sent to one topic of one cluster.

    :param folder: of all such memories.
    :param cluster: the cluster's id, which a broker with new storage does not share with the one before it.
    """

    def __init__(self, folder: Path, cluster: str, topic: str) -> None:
        self._folder = folder / "sent" / cluster / topic
        self._disk = _Quick()

    def get(self, log: str) -> Sent | None:
        """What was sent of a log; None when nothing was, or when its file cannot be read."""
        try:
            return _decoder.decode(self._file(log).read_bytes())
        except (OSError, msgspec.MsgspecError):
            return None

    def put(self, log: str, sent: Sent) -> None:
        """Remember what was sent of a log.

        :raises OSError: naming the file.
        """
        make_directories(self._disk, self._folder)
        replace(self._disk, self._file(log), encode(sent))

    def _file(self, log: str) -> Path:
        name = os.fsencode(os.path.realpath(log))
        return self._folder / f"{blake2b(name, digest_size=16).hexdigest()}.json"


def state_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """Where tracecomb keeps its state: in ``XDG_STATE_HOME``, else in ``~/.local/state``."""
    base = environ.get("XDG_STATE_HOME", "")
    # A relative path there is to be ignored (XDG Base Directory Specification).
    folder = Path(base) if os.path.isabs(base) else Path(environ.get("HOME") or Path.home()) / ".local" / "state"
    return folder / "tracecomb"
