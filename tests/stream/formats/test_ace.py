"""ACE's text and JSON, and AppWorld's text: the files of other tools."""

from __future__ import annotations

import json
from typing import Any

import pytest

from operators.imports import import_delta
from operators.values import Bullet
from stream.formats import Imported, read, write


def read_json(document: Any) -> Imported:
    return read(json.dumps(document).encode(), format="ace-json")


APPWORLD = """A note before.

## STRATEGIES AND HARD RULES
[shr-00001] End code blocks with ``` and a newline(\\n).
[shr-00005] Look at the specification first.

[shr-00010] Join names with: ', '.join(names)
## APIS TO USE FOR SPECIFIC INFORMATION
[api-00004] Use the "phone" app for friends.

## COMMON MISTAKES AND CORRECT STRATEGIES

## TROUBLESHOOTING AND PITFALLS:

## OTHERS
[misc-00003] Tokens above expire.
"""


def test_appworld_keeps_ids_sections_and_what_is_around() -> None:
    imported = read(APPWORLD.encode())
    assert imported.format == "appworld"
    assert [b.id for b in imported.bullets] == ["shr-00001", "shr-00005", "shr-00010", "api-00004", "misc-00003"]
    assert imported.bullets[0].content == "End code blocks with ``` and a newline(\\n)."
    assert not imported.warnings
    written = write(imported.bullets, "appworld", extra=imported.extra).decode()
    assert written.startswith("A note before.\n\n## OTHERS\n[misc-00003] Tokens above expire.\n\n")
    for header in ("## COMMON MISTAKES AND CORRECT STRATEGIES", "## TROUBLESHOOTING AND PITFALLS"):
        assert header in written.split("\n")
    again = read(written.encode())
    assert set(again.bullets) == set(imported.bullets)
    assert set(again.extra["sections"]) == set(imported.extra["sections"])
    assert again.extra["preamble"] == "A note before."


def test_counters_survive_a_round_trip_through_ace() -> None:
    text = "## OTHERS\n[misc-00001] helpful=5 harmful=2 :: x\n"
    assert write(read(text.encode()).bullets, "ace") == text.encode()


def test_a_bullet_without_text_is_refused() -> None:
    imported = read(b"## A\n[a-1] helpful=1 harmful=0 ::\n[a-2] helpful=1 harmful=0 :: x")
    assert [b.id for b in imported.bullets] == ["a-2"]
    assert [(r.where, r.reason) for r in imported.refused] == [("[a-1]", "a bullet without text")]


def test_curator_operations_add_bullets() -> None:
    imported = read_json(
        {
            "reasoning": "because",
            "operations": [
                {"type": "ADD", "section": "others", "content": "x"},
                {"op": "add", "section": "others", "content": "y", "bullet_id": "misc-00007", "helpful": 2},
                {
                    "type": "ADD",
                    "section": "A",
                    "content": "z",
                    "skill_id": "a-1",
                    "metadata": {"helpful": 1, "harmful": 3},
                },
                {"type": "ADD", "content": "without a section"},
            ],
        }
    )
    assert imported.bullets == (
        Bullet("", "others", "x"),
        Bullet("misc-00007", "others", "y", 2),
        Bullet("a-1", "A", "z", 1, 3),
        Bullet("", "OTHERS", "without a section"),
    )
    assert imported.extra == {"reasoning": "because"}
    assert imported.warnings == ("operations[3]: no section, so it was put under OTHERS",)


@pytest.mark.parametrize("kind", ["UPDATE", "MERGE", "DELETE", "REMOVE", "TAG", "KEEP"])
def test_an_import_changes_nothing_that_is_there(kind: str) -> None:
    operation = {"type": kind, "bullet_id": "a-1", "source_ids": ["a-1", "a-2"], "content": "x"}
    imported = read_json({"operations": [operation, {"type": "ADD", "section": "A", "content": "y"}]})
    assert [b.content for b in imported.bullets] == ["y"]
    assert imported.refused[0].where == "operations[0]"
    assert kind in imported.refused[0].reason


@pytest.mark.parametrize(
    ("operation", "reason"),
    [
        ({"section": "A", "content": "x"}, "type none"),
        ({"type": "CREATE_META", "section_name": "X"}, "type CREATE_META"),
        ({"type": "ADD", "section": "A"}, "no text"),
        ({"type": "ADD", "section": "A", "content": " \n"}, "no text"),
        ({"type": "ADD", "section": "A", "content": ["x"]}, "no text"),
        ("ADD x", "not an object"),
        (None, "not an object"),
    ],
)
def test_an_entry_that_is_no_bullet_is_refused_alone(operation: Any, reason: str) -> None:
    imported = read_json({"operations": [operation, {"type": "ADD", "section": "A", "content": "y"}]})
    assert [b.content for b in imported.bullets] == ["y"]
    assert len(imported.refused) == 1
    assert reason in imported.refused[0].reason


def test_an_add_with_an_id_that_is_taken_overwrites_nothing() -> None:
    adds = [{"type": "ADD", "section": "A", "content": text, "bullet_id": "a-1"} for text in ("first", "second")]
    imported = read_json({"operations": adds})
    assert [b.content for b in imported.bullets] == ["first", "second"]
    assert len(import_delta(imported.bullets).evidence) == 2


def test_every_vote_on_a_known_id_counts_and_no_other() -> None:
    votes = ["helpful"] * 5 + ["harmful", "neutral", "great"]
    imported = read_json(
        {
            "bullets": [{"id": "a-1", "section": "A", "content": "x", "helpful": 1}],
            "bullet_tags": [
                *({"id": "a-1", "tag": vote} for vote in votes),
                {"bullet": "a-1", "tag": "harmful"},
                {"id": "zz-9", "tag": "helpful"},
                {"tag": "helpful"},
                "a-1",
            ],
        }
    )
    assert imported.bullets == (Bullet("a-1", "A", "x", 6, 2),)
    assert [r.where for r in imported.refused] == [f"bullet_tags[{n}]" for n in (7, 9, 10, 11)]
    assert "not in the file" in imported.refused[1].reason


@pytest.mark.parametrize("count", [-1, 1.5, "3", True, 10**12, [1]])
def test_what_is_no_count_is_zero(count: Any) -> None:
    imported = read_json([{"section": "A", "content": "x", "helpful": count, "harmful": 2.0}])
    assert imported.bullets == (Bullet("", "A", "x", 0, 2),)
    assert "helpful is" in imported.warnings[0]


def test_a_playbook_in_a_json_string_is_read() -> None:
    imported = read_json({"playbook": "## A\n[a-1] helpful=1 harmful=0 :: x", "score": 3})
    assert imported.format == "ace-json"
    assert imported.bullets == (Bullet("a-1", "A", "x", 1),)


def test_a_key_given_twice_is_told() -> None:
    imported = read(b'{"bullets": {"a-1": {"section": "A", "content": "x"}, "a-1": {"section": "A", "content": "y"}}}')
    assert [b.content for b in imported.bullets] == ["y"]
    assert any("'a-1' is given twice" in warning for warning in imported.warnings)


def test_written_operations_are_aces() -> None:
    document = json.loads(write([Bullet("a-1", "A", "x\ny", 1, 2)], "ace-json"))
    assert document["operations"][0].items() >= {"type": "ADD", "section": "A", "content": "x\ny"}.items()
