"""OpenAI chat-completions messages with tool calls: the rows that fine-tuning sets, proxies and agent logs hold.

A trace is a list of messages; an object with one under ``messages``, beside it whatever else the log knows; or an
object with a ``request`` of that form and its ``response``. The format has no place for an outcome: it is what stands
beside the messages, and absent when nothing does.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from operators.values import Outcome, Role, Step, Trace
from stream.readers.calls import Links, calls_of
from stream.readers.fields import (
    boolean,
    first,
    integer,
    mapping,
    merged,
    number,
    optional,
    outcome,
    rfc3339,
    string,
    strings,
    text,
)
from stream.readers.reader import NotATrace, Rows
from stream.readers.tool_errors import tool_error

_ROLES: dict[str, Role] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
    "function": "tool",
}
_SAYS = ("content", "tool_calls", "function_call", "refusal", "audio")
_FOREIGN = ("tool_use", "tool_result")
_REASONING = ("reasoning_content", "reasoning", "thinking", "thinking_blocks", "reasoning_details")
_NAME = 200
"""Most characters of a prompt's name; longer text under ``prompt`` is a prompt itself."""

Object = dict[str, Any]


def _is_message(value: object) -> bool:
    if not isinstance(value, dict) or string(value.get("role")) not in _ROLES or not any(key in value for key in _SAYS):
        return False
    content = value.get("content")
    # Anthropic's tool calls and results are parts of the content: another format, and a lossy read of it here.
    return not isinstance(content, list) or not any(
        isinstance(part, dict) and part.get("type") in _FOREIGN for part in content
    )


def _is_messages(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(map(_is_message, value))


def _detect(value: object) -> bool:
    if not isinstance(value, dict):
        return _is_messages(value)
    if _is_messages(value.get("messages")):
        return not isinstance(value.get("steps"), list)
    return _is_messages(mapping(value.get("request")).get("messages")) and isinstance(value.get("response"), dict)


def _read(value: object) -> Trace:
    if isinstance(value, list) and not _is_messages(value):
        raise NotATrace("not every message has a known role and content")
    row = mapping(value)
    request, response = mapping(row.get("request")), mapping(row.get("response"))
    messages = value if isinstance(value, list) else row.get("messages") or request["messages"]
    choice = _choice(response)
    if choice:
        messages = [*messages, {"logprobs": choice.get("logprobs"), **mapping(choice.get("message"))}]
    links = Links()
    steps = tuple(_step(message, links) for message in messages)
    named = merged(response, request, row)
    beside = merged(mapping(request.get("metadata")), mapping(row.get("metadata")), request, row)
    return Trace(
        id=string(first(named, "id", "trace_id", "uuid")),
        prompt=_prompt_name(first(beside, "prompt_name", "prompt")),
        version=integer(first(beside, "prompt_version", "version")),
        lineage=optional(beside.get("lineage")),
        bullets=strings(beside.get("bullets")),
        agent=_name(first(beside, "agent", "agent_name")),
        model=_name(response.get("model") or first(beside, "model", "model_name")),
        session=string(first(beside, "session", "session_id", "conversation_id", "thread_id")),
        parent=optional(first(beside, "parent", "parent_id", "parent_trace_id")),
        task=_task(beside, steps),
        started=rfc3339(first(beside, "started", "started_at", "start_time", "timestamp", "created_at")),
        ended=rfc3339(first(beside, "ended", "ended_at", "end_time", "completed_at") or named.get("created")),
        steps=steps,
        outcome=_outcome(beside, response, choice),
        usage=mapping(response.get("usage") or beside.get("usage")),
    )


def _choice(response: Object) -> Object:
    """The first choice of a response: the one that its caller went on with."""
    choices = response.get("choices")
    choice = mapping(choices[0]) if isinstance(choices, list) and choices else {}
    return choice if _is_message({"role": "assistant", **mapping(choice.get("message"))}) else {}


def _step(message: Object, links: Links) -> Step:
    role = _ROLES[message.get("role", "assistant")]
    name = optional(message.get("name"))
    content = text(message.get("content"))
    if role == "tool":
        call, name = links.answer(optional(message.get("tool_call_id")), name)
        return Step(role=role, content=content, call=call, name=name, error=tool_error(message, content))
    if role != "assistant":
        return Step(role=role, content=content, name=name)
    reasoning = text(first(message, *_REASONING))
    if not reasoning:
        reasoning, content = _think(content)
    return Step(
        role=role,
        content=content or text(message.get("refusal")),
        reasoning=reasoning,
        calls=links.ask(calls_of(message)),
        name=name,
        logprobs=message.get("logprobs"),
    )


def _think(content: str) -> tuple[str, str]:
    """Split a leading think block, as local servers leave it in the text, from what follows it."""
    start = content.lstrip()
    if not start.startswith("<think>"):
        return "", content
    thought, closed, rest = start.removeprefix("<think>").partition("</think>")
    return (thought.strip(), rest.lstrip()) if closed else ("", content)


def _task(beside: Object, steps: Sequence[Step]) -> str:
    told = first(beside, "task", "instruction")
    if isinstance(told, str) and told.strip():
        return told
    return next((step.content for step in steps if step.role == "user" and step.content), "")


def _name(value: object) -> str:
    return string(value.get("name")) if isinstance(value, dict) else string(value)


def _prompt_name(value: object) -> str:
    """A prompt's name; text with white space in it is a prompt, not the name of one."""
    name = string(value)
    return name if len(name) <= _NAME and not any(map(str.isspace, name)) else ""


def _outcome(beside: Object, response: Object, choice: Object) -> Outcome:
    """What the row says about how the run ended. A number is a reward, never a success: its scale is not known."""
    given = outcome(beside.get("outcome"))
    success, reward = given.success, given.reward
    for key in ("success", "resolved", "is_correct", "passed", "label", "score", "reward"):
        value = beside.get(key)
        # Numbers under these names may be class numbers or measurements.
        if success is None and (isinstance(value, bool) or (isinstance(value, str) and key in ("success", "label"))):
            success = boolean(value)
        if reward is None and key in ("score", "reward"):
            reward = number(value)
    error = beside.get("error") or response.get("error")
    failed = isinstance(error, str | dict) and bool(error)
    told = first(beside, "feedback", "comment") or (text(mapping(error).get("message") or error) if failed else "")
    ending = first(beside, "termination", "termination_reason", "stop_condition")
    return Outcome(
        success=success,
        reward=reward,
        feedback=given.feedback or text(told),
        termination=given.termination or string(ending) or ("error" if failed else string(choice.get("finish_reason"))),
    )


READER = Rows("openai-messages", _detect, _read)
