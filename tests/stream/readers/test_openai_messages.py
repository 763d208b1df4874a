from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from operators.values import Call, Outcome, Step, Trace
from stream.readers import NotATrace, openai_messages, pick

USER = {"role": "user", "content": "Refund order 12"}


def read(value: Any) -> Trace:
    assert pick(value[:1] if isinstance(value, list) else value) is openai_messages.READER
    ((_, trace),) = openai_messages.READER.start().take(value, 1)
    return trace


def call(arguments: Any = "{}", name: str = "refund", **more: Any) -> dict[str, Any]:
    return {"id": "c1", "type": "function", "function": {"name": name, "arguments": arguments}, **more}


def test_a_row() -> None:
    trace = read(
        {
            "id": 41,
            "messages": [
                {"role": "developer", "content": "Be kind."},
                USER,
                {"role": "assistant", "content": None, "tool_calls": [call('{"amount": 10}')]},
                {"role": "tool", "tool_call_id": "c1", "content": "Error: amount must be in cents"},
                {"role": "assistant", "content": "Sorry."},
            ],
            "tools": [{"type": "function"}],
            "model": "gpt",
            "reward": 0.25,
            "metadata": {"agent": "refund-bot", "session_id": "s-9", "prompt": "support/refunds"},
            "usage": {"total_tokens": 5},
            "created_at": 1767323045,
        }
    )
    assert trace == Trace(
        id="41",
        prompt="support/refunds",
        agent="refund-bot",
        model="gpt",
        session="s-9",
        task="Refund order 12",
        started="2026-01-02T03:04:05Z",
        steps=(
            Step(role="system", content="Be kind."),
            Step(role="user", content="Refund order 12"),
            Step(calls=(Call(id="c1", name="refund", arguments={"amount": 10}),)),
            Step(
                role="tool",
                content="Error: amount must be in cents",
                call="c1",
                name="refund",
                error="amount must be in cents",
            ),
            Step(content="Sorry."),
        ),
        outcome=Outcome(reward=0.25),
        usage={"total_tokens": 5},
    )


def test_a_bare_list() -> None:
    trace = read([USER, {"role": "assistant", "content": "Done"}])
    assert (trace.task, len(trace.steps), trace.outcome, trace.id) == ("Refund order 12", 2, Outcome(), "")


@pytest.mark.parametrize("names", [("request", "response"), ("", "response")])
def test_a_request_and_its_response_in_one_row(names: tuple[str, str]) -> None:
    request = {"model": "m", "messages": [USER]}
    logprobs = {"content": [{"token": "a", "logprob": None}]}
    message = {"role": "assistant", "content": None, "tool_calls": [call()]}
    response = {
        "id": "chatcmpl-1",
        "model": "m-2",
        "created": 1767323045,
        "choices": [{"message": message, "logprobs": logprobs, "finish_reason": "tool_calls"}, {"message": {}}],
        "usage": {"total_tokens": 9},
    }
    row = {names[0]: request, "response": response} if names[0] else {**request, "response": response}
    trace = read(row)
    assert (trace.id, trace.model, trace.ended) == ("chatcmpl-1", "m-2", "2026-01-02T03:04:05Z")
    assert trace.steps[-1] == Step(calls=(Call(id="c1", name="refund", arguments={}),), logprobs=logprobs)
    assert trace.outcome == Outcome(termination="tool_calls")
    assert trace.usage == {"total_tokens": 9}


def test_a_response_that_is_an_error() -> None:
    trace = read({"request": {"messages": [USER]}, "response": {"error": {"message": "no quota", "type": "x"}}})
    assert trace.steps == (Step(role="user", content="Refund order 12"),)
    assert trace.outcome == Outcome(feedback="no quota", termination="error")


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("x", "x"),
        (None, ""),
        ("", ""),
        ([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], "a\nb"),
        ([{"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}, "b"], "[image]\nb"),
        ([{"type": "input_audio", "input_audio": {"data": "AAAA"}}], "[audio]"),
        ([{"type": "refusal", "refusal": "No."}], "No."),
        ([], ""),
        ({"a": 1}, '{"a":1}'),
        (12, "12"),
    ],
)
def test_content(content: Any, text: str) -> None:
    assert read([USER, {"role": "assistant", "content": content}]).steps[1].content == text
    assert read([{"role": "tool", "tool_call_id": "c", "content": content}]).steps[0].content == text


def test_a_refusal() -> None:
    assert read([{"role": "assistant", "content": None, "refusal": "I cannot."}]).steps[0].content == "I cannot."


@pytest.mark.parametrize(
    ("arguments", "read_as"),
    [
        ('{"a": 1}', {"a": 1}),
        ({"a": 1}, {"a": 1}),
        ('"{\\"a\\": 1}"', {"a": 1}),
        ('{"a": "line\nbreak", "b": NaN}', {"a": "line\nbreak", "b": None}),
        ("", {}),
        (None, {}),
        ('{"a": 1', '{"a": 1'),
        ("[1]", "[1]"),
        ("refund order 12", "refund order 12"),
        ('"\\"x\\""', '"\\"x\\""'),
        ("{" * 3_000, "{" * 3_000),
    ],
)
def test_arguments(arguments: Any, read_as: Any) -> None:
    trace = read([{"role": "assistant", "content": "", "tool_calls": [call(arguments)]}])
    assert trace.steps[0].calls == (Call(id="c1", name="refund", arguments=read_as),)


def test_calls_of_other_shapes() -> None:
    flat = {"id": "c1", "name": "look", "arguments": {"a": 1}, "requestor": "assistant"}
    custom = {"id": "c2", "type": "custom", "custom": {"name": "run", "input": "ls -la"}}
    trace = read([{"role": "assistant", "content": None, "tool_calls": [flat, custom, "noise"]}])
    assert trace.steps[0].calls == (
        Call(id="c1", name="look", arguments={"a": 1}),
        Call(id="c2", name="run", arguments="ls -la"),
    )
    assert read([{"role": "assistant", "content": "", "tool_calls": None}]).steps[0].calls == ()


def test_function_calls_as_they_were_before_tools() -> None:
    trace = read(
        [
            {"role": "assistant", "content": None, "function_call": {"name": "look", "arguments": '{"a": 1}'}},
            {"role": "function", "name": "look", "content": "ok"},
            {"role": "assistant", "content": None, "function_call": {"name": "look", "arguments": "{}"}},
            {"role": "function", "name": "look", "content": "Error: not found"},
        ]
    )
    first, second = trace.steps[0].calls[0], trace.steps[2].calls[0]
    assert first.id != second.id
    assert [(step.role, step.call, step.name) for step in trace.steps if step.role == "tool"] == [
        ("tool", first.id, "look"),
        ("tool", second.id, "look"),
    ]
    assert trace.steps[3].error == "not found"


def test_parallel_calls_are_answered_in_any_order() -> None:
    trace = read(
        [
            {"role": "assistant", "content": "", "tool_calls": [call(id="a", name="x"), call(id="b", name="y")]},
            {"role": "tool", "tool_call_id": "b", "content": "2"},
            {"role": "tool", "tool_call_id": "a", "content": "1"},
            {"role": "tool", "tool_call_id": "z", "content": "0"},
        ]
    )
    assert [(step.call, step.content) for step in trace.steps[1:]] == [("b", "2"), ("a", "1"), ("z", "0")]


def test_calls_without_ids_are_linked_by_name_then_order() -> None:
    calls = [{"function": {"name": name, "arguments": "{}"}} for name in ("x", "y", "y")]
    trace = read(
        [
            {"role": "assistant", "content": "", "tool_calls": calls},
            {"role": "tool", "name": "y", "content": "1"},
            {"role": "tool", "content": "2"},
            {"role": "tool", "content": "3"},
            {"role": "tool", "content": "4"},
        ]
    )
    x, y, z = (made.id for made in trace.steps[0].calls)
    assert len({x, y, z}) == 3
    assert [(step.call, step.name) for step in trace.steps[1:]] == [(y, "y"), (x, "x"), (z, "y"), (None, None)]


@pytest.mark.parametrize(
    "message",
    [
        {"content": "Done", "reasoning_content": "Hm"},
        {"content": "Done", "reasoning": "Hm"},
        {"content": "Done", "thinking_blocks": [{"type": "thinking", "thinking": "Hm"}]},
        {"content": "Done", "reasoning_details": [{"type": "reasoning.text", "text": "Hm"}]},
        {"content": "\n<think>\nHm\n</think>\n\nDone"},
    ],
)
def test_reasoning(message: dict[str, Any]) -> None:
    step = read([{"role": "assistant", **message}]).steps[0]
    assert (step.content, step.reasoning) == ("Done", "Hm")


@pytest.mark.parametrize("content", ["<think>never closed", "I <think>a</think> b"])
def test_think_blocks_that_are_none(content: str) -> None:
    step = read([{"role": "assistant", "content": content}]).steps[0]
    assert (step.content, step.reasoning) == (content, "")


@pytest.mark.parametrize(
    ("beside", "outcome"),
    [
        ({}, Outcome()),
        ({"reward": 1}, Outcome(reward=1.0)),
        ({"reward": 0.0, "score": 3}, Outcome(reward=3.0)),
        ({"score": True}, Outcome(success=True)),
        ({"score": False, "reward": 0.5}, Outcome(success=False, reward=0.5)),
        ({"success": False, "score": 0.9}, Outcome(success=False, reward=0.9)),
        ({"resolved": True}, Outcome(success=True)),
        ({"label": True}, Outcome(success=True)),
        ({"label": "incorrect"}, Outcome(success=False)),
        ({"label": "spam"}, Outcome()),
        ({"label": 1}, Outcome()),
        ({"reward": "high"}, Outcome()),
        ({"metadata": {"reward": 0.5}}, Outcome(reward=0.5)),
        ({"outcome": {"success": True, "reward": 2, "feedback": "ok"}}, Outcome(True, 2.0, "ok")),
        ({"outcome": "failure", "comment": "too late"}, Outcome(success=False, feedback="too late")),
        ({"error": "RuntimeError: max turns"}, Outcome(feedback="RuntimeError: max turns", termination="error")),
        ({"error": False}, Outcome()),
        ({"error": "", "termination_reason": "max_steps"}, Outcome(termination="max_steps")),
    ],
)
def test_outcome_only_as_the_row_says(beside: dict[str, Any], outcome: Outcome) -> None:
    assert read({"messages": [USER], **beside}).outcome == outcome


@pytest.mark.parametrize(
    ("beside", "field", "value"),
    [
        ({"task": "Book a flight"}, "task", "Book a flight"),
        ({"task": {"id": 1}}, "task", "Refund order 12"),
        ({"trace_id": "t"}, "id", "t"),
        ({"task_id": 3, "run_id": "r"}, "id", ""),
        ({"metadata": {"id": "m"}}, "id", ""),
        ({"agent": {"name": "bot", "version": "1"}}, "agent", "bot"),
        ({"prompt": "You are a helpful assistant."}, "prompt", ""),
        ({"prompt_name": "a/b"}, "prompt", "a/b"),
        ({"metadata": {"version": 3, "lineage": "l", "bullets": ["b"]}}, "version", 3),
        ({"metadata": "none"}, "session", ""),
        ({"conversation_id": 7}, "session", "7"),
        ({"usage": None}, "usage", {}),
    ],
)
def test_what_stands_beside_the_messages(beside: dict[str, Any], field: str, value: Any) -> None:
    assert getattr(read({"messages": [USER], **beside}), field) == value


@pytest.mark.parametrize(
    "value",
    [
        {"messages": []},
        {"messages": {}},
        {"messages": [{"role": "user"}]},
        {"messages": [{"content": "x"}]},
        {"messages": [USER, {"role": "exit", "content": ""}]},
        {"messages": [USER, {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "x"}]}]},
        {"messages": [USER], "steps": [{"role": "user", "content": "ours"}]},
        {"messages": [{"direction": "in", "message": USER}]},
        {"object": "chat.completion", "choices": [{"message": {"role": "assistant", "content": "x"}}]},
        {"request": {"input": "x"}, "response": {"choices": []}},
        {"request": {"messages": [USER]}},
        {"conversations": [{"from": "human", "value": "x"}]},
        [{"role": "user", "parts": []}],
        [[USER]],
        [],
    ],
)
def test_what_is_another_format(value: Any) -> None:
    assert not openai_messages.READER.detect(value)


def test_a_list_that_goes_on_otherwise_is_refused() -> None:
    with pytest.raises(NotATrace):
        openai_messages.READER.start().take([USER, {"role": "critic", "content": "x"}], 1)


def test_the_samples(shared: Path) -> None:
    folder = shared / "traces" / "openai_messages"
    trace = read(json.loads((folder / "openhands_fncall_messages.json").read_bytes()))
    assert len(trace.steps) == 14
    assert trace.task.startswith("Hello! Can you create a new Python file named hello.py")
    tools = [step for step in trace.steps if step.role == "tool"]
    called = [made for step in trace.steps for made in step.calls]
    assert [step.call for step in tools] == [made.id for made in called]
    assert all(isinstance(made.arguments, dict) for made in called)
    assert [step.name for step in tools if step.error] == ["str_replace_editor"] * 2
