"""The world around the operators: trace files, prompt stores, replay, and the command ``tracecomb``.

Other distributions install a package of this name too; see ``ownership.py`` for how the command tells them apart.
"""

from stream.config import Config, ConfigError, load
from stream.files import Bad, Found, Record, Skipped, TraceFiles
from stream.promptstore import PromptStore
from stream.replay import Replay, TooManyRejects, recorded_sizes, settings_of
from stream.runs import SettingsChanged
from stream.store import Store
from stream.storeerrors import (
    NotAStore,
    StoreDamaged,
    StoreError,
    StoreLocked,
    StoreReadOnly,
    StoreRefused,
    StoreTooNew,
    UnknownPrompt,
    UnknownVersion,
)

__all__ = (
    "Bad",
    "Config",
    "ConfigError",
    "Found",
    "NotAStore",
    "PromptStore",
    "Record",
    "Replay",
    "SettingsChanged",
    "Skipped",
    "Store",
    "StoreDamaged",
    "StoreError",
    "StoreLocked",
    "StoreReadOnly",
    "StoreRefused",
    "StoreTooNew",
    "TooManyRejects",
    "TraceFiles",
    "UnknownPrompt",
    "UnknownVersion",
    "load",
    "recorded_sizes",
    "settings_of",
)
