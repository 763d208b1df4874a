"""JSON Schema documents (2020-12) of the messages: ``entry``, ``reject``, ``trace``, ``update``.

They ship in the package, are derived from the types, and a test holds the files to that. A field may be added within a
version; a reader ignores fields that it does not know. ``python -m stream.schemas`` writes the files anew.
"""

from __future__ import annotations

from importlib.resources import files

import msgspec

from operators.entry import Entry
from operators.values import Trace, Update
from stream.rejects import Reject

VERSION = 1
_TYPES = {"entry": Entry, "reject": Reject, "trace": Trace, "update": Update}
NAMES = tuple(sorted(_TYPES))


def file_name(name: str) -> str:
    """The file of one message's schema."""
    return f"{name}-{VERSION}.json"


def derive(name: str) -> bytes:
    """The schema of one message, as its type has it now."""
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", **msgspec.json.schema(_TYPES[name])}
    return msgspec.json.format(msgspec.json.encode(schema, order="sorted"), indent=2) + b"\n"


def published(name: str) -> bytes:
    """The schema of one message, as it ships."""
    return files(__name__).joinpath(file_name(name)).read_bytes()
