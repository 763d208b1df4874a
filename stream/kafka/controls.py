"""Controls: what people ask for, as a record of ``prompt-controls`` keyed by its prompt, and what makes its version.

    {"schema": 1, "kind": "rollback", "prompt": "support/refunds", "to": 3}
    {"schema": 1, "kind": "pin", "prompt": "support/refunds", "bullet": "err-00012"}     unpin and remove alike
    {"schema": 1, "kind": "edit", "prompt": "support/refunds", "bullet": "err-00012", "content": "…", "section": "…"}
    {"schema": 1, "kind": "import", "prompt": "support/refunds", "bullets": [{"section": "…", "content": "…"}]}

Pure.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, cast

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from operators.facts import PersonKind
from operators.imports import import_delta, publish_import
from operators.people import person_delta
from operators.settings import Settings
from operators.state import PromptState
from operators.values import Bullet
from operators.version import Published, publish_delta, publish_rollback

PEOPLE = frozenset({"pin", "unpin", "edit", "remove"})
LATER = frozenset({"approve", "reject", "switch"})
"""Kinds that the design names and that this version cannot do: they need a gate, a review or a rebuild."""


class Control(Struct, frozen=True, omit_defaults=True, kw_only=True):
    """What somebody asks for.

    :param to: the version that a rollback goes back to; 0 is empty.
    :param bullet: the display id, or the identity, that a pin, unpin, edit or removal is about.
    :param content: the new text of an edit, and ``section`` its new section.
    :param bullets: of an import; ``format`` and ``extra`` are what its file was and held besides.
    :param who: asks for it, and ``at`` when, in RFC 3339; else the record's time counts.
    """

    kind: str
    prompt: str
    schema: int = 1
    to: int | None = None
    bullet: str = ""
    content: str = ""
    section: str = ""
    bullets: tuple[Bullet, ...] = ()
    format: str = ""
    extra: dict[str, Any] = field(default_factory=dict)
    who: str = ""
    at: str | None = None


class Declined(ValueError):
    """No version comes of a control; the message says why, for the person who asked.

    :param held: the version that has all of it already, where that is why.
    """

    def __init__(self, why: str, held: int | None = None) -> None:
        super().__init__(why)
        self.held = held


_decode = msgspec.json.Decoder(Control).decode


def control_of(value: bytes | None) -> Control:
    """The control in a record.

    :raises Declined: when it is none that can be answered by a version.
    """
    if value is None:
        raise Declined("its value is null")
    try:
        control = _decode(value)
    except msgspec.MsgspecError as error:
        raise Declined(f"it is no control: {error}") from None
    if not control.prompt:
        raise Declined("it names no prompt")
    if control.kind in LATER:
        raise Declined(f"{control.kind} is not available in this version")
    if control.kind not in PEOPLE | {"rollback", "import"}:
        raise Declined(f"{control.kind!r} is no kind of control")
    if control.kind == "rollback" and control.to is None:
        raise Declined("a rollback must say `to` which version")
    if control.kind in PEOPLE and not control.bullet:
        raise Declined(f"{control.kind} must name a bullet")
    if control.kind == "import" and not import_delta(control.bullets).texts:
        raise Declined("an import without bullets")
    return control


def encode_control(control: Control) -> bytes:
    """A control as it is sent: to the partition that is its prompt's home, with the prompt as key."""
    return b'{"schema":%d,' % control.schema + msgspec.json.encode(control).removeprefix(b"{")


def maker(
    control: Control,
    offset: int,
    timestamp: int,
    settings: Settings,
    lineage: str,
    *,
    then: PromptState | None = None,
) -> Callable[[PromptState], Published]:
    """What makes the version that a control asks for, of the newest state.

    :param offset: of the control; it stands in the version's audit.
    :param timestamp: of its record, in milliseconds.
    :param then: the state that a rollback goes back to.
    :return: it raises ``Declined`` or ``Undecidable`` when there is nothing to make.
    """
    at = control.at or datetime.fromtimestamp(timestamp / 1000, UTC).isoformat(timespec="seconds").replace(
        "+00:00", "Z"
    )

    def make(state: PromptState) -> Published:
        if control.kind == "rollback":
            if then is None:
                raise Declined(f"{control.prompt} has no version {control.to}")
            published = publish_rollback(state, then, settings, at=at, lineage=lineage)
        elif control.kind == "import":
            published = publish_import(
                state, control.bullets, settings, format=control.format, extra=control.extra, at=at, lineage=lineage
            )
        else:
            delta = person_delta(
                state.now,
                cast(PersonKind, control.kind),
                control.bullet,
                offset,
                content=control.content,
                section=control.section,
            )
            audit = {"asked": control.kind, "bullet": control.bullet}
            published = publish_delta(state, delta, settings, kind="edit", at=at, lineage=lineage, audit=audit)
        who = {"who": control.who} if control.who else {}
        entry = replace(published.entry, audit={**published.entry.audit, "control": offset, **who})
        return Published(published.state, published.update, entry)

    return make
