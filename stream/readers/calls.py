"""Tool calls of a message, and which of them a tool's message answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from operators.values import Call
from stream.decode import BadJson, decode
from stream.readers.fields import mapping, string


def arguments_of(value: object) -> Any:
    """Arguments as an object, also from JSON text and from JSON text in JSON text; else the raw text.

    Missing arguments and empty text are an empty object.
    """
    if value is None or (isinstance(value, str) and not value.strip()):
        return {}
    parsed = value
    for _ in range(2):
        if not isinstance(parsed, str):
            break
        try:
            parsed = decode(parsed.encode()).value
        except BadJson:
            break
    return parsed if isinstance(parsed, dict) else value


def calls_of(message: dict[str, Any]) -> tuple[Call, ...]:
    """The calls of an assistant's message: ``tool_calls``, or the one ``function_call`` of the format before."""
    calls = message.get("tool_calls")
    found = [_call(call) for call in calls if isinstance(call, dict)] if isinstance(calls, list) else []
    legacy = message.get("function_call")
    if not found and isinstance(legacy, dict):
        found = [_call(legacy)]
    return tuple(found)


def _call(call: dict[str, Any]) -> Call:
    """A call whose function stands in an object of its own (``function``, or ``custom`` with free text), or in it."""
    function = mapping(call.get("function")) or mapping(call.get("custom")) or call
    arguments = next((function[key] for key in ("arguments", "input", "args") if key in function), None)
    return Call(id=string(call.get("id")), name=string(function.get("name")), arguments=arguments_of(arguments))


class Links:
    """The calls of one trace that wait for their answers. A call without an id gets one by its place."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._open: list[str] = []
        self._made = 0

    def ask(self, calls: Sequence[Call]) -> tuple[Call, ...]:
        """Note an assistant's calls, and return them with ids."""
        return tuple(map(self._ask, calls))

    def _ask(self, call: Call) -> Call:
        self._made += 1
        if not call.id:
            call = msgspec.structs.replace(call, id=f"call-{self._made}")
        self._names[call.id] = call.name
        self._open.append(call.id)
        return call

    def answer(self, call: str | None, name: str | None) -> tuple[str | None, str | None]:
        """Find the call that a tool's message answers and the tool's name.

        Without an id it is the oldest open call of that name, or, where the message names none, the oldest open call.
        """
        if not call:
            call = next((known for known in self._open if name is None or self._names[known] == name), None)
        if call in self._open:
            self._open.remove(call)
        return call, name or self._names.get(call or "") or None
