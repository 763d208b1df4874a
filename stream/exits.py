"""How a command ends: the exit codes, which error leads to which, and what a person is told."""

from __future__ import annotations

import msgspec

from stream.config import ConfigError
from stream.formats import FormatError
from stream.store import Store
from stream.storeerrors import NotAStore, StoreError, StoreLocked, UnknownPrompt, UnknownVersion
from stream.terminal import listed

OK, FAILED, USAGE, LOCKED, UNKNOWN, REJECTS, SETTINGS, INTERRUPTED = 0, 1, 2, 3, 4, 5, 6, 130

EXITS = {
    OK: "done, also when there was nothing to do",
    FAILED: "failed: the message says what, where, and what to do",
    USAGE: "wrong usage or configuration",
    LOCKED: "another process (its pid is named) has the store open for writing",
    UNKNOWN: "no such prompt, or no such version of it",
    REJECTS: "too many lines were no traces",
    SETTINGS: "the store was learned with another seed, size or method: give the same ones, or --go-on",
    78: "another distribution has overwritten one of our packages",
    INTERRUPTED: "interrupted; the same command goes on",
}
"""The README's table says the same, and a test holds it to that."""


def ending(error: BaseException) -> tuple[int, str] | None:
    """The exit code and the message for an error; None for one that nothing but a mistake of ours explains."""
    from stream.kafka.broker.errors import BrokerError
    from stream.kafka.cluster import ClusterError
    from stream.kafka.errors import PartitionHalted, ServiceStopped
    from stream.replay import TooManyRejects
    from stream.runs import SettingsChanged

    error = _first(error)
    codes: tuple[tuple[type[BaseException], int], ...] = (
        (ConfigError, USAGE),
        (StoreLocked, LOCKED),
        (UnknownPrompt, UNKNOWN),
        (UnknownVersion, UNKNOWN),
        (TooManyRejects, REJECTS),
        (SettingsChanged, SETTINGS),
        (StoreError, FAILED),
        (ClusterError, FAILED),
        (BrokerError, FAILED),
        (ServiceStopped, FAILED),
        (PartitionHalted, FAILED),
        (FormatError, FAILED),
        (OSError, FAILED),
    )
    if isinstance(error, KeyboardInterrupt):
        return INTERRUPTED, str(error) or "interrupted; run the same command again to go on"
    return next(((code, _told(error)) for kind, code in codes if isinstance(error, kind)), None)


def is_broken_pipe(error: BaseException) -> bool:
    """Whether an error says that nobody reads stdout any more."""
    return isinstance(_first(error), BrokenPipeError)


def _first(error: BaseException) -> BaseException:
    """The first error of a group: what a task group raises is its tasks' own."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def _told(error: BaseException) -> str:
    if isinstance(error, OSError) and error.filename is not None and error.strerror:
        return f"{error.filename}: {error.strerror}"
    if isinstance(error, NotAStore) and "; " not in str(error):  # else it says what to do itself
        return f"{error}; `tracecomb replay` makes one, --at or TRACECOMB_AT names another"
    if isinstance(error, UnknownPrompt):
        return f"{error}; {error.instead or _prompts(error)}"
    return str(error) or type(error).__name__


def _prompts(error: UnknownPrompt) -> str:
    """What prompts there are instead: nothing else lists them."""
    try:
        with Store.open(error.where, write=False) as store:
            names = store.prompts()
    except (StoreError, msgspec.MsgspecError):
        return "what it does hold cannot be read"
    return f"it holds {listed(names)}" if names else "it is empty"
