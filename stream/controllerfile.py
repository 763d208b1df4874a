"""What the controller knows, kept beside the prompts: ``controller.json``.

It only saves a later run the profiling. What a run learned never depends on it, for the sizes are in the log.
"""

from __future__ import annotations

import msgspec
from msgspec import Struct, field

from operators.explanation import SizesState
from operators.overload import Overload
from operators.wire import encode
from stream.atomic import Disk, replace
from stream.store import Store
from stream.storeerrors import refusals

_NAME = "controller.json"


class Controller(Struct, frozen=True):
    """The service's fit, and each prompt's clamp."""

    sizes: SizesState | None = None
    prompts: dict[str, Overload] = field(default_factory=dict)


def kept_controller(store: Store) -> Controller:
    """What was kept last; nothing where that cannot be read, for it is only a head start."""
    try:
        return msgspec.json.decode((store.path / _NAME).read_bytes(), type=Controller)
    except (OSError, msgspec.MsgspecError):
        return Controller()


def keep_controller(store: Store, controller: Controller) -> None:
    """Keep what the controller knows."""
    with refusals(store.path):
        replace(Disk(), store.path / _NAME, encode(controller))
