"""A trace's tool calls with what came of each, and how the arguments of two calls differ."""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from msgspec import Struct

from operators.lesson import name
from operators.mask import MASK, mask
from operators.values import Call, Step, StepError

MISSING: Any = object()
"""Stands for an argument that a call did not have, and for the arguments of a call that the log does not show."""

_PARSED = 65_536
_DEPTH, _CHANGES = 4, 64
_WAITING = 1_000


class Attempt(Struct, frozen=True):
    """One tool call. Steps are numbered from 0.

    :param asked: the step that made the call, and ``answered`` the one that answered it, -1 while none has.
    :param error: what went wrong, empty when nothing did; ``masked`` the same with the values masked.
    """

    tool: str
    arguments: Any
    asked: int
    answered: int = -1
    output: str = ""
    error: str = ""
    masked: str = ""

    @property
    def succeeded(self) -> bool:
        return self.answered >= 0 and not self.error


class Change(NamedTuple):
    """One argument in two calls; a nested one is named ``order.lines[].price``, the whole input by the empty text."""

    argument: str
    before: Any
    after: Any


def error_of(step: Step) -> str:
    """The error that a tool step reports, empty when none: a reader has told errors from answers already."""
    error = step.error
    if not error:
        return ""
    if isinstance(error, StepError):
        kind, message = error.kind, error.message or step.content
        return f"{kind}: {message}" if kind and kind not in message else message or "error"
    return _last_line(error)


def attempts(steps: Sequence[Step]) -> list[Attempt]:
    """All tool calls in the order they were made, each with its answer.

    An answer goes to the oldest unanswered call with its id, else to the oldest without one, else to the oldest at all
    when it has no id itself or names the call's tool; never to a call of another tool than it names. An answer to no
    call is an attempt of its own when it has a name.
    """
    made: list[Attempt] = []
    waiting: deque[tuple[str, int]] = deque(maxlen=_WAITING)
    for number, step in enumerate(steps):
        for call in step.calls:
            waiting.append((call.id, len(made)))
            made.append(Attempt(name(call.name), _arguments(call), number))
        if step.role == "tool":
            tool = name(step.name or "")
            found = _answered(waiting, step.call or "", tool, made)
            if found is not None:
                made[found] = _with_answer(made[found], step, number)
            elif tool:
                made.append(_with_answer(Attempt(tool, MISSING, number), step, number))
    return made


def changes(before: Any, after: Any) -> list[Change]:
    """What differs between the arguments of two calls, at most 64 changes, the first of each name."""
    if not isinstance(before, dict) or not isinstance(after, dict):
        return [] if _same(before, after) else [Change("", before, after)]
    found: dict[str, Change] = {}
    for change in _walk("", before, after, _DEPTH):
        found.setdefault(change.argument, change)
        if len(found) == _CHANGES:
            break
    return list(found.values())


def canonical(arguments: Any) -> str | None:
    """A text that only the same arguments have, whatever their order; None where there can be none."""
    try:
        return json.dumps(arguments, sort_keys=True)
    except (TypeError, ValueError, RecursionError):
        return None


def find(output: str, wanted: Any) -> str | None:
    """Where a tool's answer holds a value: its field, the empty text when it is in the wording, None when nowhere."""
    if isinstance(wanted, bool) or not isinstance(wanted, str | int | float) or len(str(wanted)) < 3:
        return None
    try:
        answer = json.loads(output) if len(output) <= _PARSED else None
    except (ValueError, RecursionError):
        answer = None
    if isinstance(answer, dict | list):
        return next((where for where, leaf in _fields("", answer, _DEPTH) if str(leaf) == str(wanted)), None)
    return "" if re.search(rf"(?<!\w){re.escape(str(wanted)[:200])}(?!\w)", output[:_PARSED]) else None


def _arguments(call: Call) -> Any:
    return {} if call.arguments is None else call.arguments


def _answered(waiting: deque[tuple[str, int]], call: str, tool: str, made: list[Attempt]) -> int | None:
    """Take the call that an answer belongs to out of those that wait for one."""
    best: tuple[int, int] | None = None
    for place, (given, number) in enumerate(waiting):
        if call and given == call:
            best = (0, place)
            break
        named = bool(tool) and made[number].tool == tool
        if named or not tool:
            rank = 1 if not given else 2 if named or not call else 3
            best = min(best or (3, 0), (rank, place))
    if best is None or best[0] == 3:
        return None
    number = waiting[best[1]][1]
    del waiting[best[1]]
    return number


def _with_answer(attempt: Attempt, step: Step, number: int) -> Attempt:
    error = error_of(step)
    masked = (mask(error, attempt.arguments) or MASK) if error else ""
    return Attempt(attempt.tool, attempt.arguments, attempt.asked, number, step.content, error, masked)


def _last_line(error: str) -> str:
    """A Python traceback says what happened in its last line."""
    if error.lstrip()[:9].lower() != "traceback":
        return error
    return error[-4_000:].rstrip().rpartition("\n")[2]


def _walk(path: str, before: Any, after: Any, depth: int) -> Iterator[Change]:
    if depth and isinstance(before, dict) and isinstance(after, dict):
        for key in dict.fromkeys((*before, *after)):
            inner = f"{path}.{key}" if path else str(key)
            yield from _walk(name(inner), before.get(key, MISSING), after.get(key, MISSING), depth - 1)
    elif depth and isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for left, right in zip(before, after, strict=True):
            yield from _walk(f"{path}[]", left, right, depth - 1)
    elif not _same(before, after):
        yield Change(path, before, after)


def _fields(path: str, answer: Any, depth: int) -> Iterator[tuple[str, Any]]:
    if isinstance(answer, dict):
        for key, inner in answer.items() if depth else ():
            yield from _fields(name(f"{path}.{key}" if path else str(key)), inner, depth - 1)
    elif isinstance(answer, list):
        for inner in answer if depth else ():
            yield from _fields(f"{path}[]", inner, depth - 1)
    else:
        yield path, answer


def _same(left: Any, right: Any) -> bool:
    """Equal as JSON: ``1`` is not ``true``, and the number is not its text."""
    try:
        return type(left) is type(right) and bool(left == right)
    except RecursionError:
        return False
