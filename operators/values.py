"""The values that flow through the stream: traces in, reflections and bullets between, updates out.

All are frozen msgspec Structs, so one definition is the type, the validator and the JSON codec. What is made by the
million holds no cycle, so the garbage collector need not look at it. Field names and meanings are those of the message
schemas; everything but ``steps`` may be missing from a trace.
"""

from __future__ import annotations

from typing import Any, Literal

from msgspec import UNSET, Struct, UnsetType, field

Role = Literal["system", "user", "assistant", "tool", "event"]
DropReason = Literal["duplicate", "known", "vague", "too_specific", "not_a_lesson", "wrong", "contradicted", "unsafe"]
OperationType = Literal["ADD", "UPDATE", "MERGE", "REMOVE"]
VersionKind = Literal["window", "import", "rollback", "edit"]


class Call(Struct, frozen=True, omit_defaults=True, gc=False):
    """One tool call of an assistant step; ``arguments`` is an object, or the raw text where that was not JSON."""

    id: str = ""
    name: str = ""
    arguments: Any = None


class StepError(Struct, frozen=True, omit_defaults=True, gc=False):
    """What went wrong in a step, as far as its format tells kinds apart."""

    kind: str = ""
    message: str = ""


class Step(Struct, frozen=True, omit_defaults=True, gc=False):
    """One message, tool call or observation. ``call`` names the call a tool step answers. Times are RFC 3339."""

    role: Role = "assistant"
    content: str = ""
    reasoning: str = ""
    calls: tuple[Call, ...] = ()
    call: str | None = None
    name: str | None = None
    error: str | StepError | None = None
    started: str | None = None
    ended: str | None = None
    logprobs: Any = None
    candidates: Any = None


class Outcome(Struct, frozen=True, omit_defaults=True, gc=False):
    """How a run ended. ``success`` stays None when the log does not say: no error is not a success."""

    success: bool | None = None
    reward: float | None = None
    feedback: str = ""
    termination: str = ""


class Trace(Struct, frozen=True, omit_defaults=True, gc=False):
    """One finished agent run. ``bullets``, ``version`` and ``lineage`` say what the agent had read, if known."""

    schema: int = 1
    id: str = ""
    prompt: str = ""
    version: int | None = None
    lineage: str | None = None
    bullets: tuple[str, ...] | None = None
    agent: str = ""
    model: str = ""
    session: str = ""
    parent: str | None = None
    task: str = ""
    started: str | None = None
    ended: str | None = None
    steps: tuple[Step, ...] = ()
    outcome: Outcome = Outcome()
    usage: dict[str, Any] = field(default_factory=dict)


class Bullet(Struct, frozen=True, gc=False):
    """One lesson as it is shown.

    ``bullet`` is its identity, ``id`` its display id (``err-00001``; empty until published), ``key`` the canonical key
    its method gave (empty where the text is the key), ``raw`` whether it entered without a curator, ``traces`` how many
    traces its evidence counts.
    """

    id: str = ""
    section: str = ""
    content: str = ""
    helpful: int = 0
    harmful: int = 0
    bullet: str = ""
    key: str = ""
    raw: bool = False
    pinned: bool = False
    traces: int = 0


class Insight(Struct, frozen=True, omit_defaults=True, gc=False):
    """One lesson that one trace teaches; ``number`` counts from 1 within its reflection."""

    number: int
    section: str
    content: str
    key: str = ""


class Reflection(Struct, frozen=True, omit_defaults=True, gc=False):
    """What one trace teaches: numbered insights, and votes on the bullets (identities) its agent had seen."""

    trace: str
    session: str = ""
    insights: tuple[Insight, ...] = ()
    helpful: tuple[str, ...] = ()
    harmful: tuple[str, ...] = ()
    fallback: bool = False


class Given(Struct, frozen=True, omit_defaults=True, gc=False):
    """One insight in front of a curator. ``missed`` counts the windows whose curators left it uncited."""

    insight: Insight
    trace: str
    session: str = ""
    missed: int = 0


class Operation(Struct, frozen=True, omit_defaults=True, gc=False):
    """One thing a curator does, citing by number what it covers.

    :param type: ADD a bullet, UPDATE one of ``bullets``, MERGE several of them, REMOVE them.
    :param bullets: identities of bullets of the base (for level 2, also of the window's proposals).
    :param cites: numbers, from 1, of the insights (level 1) or proposals (level 2) that it covers.
    """

    type: OperationType
    cites: tuple[int, ...] = ()
    bullets: tuple[str, ...] = ()
    section: str = ""
    content: str = ""
    key: str = ""


class Drop(Struct, frozen=True, omit_defaults=True, gc=False):
    """What a curator refuses: the numbers cited, the reason, and for a duplicate the number (``of``) it repeats."""

    cites: tuple[int, ...]
    reason: str
    of: int | None = None


class Curation(Struct, frozen=True, omit_defaults=True, gc=False):
    """A curator's whole answer; what it neither covers nor drops is carried."""

    operations: tuple[Operation, ...] = ()
    drops: tuple[Drop, ...] = ()
    fallback: bool = False


class Learned(Struct, frozen=True, omit_defaults=True):
    """What a version was learned from; ``offsets`` maps ``topic/partition`` to inclusive ranges."""

    traces: int = 0
    offsets: dict[str, list[tuple[int, int]]] = field(default_factory=dict)


class Update(Struct, frozen=True):
    """A prompt update: the whole prompt of one new version, as agents get it. Times are RFC 3339."""

    prompt: str
    version: int
    base: int
    kind: VersionKind
    changed: bool
    text: str
    bullets: tuple[Bullet, ...]
    schema: int = 1
    lineage: str = ""
    at: str | UnsetType = UNSET
    learned: Learned = Learned()
    stats: dict[str, Any] = field(default_factory=dict)
