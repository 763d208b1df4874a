"""Values as bytes, and messages that name the version of their schema."""

from __future__ import annotations

import json

import msgspec

from operators.entry import Entry
from operators.snapshot import Snapshot, StandingSnapshot
from operators.values import Outcome, Trace, Update
from operators.wire import encode, message


def test_equal_values_are_equal_bytes() -> None:
    assert encode({"b": {3, 1, 2}, "a": frozenset("yx")}) == b'{"a":["x","y"],"b":[1,2,3]}'


def test_a_message_names_its_schema_though_defaults_are_left_out() -> None:
    entry = Entry("p", 1, 0, "window", True, 1)
    assert message(entry).startswith(b'{"schema":1,"prompt":"p"')
    assert msgspec.json.decode(message(entry), type=Entry) == entry
    snapshot = Snapshot("p", (StandingSnapshot(),))
    assert msgspec.json.decode(message(snapshot), type=Snapshot) == snapshot
    assert json.loads(message(Trace())) == {"schema": 1}
    assert json.loads(message(Trace(id="t", outcome=Outcome(success=True))))["schema"] == 1


def test_a_schema_is_named_once() -> None:
    update, entry = Update("p", 1, 0, "window", False, "", ()), Entry("p", 1, 0, "edit", False, 1, 3)
    for text, schema in ((message(Trace(schema=2, id="t")), 2), (message(update), 1), (message(entry), 3)):
        assert (text.count(b'"schema"'), json.loads(text)["schema"]) == (1, schema)
