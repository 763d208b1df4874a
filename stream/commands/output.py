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
        mode = path.stat().st_mode if path.exists() else None
        if mode is None or stat.S_ISREG(mode):
            _replace(Path(os.path.realpath(path)), data, mode)
        else:
            with path.open("wb") as file:
                file.write(data)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error


def _replace(path: Path, data: bytes, mode: int | None) -> None:
    draft = path.with_name(f".tracecomb-{token_hex(8)}.tmp")
    try:
        with draft.open("xb") as file:
            if mode is not None:
                os.chmod(draft, stat.S_IMODE(mode))
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, path)
    except BaseException:
        with suppress(OSError):
            draft.unlink()
        raise
