"""Our own format: one trace an object, as the message schema says; all but ``steps`` may be missing."""

from __future__ import annotations

from typing import Any

import msgspec

from operators.values import Call, Role, Step, StepError, Trace
from stream.decode import too_deep
from stream.readers.fields import integer, mapping, optional, outcome, rfc3339, string, strings, text
from stream.readers.reader import NotATrace, Rows

_DECODER = msgspec.json.Decoder(Trace)
_OWN = ("content", "calls", "call", "error", "reasoning")
_FLAT = 150
"""Deepest nesting in one field of a trace that is taken on the fast path (well below ``MAX_DEPTH``, for the rest)."""

_ROLES: dict[str, Role] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "human": "user",
    "assistant": "assistant",
    "agent": "assistant",
    "ai": "assistant",
    "bot": "assistant",
    "gpt": "assistant",
    "model": "assistant",
    "tool": "tool",
    "function": "tool",
    "observation": "tool",
    "toolresult": "tool",
    "event": "event",
}


def fast(raw: bytes) -> Trace | None:
    """Decode a line that is a well-formed trace of ours at once; None for all others, which ``read`` may still take."""
    try:
        trace = _DECODER.decode(raw)
    except (msgspec.DecodeError, RecursionError):
        return None
    # Hardly any trace has so many brackets, and without them nothing in it is deep.
    deep = raw.count(b"{") + raw.count(b"[") > _FLAT
    if not trace.steps or (deep and too_deep(trace.usage, _FLAT)):
        return None
    if not (_is_time(trace.started) and _is_time(trace.ended)):
        return None
    for step in trace.steps:
        # A step that says nothing in our words may be another format's step.
        if not (step.calls or step.content or step.call or step.error or step.reasoning):
            return None
        if step.error is not None and not _said(step.error):
            return None
        if deep and too_deep([[call.arguments for call in step.calls], step.logprobs, step.candidates], _FLAT):
            return None
    return trace


def _is_time(time: str | None) -> bool:
    return time is None or rfc3339(time) == time


def _detect(value: object) -> bool:
    if not isinstance(value, dict) or "schema_version" in value:
        return False
    steps = value.get("steps")
    if not isinstance(steps, list):
        return "steps" in value and value.get("schema") == 1
    return all(not isinstance(step, dict) or _is_step(step) for step in steps)


def _is_step(step: dict[str, Any]) -> bool:
    return isinstance(step.get("role"), str) or any(key in step for key in _OWN)


def _read(value: object) -> Trace:
    row = mapping(value)
    steps = row.get("steps")
    if not isinstance(steps, list):
        raise NotATrace("steps is not a list")
    return Trace(
        schema=integer(row.get("schema", 1)) or 0,
        id=string(row.get("id")),
        prompt=string(row.get("prompt")),
        version=integer(row.get("version")),
        lineage=optional(row.get("lineage")),
        bullets=strings(row.get("bullets")),
        agent=string(row.get("agent")),
        model=string(row.get("model")),
        session=string(row.get("session")),
        parent=optional(row.get("parent")),
        task=text(row.get("task")),
        started=rfc3339(row.get("started")),
        ended=rfc3339(row.get("ended")),
        steps=tuple(_step(number, step) for number, step in enumerate(steps, 1)),
        outcome=outcome(row.get("outcome")),
        usage=mapping(row.get("usage")),
    )


def _step(number: int, step: object) -> Step:
    if not isinstance(step, dict):
        raise NotATrace(f"step {number} is not an object")
    calls = step.get("calls")
    return Step(
        role=_role(step.get("role")),
        content=text(step.get("content")),
        reasoning=text(step.get("reasoning")),
        calls=tuple(_call(call) for call in calls if isinstance(call, dict)) if isinstance(calls, list) else (),
        call=optional(step.get("call")),
        name=optional(step.get("name")),
        error=_error(step.get("error")),
        started=optional(step.get("started")),
        ended=optional(step.get("ended")),
        logprobs=step.get("logprobs"),
        candidates=step.get("candidates"),
    )


def _role(role: object) -> Role:
    """A missing role is the assistant's, as in the schema; an unknown one is an event, so that nobody's words become
    the agent's."""
    if not isinstance(role, str):
        return "assistant"
    return _ROLES.get(role.casefold().replace("_", ""), "event")


def _call(call: dict[str, Any]) -> Call:
    return Call(id=string(call.get("id")), name=string(call.get("name")), arguments=call.get("arguments"))


def _error(value: object) -> str | StepError | None:
    error: str | StepError
    if isinstance(value, dict):
        error = StepError(kind=string(value.get("kind")), message=text(value.get("message")))
    else:
        error = "" if value is False else "error" if value is True else text(value)
    return error if _said(error) else None


def _said(error: str | StepError) -> str:
    """Empty where a log writes its empty error into every step."""
    return error.kind or error.message if isinstance(error, StepError) else error


READER = Rows("tracecomb", _detect, _read)
