"""Our own prompt update, the message of ``prompt-updates``, as a file (:class:`operators.values.Update`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from operators.text import order, render
from operators.values import Bullet, Update
from stream.formats.decode import encode
from stream.formats.entries import Entries
from stream.formats.imported import FormatError, Imported

_WRITTEN = {"prompt", "version", "text", "bullets"}


def read(document: Any) -> Imported:
    """Read the bullets of an update; its text, which is made from them, is not looked at.

    The other fields go to ``extra``. Pins are a person's decisions about one prompt and do not travel.
    """
    if not isinstance(document, dict) or not isinstance(document.get("bullets"), list):
        raise FormatError("not a prompt update: it has no list of `bullets`")
    if document.get("schema", 1) != 1:
        raise FormatError(f"a prompt update of schema {document['schema']!r}; this version reads 1: upgrade tracecomb")
    entries = Entries()
    for number, entry in enumerate(document["bullets"]):
        entries.add(f"bullets[{number}]", entry)
    pinned = sum(isinstance(entry, dict) and entry.get("pinned") is True for entry in document["bullets"])
    if pinned:
        entries.warnings.append(f"{pinned} bullets are pinned in that prompt; pins are not imported")
    extra = {key: value for key, value in document.items() if key not in _WRITTEN}
    return Imported("json", tuple(entries.bullets), extra, tuple(entries.warnings), tuple(entries.refused))


def write(bullets: Sequence[Bullet], extra: dict[str, Any], *, prompt: str, version: int) -> bytes:
    """Write an update that holds these bullets; ``extra`` gives what else it says (base, kind, lineage, …).

    :raises FormatError: a field of ``extra`` is not of the message's type.
    """
    shown = order(bullets)
    message = {"base": version, "kind": "import", "changed": True} | extra
    message |= {"prompt": prompt, "version": version, "text": render(shown), "bullets": msgspec.to_builtins(shown)}
    try:
        update = msgspec.convert(message, Update)
    except msgspec.ValidationError as error:
        raise FormatError(f"a prompt update cannot say this: {error}") from None
    return encode(msgspec.json.encode(update).decode())
