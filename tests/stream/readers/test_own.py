from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from operators.values import Call, Outcome, Step, StepError, Trace
from stream.decode import decode
from stream.readers import NotATrace, own, pick

FULL = {
    "schema": 1,
    "id": "t-1",
    "prompt": "support/refunds",
    "version": 7,
    "lineage": "9f2c",
    "bullets": ["err-00001"],
    "agent": "refund-bot",
    "model": "m",
    "session": "s-9",
    "parent": None,
    "task": "Refund order 12",
    "started": "2026-01-02T03:04:05Z",
    "ended": "2026-01-02T03:04:09.250Z",
    "steps": [
        {
            "role": "assistant",
            "content": "",
            "reasoning": "",
            "calls": [{"id": "c1", "name": "refund", "arguments": {"amount": 10}}],
            "logprobs": [-0.1],
        },
        {"role": "tool", "call": "c1", "content": "", "error": "amount must be in cents"},
    ],
    "outcome": {"success": False, "reward": 0.0, "feedback": "not refunded", "termination": "max_turns"},
    "usage": {"tokens": 12},
    "a field from the future": {"x": 1},
}
TRACE = Trace(
    id="t-1",
    prompt="support/refunds",
    version=7,
    lineage="9f2c",
    bullets=("err-00001",),
    agent="refund-bot",
    model="m",
    session="s-9",
    task="Refund order 12",
    started="2026-01-02T03:04:05Z",
    ended="2026-01-02T03:04:09.250Z",
    steps=(
        Step(calls=(Call(id="c1", name="refund", arguments={"amount": 10}),), logprobs=[-0.1]),
        Step(role="tool", call="c1", error="amount must be in cents"),
    ),
    outcome=Outcome(success=False, reward=0.0, feedback="not refunded", termination="max_turns"),
    usage={"tokens": 12},
)


def read(value: Any) -> Trace:
    assert pick(value) is own.READER
    ((line, trace),) = own.READER.start().take(value, 3)
    assert line == 3
    return trace


def test_every_field_both_ways() -> None:
    assert own.fast(json.dumps(FULL).encode()) == TRACE
    assert read(FULL) == TRACE


text = st.text(st.characters(exclude_categories=["Cs"]), max_size=5)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False, allow_infinity=False) | text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3),
    max_leaves=5,
)
fields = st.dictionaries(
    st.sampled_from([*FULL, "other"]).filter(lambda key: key != "steps"),
    json_values | st.sampled_from([v for k, v in FULL.items() if k != "steps"]),
)
steps = st.fixed_dictionaries(
    {"role": st.sampled_from(["system", "user", "assistant", "tool", "event", "developer", "critic"]) | json_values},
    optional={
        "content": text | json_values,
        "reasoning": text | json_values,
        "calls": st.lists(
            st.fixed_dictionaries({}, optional={"id": text | json_values, "name": text, "arguments": json_values})
        )
        | json_values,
        "call": text | json_values,
        "name": text | json_values,
        "error": text | st.fixed_dictionaries({}, optional={"kind": text, "message": text | json_values}) | json_values,
        "started": text | json_values,
        "logprobs": json_values,
        "candidates": json_values,
    },
)


@given(fields, st.lists(steps, max_size=4))
def test_the_fast_path_reads_what_the_slow_one_reads(others: dict[str, Any], rows: list[Any]) -> None:
    raw = json.dumps({**others, "steps": rows}).encode()
    value = decode(raw).value
    if "schema_version" in value or not own.READER.detect(value):
        assert own.fast(raw) is None
        return
    slow = read(value)
    fast = own.fast(raw)
    assert fast is None or fast == slow
    written = msgspec.json.encode(slow)
    assert msgspec.json.decode(written, type=Trace) == slow


@pytest.mark.parametrize(
    ("field", "given", "read_as"),
    [
        ("id", 12, "12"),
        ("version", "7", 7),
        ("version", True, None),
        ("bullets", ["a", 2, None], ("a", "2")),
        ("bullets", "a", None),
        ("agent", {"name": "x"}, ""),
        ("task", [{"type": "text", "text": "Do"}], "Do"),
        ("started", 1767323045, "2026-01-02T03:04:05Z"),
        ("started", 1767323045250, "2026-01-02T03:04:05.250000Z"),
        ("started", 1767323045000000, "2026-01-02T03:04:05Z"),
        ("started", 1767323045000000000, "2026-01-02T03:04:05Z"),
        ("started", "2026-01-02T03:04:05", "2026-01-02T03:04:05Z"),
        ("started", "2026-01-02T05:04:05+02:00", "2026-01-02T03:04:05Z"),
        ("started", "yesterday", None),
        ("started", 7, None),
        ("outcome", True, Outcome(success=True)),
        ("outcome", {"success": 1, "reward": True}, Outcome(success=True)),
        ("outcome", {"success": "failed", "reward": 10**400}, Outcome(success=False)),
        ("outcome", {"success": "perhaps", "feedback": None}, Outcome()),
        ("usage", [1], {}),
        ("schema", 2, 2),
    ],
)
def test_fields_of_another_type(field: str, given: Any, read_as: Any) -> None:
    row = {field: given, "steps": [{"role": "user", "content": "x"}]}
    assert getattr(read(row), field) == read_as
    fast = own.fast(json.dumps(row).encode())
    assert fast is None or getattr(fast, field) == read_as


@pytest.mark.parametrize(
    ("role", "read_as"),
    [
        ("developer", "system"),
        ("human", "user"),
        ("AI", "assistant"),
        ("model", "assistant"),
        ("tool_result", "tool"),
        ("function", "tool"),
        ("judge", "event"),
        (None, "assistant"),
        (7, "assistant"),
    ],
)
def test_roles(role: Any, read_as: str) -> None:
    assert read({"steps": [{"role": role, "content": "x"}]}).steps[0].role == read_as


@pytest.mark.parametrize(
    ("error", "read_as"),
    [
        ("no", "no"),
        ({"kind": "KeyError", "message": "'a'", "code": 3}, StepError("KeyError", "'a'")),
        ({"code": 3}, None),
        ("", None),
        ({}, None),
        (None, None),
        (False, None),
        (True, "error"),
        ({"kind": None, "message": ["x"]}, StepError("", "x")),
        (["a", "b"], "a\nb"),
    ],
)
def test_errors(error: Any, read_as: Any) -> None:
    row = {"steps": [{"role": "tool", "content": "x", "error": error}]}
    assert read(row).steps[0].error == read_as
    fast = own.fast(json.dumps(row).encode())
    assert fast is None or fast.steps[0].error == read_as


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({"schema": 1, "steps": None}, "steps is not a list"),
        ({"steps": [{"role": "user"}, 3]}, "step 2 is not an object"),
    ],
)
def test_refused_with_the_reason(row: Any, reason: str) -> None:
    assert pick(row) is own.READER
    with pytest.raises(NotATrace, match=reason):
        own.READER.start().take(row, 1)


@pytest.mark.parametrize(
    "value",
    [
        {},
        {"steps": 3},
        {"steps": None},
        {"id": "t", "outcome": {"success": True}},
        {"steps": [{"source": "user", "message": "hello"}]},
        {"schema_version": "ATIF-v1.7", "agent": {"name": "x"}, "steps": [{"source": "agent", "message": ""}]},
        {"steps": [{"step_id": 1, "type": "thought"}]},
        [],
        [{"steps": []}],
        "steps",
        None,
    ],
)
def test_what_is_not_ours(value: Any) -> None:
    assert not own.READER.detect(value)
    assert own.fast(json.dumps(value).encode()) is None


def test_only_steps_are_needed() -> None:
    assert read({"steps": []}) == Trace()
    assert read({"steps": [{"content": "x"}]}) == Trace(steps=(Step(content="x"),))


@pytest.mark.parametrize("field", ["usage", "arguments", "logprobs"])
def test_deep_nesting_leaves_the_fast_path(field: str) -> None:
    deep = b'{"a":' * 300 + b"1" + b"}" * 300
    where = {
        "usage": b'{"steps": [{"role": "user", "content": "x"}], "usage": %s}',
        "arguments": b'{"steps": [{"role": "assistant", "calls": [{"arguments": %s}]}]}',
        "logprobs": b'{"steps": [{"role": "user", "content": "x", "logprobs": %s}]}',
    }[field]
    assert own.fast(where % deep) is None
    assert own.fast(where % b'{"a": {"a": [1]}}') is not None
