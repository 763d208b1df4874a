"""The process's standard streams: results go to stdout, talk to stderr, and who has stopped listening stops no work."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from types import FrameType
from typing import TextIO, cast

# What moves the cursor, hides text or cannot be encoded: names and lessons come from other people's traces.
_CONTROLS = re.compile("[\0-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_CONTROLS_IN_TEXT = re.compile("[\0-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")

_NAMED = 10


def invoked() -> str:
    """What to write for ``tracecomb`` in a command that a person may paste: the path it was run by, if it needs one."""
    ran = sys.argv[0]
    if os.path.basename(ran) == "tracecomb" and shutil.which("tracecomb") is None:
        return shlex.quote(ran)
    return "tracecomb"


@contextmanager
def standard_streams() -> Iterator[None]:
    """Make the standard streams safe to use, whatever the process was started with.

    One that is closed becomes ``/dev/null``, or the next file that is opened would take its place. Talk that nobody
    reads any more is lost without an error.
    """
    for fd, mode in ((0, os.O_RDONLY), (1, os.O_WRONLY), (2, os.O_WRONLY)):
        try:
            os.fstat(fd)
        except OSError:
            os.open(os.devnull, mode)
    before = sys.stdin, sys.stdout, sys.stderr
    sys.stdin = before[0] or os.fdopen(0, closefd=False)
    sys.stdout = before[1] or os.fdopen(1, "w", closefd=False)
    sys.stderr = cast(TextIO, _Unheard(before[2] or os.fdopen(2, "w", closefd=False)))
    try:
        yield
    finally:
        sys.stdin, sys.stdout, sys.stderr = before


class _Unheard:
    """A stream for talk: what cannot be written is lost, and so is all that follows."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        try:
            return self._stream.write(text)
        except OSError:
            silence(self._stream)
            return len(text)

    def flush(self) -> None:
        try:
            self._stream.flush()
        except OSError:
            silence(self._stream)

    def __getattr__(self, name: str) -> object:
        return getattr(self._stream, name)


def silence(stream: TextIO) -> None:
    """Lead a stream nowhere, so that what is still buffered does not raise again when the process ends."""
    null = os.open(os.devnull, os.O_WRONLY)
    with suppress(OSError, ValueError):  # a stream of a test has no descriptor
        os.dup2(null, stream.fileno())
    os.close(null)


@contextmanager
def interruptible() -> Iterator[None]:
    """Let Ctrl-C raise KeyboardInterrupt at once, in asyncio too.

    asyncio makes the first one a cancellation, which work that never waits notices at its very end, and a read from
    stdin not before the next line.
    """
    ours = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if not ours or threading.current_thread() is not threading.main_thread():
        yield
        return
    signal.signal(signal.SIGINT, _interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def say(text: str) -> None:
    """Talk: one line on stderr."""
    print(f"tracecomb: {visible(text)}", file=sys.stderr)


def line(text: str, colour: str = "") -> None:
    """Write one line of a result.

    :param colour: an SGR sequence for it, used on a terminal only, and not where ``NO_COLOR`` is set.
    """
    shown = visible(text)
    if colour and sys.stdout.isatty() and not os.environ.get("NO_COLOR"):
        shown = f"{colour}{shown}\x1b[0m"
    _put(f"{shown}\n".encode())


def document(data: bytes) -> None:
    """Write a result byte for byte; on a terminal, without the control characters that it could be attacked with."""
    if sys.stdout.isatty():
        text = data.decode("utf-8", "replace")
        data = _CONTROLS_IN_TEXT.sub(lambda found: repr(found[0])[1:-1], text).encode()
    _put(data)


def flush() -> None:
    """Return when all results are written.

    :raises OSError: naming standard output.
    """
    with _named():
        sys.stdout.flush()


def visible(text: str) -> str:
    """Text as one line that any terminal takes."""
    return _CONTROLS.sub(lambda found: repr(found[0])[1:-1], text)


def counted(number: int, noun: str) -> str:
    """``1 version``, ``2,000 versions``."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def listed(names: Sequence[str]) -> str:
    """The first of these names."""
    more = f", and {len(names) - _NAMED:,} more" if len(names) > _NAMED else ""
    return f"{', '.join(visible(repr(name)) for name in names[:_NAMED])}{more}"


def _put(data: bytes) -> None:
    with _named():
        sys.stdout.flush()
        sys.stdout.buffer.write(data)


@contextmanager
def _named() -> Iterator[None]:
    """Say in an error that it is about stdout: the system does not."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OSError(error.errno, error.strerror, "standard output") from error
