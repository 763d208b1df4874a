from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from operators.values import StepError
from stream.readers.tool_errors import MESSAGE, tool_error

TRACEBACK = """Traceback (most recent call last):
  File "a.py", line 1, in <module>
    run()
KeyError: 'a'

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "a.py", line 3, in <module>
    stop()
app.errors.PaymentError: amount must be in cents
[Command finished with exit code 1]
"""


@pytest.mark.parametrize(
    ("content", "error"),
    [
        ("Error: amount must be in cents", "amount must be in cents"),
        ("ERROR: no such order\nsee the manual", "no such order"),
        ("  error:\n\n  no such order", "no such order"),
        ("fatal: not a git repository", "not a git repository"),
        ("Error executing tool refund: no order", "Error executing tool refund: no order"),
        ("Error code: 400 - {'error': {}}", "Error code: 400 - {'error': {}}"),
        ("HTTP Error 404: Not Found", "HTTP Error 404: Not Found"),
        ("An unexpected error occurred", "An unexpected error occurred"),
        ("ValueError: bad amount", StepError("ValueError", "bad amount")),
        ("requests.exceptions.HTTPError: 500 Server Error", StepError("HTTPError", "500 Server Error")),
        (TRACEBACK, StepError("PaymentError", "amount must be in cents")),
        ('Traceback (most recent call last):\n  File "a"\nAssertionError', StepError("AssertionError", "")),
        ("Traceback (most recent call last):\n  cut", "Traceback"),
        ("[Errno 2] No such file or directory: 'x'", "[Errno 2] No such file or directory: 'x'"),
        ("Ran into [Errno 2] No such file", "Ran into [Errno 2] No such file"),
        ("Invalid `path` parameter: hello.py.", "Invalid `path` parameter: hello.py."),
        ("bash: line 1: foo: command not found", "bash: line 1: foo: command not found"),
        ("/bin/sh: 1: foo: not found", "/bin/sh: 1: foo: not found"),
        ("<error>no order</error>", "no order"),
        ("<tool_use_error>File not read</tool_use_error>", "File not read"),
        ('{"error": "no order"}', "no order"),
        ('{"error": "ValueError: no order"}', StepError("ValueError", "no order")),
        ('{"error": {"type": "invalid", "message": "no order"}}', StepError("invalid", "no order")),
        ('{"error": {"code": 404, "detail": "no order"}, "data": null}', StepError("404", "no order")),
        ('{"error": true, "message": "no order"}', "no order"),
        ('{"errors": [{"message": "no order"}], "data": null}', StepError("", "no order")),
        ('{"status": "error", "message": "no order"}', "no order"),
        ('{"success": false, "reason": "no order"}', "no order"),
        ('{"isError": true, "content": [{"type": "text", "text": "no order"}]}', "no order"),
        ('{"is_error": true, "content": "Error: no order"}', "no order"),
    ],
)
def test_errors(content: str, error: Any) -> None:
    assert tool_error({}, content) == error


@pytest.mark.parametrize(
    "content",
    [
        "",
        "ok",
        "Errors: 0",
        "Error: 0.02",
        "Error: 0",
        "error: none",
        "Error: N/A",
        "Error: ",
        "<error> </error>",
        "Error rate: 3 %",
        "Error handling: best practices",
        "Error 404 pages and how to style them",
        "Terror: a film",
        "MeanSquaredError: 0.02",
        "No error occurred",
        "The log says: Error: amount",
        "3 results\nError: amount",
        "app.log:12: [Errno 2] No such file",
        "Invalid votes were counted twice.",
        "Invalidate the request: done",
        "1\tTraceback (most recent call last):",
        "grep: done\n[Command finished with exit code 1]",
        '{"error": null, "data": 1}',
        '{"error": ""}',
        '{"error": "none"}',
        '{"error": 0.02, "loss": 1}',
        '{"error": false}',
        '{"error": {}, "errors": []}',
        '{"isError": false, "error": "quoted"}',
        '{"status": "error"}',
        '{"success": false}',
        '{"success": 0, "message": "none found"}',
        '{"text": "Error: amount"}',
        '["Error: amount"]',
        '{"error": broken',
    ],
)
def test_answers(content: str) -> None:
    assert tool_error({}, content) is None


@pytest.mark.parametrize(
    ("message", "content", "error"),
    [
        ({"is_error": True}, "no order", "no order"),
        ({"is_error": True}, "", "error"),
        ({"is_error": True, "error": [None]}, "", "error"),
        ({"isError": False}, "Error: no order", None),
        ({"error": False}, "Error: no order", None),
        ({"error": None}, "Error: no order", "no order"),
        ({"error": {"type": "timeout", "message": "late"}}, "", StepError("timeout", "late")),
        ({"error": "late"}, "", "late"),
        ({"error": True}, "ValueError: x", StepError("ValueError", "x")),
        ({"status": "error"}, "no order", "no order"),
        ({"status": "success"}, "Error: no order", None),
        ({"status": "done"}, "Error: no order", "no order"),
    ],
)
def test_fields_decide(message: dict[str, Any], content: str, error: Any) -> None:
    assert tool_error(message, content) == error


starts = st.sampled_from(
    [
        "Error",
        "error: ",
        "Traceback (most recent call last):\n",
        "Invalid ",
        "[Errno ",
        "{",
        '{"error": ',
        "bash: ",
        "<error>",
    ]
)


@given(st.lists(starts | st.text(st.characters(exclude_categories=["Cs"])), max_size=6).map("".join))
def test_any_text_is_an_answer_or_an_error_that_says_something(content: str) -> None:
    match tool_error({}, content):
        case StepError(kind=kind, message=message):
            assert kind or message
            assert len(message) <= MESSAGE
        case str(message):
            assert message
            assert len(message) <= MESSAGE
        case None:
            pass


@pytest.mark.parametrize("piece", [" ", "a", "A", ".", "a.", "'", "\n", "sh", "Error ", "-", '"', "{", "/", "[", "é"])
@pytest.mark.parametrize(
    "start",
    ["", "Error: ", "Invalid ", "Error calling ", "sh: ", "[Errno 2] ", "Traceback (most recent call last):\n "],
)
def test_long_texts_take_no_longer_than_their_length_asks(start: str, piece: str) -> None:
    """With backtracking in a pattern, 300,000 characters would run into the time limit of a test."""
    tool_error({}, start + piece * 300_000 + "!")
    tool_error({"error": piece * 300_000 + "x"}, "")
    tool_error({}, json.dumps({"error": piece * 300_000 + "x"}))


def test_the_benchmark_samples(shared: Path) -> None:
    """tau-bench's tools begin an error with ``Error``, and tau2-bench's say themselves whether they failed."""
    rows = json.loads((shared / "traces/tau_bench/gpt-4o-airline.4of200.json").read_bytes())
    for message in (message for row in rows for message in row["traj"] if message["role"] == "tool"):
        content = message["content"] or ""
        assert (tool_error(message, content) is not None) == content.startswith("Error"), content[:80]
    runs = json.loads((shared / "traces/tau2_bench/airline_relaxed_grok-4-fast.json").read_bytes())["simulations"]
    for message in (message for run in runs for message in run["messages"] if message["role"] == "tool"):
        said = {key: value for key, value in message.items() if key != "error"}
        assert (tool_error(said, message["content"]) is not None) == message["error"], message["content"][:80]
