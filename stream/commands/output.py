"""Writing a file that a person named: whole or not at all, and nothing else of theirs is touched."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path
from secrets import token_hex


def existing(path: Path) -> bytes | None:
    """The content of the regular file at ``path``; None when there is none."""
    with suppress(FileNotFoundError):
        if stat.S_ISREG(path.stat().st_mode):
            return path.read_bytes()
    return None


def put(path: Path, data: bytes) -> None:
    """Make ``data`` the content of a file.

    A regular file is the old one or the new one at any instant, with its rights; a link stays one. What is no regular
    file, as ``/dev/stdout`` or a pipe, is written to.

    :raises OSError: naming ``path``.
    """
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        mode = None
    if mode is not None and not stat.S_ISREG(mode):
        with path.open("wb") as file:
            file.write(data)
        return
    target = Path(os.path.realpath(path))
    draft = target.with_name(f".{target.name[:100]}.{token_hex(4)}.tmp")
    try:
        with draft.open("xb") as file:
            if mode is not None:
                os.chmod(draft, stat.S_IMODE(mode))
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, target)
    except BaseException as error:
        with suppress(OSError):
            draft.unlink()
        if isinstance(error, OSError):
            raise OSError(error.errno, error.strerror, str(path)) from error
        raise
