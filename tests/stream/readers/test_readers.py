from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import stream.readers
from stream.decode import BadJson, decode
from stream.readers import READERS, NotATrace, pick

leaves = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=4)
KEYS = st.sampled_from(
    [
        "messages",
        "steps",
        "role",
        "content",
        "tool_calls",
        "function",
        "arguments",
        "name",
        "id",
        "error",
        "calls",
        "request",
        "response",
        "choices",
        "message",
        "tool_call_id",
        "type",
        "text",
        "reward",
        "score",
        "success",
        "label",
        "outcome",
        "metadata",
        "usage",
        "logprobs",
        "prompt",
        "task",
        "started",
        "is_error",
        "function_call",
    ]
)
WORDS = st.sampled_from(
    ["user", "assistant", "tool", "system", "function", "text", "error", "Error: x", '{"error": {}}']
)
values = st.recursive(
    leaves | WORDS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=5)
)
messages = st.lists(
    st.fixed_dictionaries(
        {"role": st.sampled_from(["system", "user", "assistant", "tool", "function"]), "content": values},
        optional=dict.fromkeys(("tool_calls", "function_call", "tool_call_id", "name", "error", "refusal"), values),
    ),
    min_size=1,
)
rows = (
    values
    | messages
    | st.dictionaries(KEYS, values).flatmap(
        lambda row: messages.map(lambda found: {**row, "messages": found, "steps": None})
    )
)


def test_the_export_list_is_sorted_and_whole() -> None:
    names = stream.readers.__all__
    assert names == sorted(names, key=lambda name: (not name.isupper(), name[0].islower(), name))
    assert all(hasattr(stream.readers, name) for name in names)


def test_readers_are_sorted_by_name() -> None:
    names = [reader.name for reader in READERS]
    assert names == sorted(set(names))


@given(rows)
def test_at_most_one_reader_claims_a_value_and_reads_or_refuses_it(value: Any) -> None:
    claims = [reader for reader in READERS if reader.detect(value)]
    assert len(claims) <= 1
    for reader in claims:
        reading = reader.start()
        try:
            placed = [*reading.take(value, 7), *reading.close()]
        except NotATrace:
            continue
        else:
            assert [line for line, _ in placed] == [7]


def samples(folder: Path) -> list[tuple[str, Any]]:
    found = []
    for path in sorted(folder.rglob("*.*")):
        data = path.read_bytes() if path.is_file() else b""
        for raw in (data, *data.split(b"\n")):
            try:
                found.append((str(path.relative_to(folder)), decode(raw).value))
            except BadJson:
                continue
    return found


def test_what_the_samples_are_claimed_by(shared: Path) -> None:
    claimed: dict[str, set[str]] = {}
    for name, value in samples(shared / "traces"):
        readers = [reader.name for reader in READERS if reader.detect(value)]
        assert len(readers) <= 1, name
        if readers:
            claimed.setdefault(readers[0], set()).add(name)
    assert claimed == {
        "openai-messages": {
            "mini_swe_agent/local.messages.json",
            "openai_messages/chatcompletions_function_calling.request.json",
            "openai_messages/openhands_fncall_messages.json",
            "openhands_llm_log/anthropic-sonnet4-1757015029.json",
        }
    }


@pytest.mark.parametrize("key", ["messages", "steps", "request"])
def test_a_format_is_not_told_by_one_word(key: str) -> None:
    value: Any
    for value in (1, "x", None, [], {}, [1], [{}], {"role": "user"}):
        assert key == "steps" or pick({key: value}) is None, json.dumps(value)
