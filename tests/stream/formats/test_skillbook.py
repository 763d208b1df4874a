"""Kayba's skillbook in its versions: what a playbook has no place for survives the round trip."""

from __future__ import annotations

import copy
import json
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from operators.values import Bullet
from stream.formats import FormatError, Imported, read, write

TIMES = {"created_at": "2025-12-10T17:41:35+00:00", "updated_at": "2025-12-11T00:00:00+00:00"}
SOURCES = [{"trace_uid": "t-1", "epoch": 1}]


def skill(name: str, section: str, content: str, **more: Any) -> dict[str, Any]:
    base = {"id": name, "section": section, "content": content, "justification": "why", "evidence": "seen", **TIMES}
    return base | {"status": "active", "sources": SOURCES} | more


CURRENT: dict[str, Any] = {
    "skills": {
        "api-00001": skill("api-00001", "api", "Use cents"),
        "api-00002": skill("api-00002", "api", "Never use cents", status="invalid"),
        "dates-00003": skill("dates-00003", "dates", "Dates are ISO"),
    },
    "sections": {"dates": ["dates-00003"], "api": ["api-00001", "api-00002"]},
    "next_id": 7,
    "similarity_decisions": {"api-00001,dates-00003": {"decision": "KEEP", "reasoning": "r"}},
}
COUNTED: dict[str, Any] = {
    "skills": {
        "api-00001": skill("api-00001", "api", "Use cents", helpful=3, harmful=1, neutral=2, embedding=[0.5]),
    },
    "sections": {"api": ["api-00001"]},
    "next_id": 1,
    "similarity_decisions": {},
}
FIRST: dict[str, Any] = {
    "bullets": {
        "api-00001": {
            "id": "api-00001",
            "section": "api",
            "content": "Use cents",
            "helpful": 3,
            "harmful": 1,
            "neutral": 2,
        }
    },
    "sections": {"api": ["api-00001"]},
    "next_id": 1,
}
SCHEMA_2: dict[str, Any] = {
    "schema_version": "2",
    "skills": {
        "context-00001": {
            "id": "context-00001",
            "section": "context",
            "keywords": ["refunds"],
            "issue": "Refunds fail",
            "insight": "Use cents",
            "occurrences": SOURCES,
            "active": True,
            "used_count": 4,
            "helpful_count": 3,
            "harmful_count": 1,
            "neutral_count": 0,
            **TIMES,
        },
        "context-00002": {"id": "context-00002", "section": "context", "issue": "x", "insight": "y", "active": False},
    },
    "sections": {"context": ["context-00001", "context-00002"]},
    "next_id": 2,
    "similarity_decisions": {},
}


def load(document: dict[str, Any]) -> Imported:
    return read(json.dumps(document).encode())


def save(bullets: list[Bullet], document: dict[str, Any]) -> dict[str, Any]:
    """Write over a file that holds the document."""
    written: dict[str, Any] = json.loads(write(bullets, "skillbook", previous=json.dumps(document).encode()))
    return written


def test_every_version_survives_untouched() -> None:
    for document in (CURRENT, COUNTED, FIRST, SCHEMA_2):
        imported = load(document)
        assert imported.format == "skillbook"
        assert json.loads(write(imported.bullets, "skillbook", extra=imported.extra)) == document
        assert save(list(imported.bullets), document) == document


def test_only_active_skills_are_bullets() -> None:
    imported = load(CURRENT)
    assert imported.bullets == (
        Bullet("api-00001", "api", "Use cents"),
        Bullet("dates-00003", "dates", "Dates are ISO"),
    )
    assert imported.warnings == ("1 skills are not active there and were not imported",)


def test_counts_of_the_versions_that_have_them() -> None:
    assert load(COUNTED).bullets == load(FIRST).bullets == (Bullet("api-00001", "api", "Use cents", 3, 1),)
    assert load(SCHEMA_2).bullets == (Bullet("context-00001", "context", "Refunds fail\nUse cents", 3, 1),)


def test_votes_go_where_the_version_has_a_place_for_them() -> None:
    voted = [Bullet("api-00001", "api", "Use cents", 9, 8)]
    found = save(voted, COUNTED)["skills"]["api-00001"]
    assert found == COUNTED["skills"]["api-00001"] | {"helpful": 9, "harmful": 8}
    assert save(voted, FIRST)["bullets"]["api-00001"]["neutral"] == 2
    assert "helpful" not in save(voted, CURRENT)["skills"]["api-00001"]


def test_a_new_bullet_joins_under_its_section_and_a_new_number() -> None:
    bullets = [*load(CURRENT).bullets, Bullet("str-00012", "api", "New", 1, 0), Bullet("", "fresh", "No id yet")]
    document = save(bullets, CURRENT)
    assert document["skills"]["str-00012"]["content"] == "New"
    assert document["skills"]["fres-00013"]["content"] == "No id yet"
    assert document["sections"]["api"] == ["api-00001", "api-00002", "str-00012"]
    assert document["sections"]["fresh"] == ["fres-00013"]
    assert document["next_id"] == 13
    for name in CURRENT["skills"]:
        assert document["skills"][name] == CURRENT["skills"][name]


def test_a_bullet_that_is_gone_is_marked_removed_and_nothing_else_is() -> None:
    document = save([Bullet("api-00001", "api", "Use cents")], CURRENT)
    assert document["skills"]["dates-00003"] == CURRENT["skills"]["dates-00003"] | {"status": "invalid"}
    assert document["similarity_decisions"] == CURRENT["similarity_decisions"]
    assert [b.id for b in load(document).bullets] == ["api-00001"]
    assert save([], SCHEMA_2)["skills"]["context-00001"]["active"] is False


def test_an_edited_bullet_keeps_what_was_known_of_it() -> None:
    edited = [replace(b, content=f"{b.content}!!1") for b in load(COUNTED).bullets]
    found = save(edited, COUNTED)["skills"]["api-00001"]
    assert found == COUNTED["skills"]["api-00001"] | {"content": "Use cents!!1", "embedding": None}


def test_a_bullet_that_got_another_id_here_keeps_the_files_id() -> None:
    document = save([Bullet("misc-00090", "api", "use CENTS."), Bullet("api-00001", "api", "Something else")], CURRENT)
    assert document["skills"]["api-00001"]["content"] == "use CENTS."
    assert document["skills"]["api-00001"]["sources"] == SOURCES
    assert [s["content"] for s in document["skills"].values() if s["content"] == "Something else"] == ["Something else"]


def test_a_removed_skill_is_never_overwritten_by_another_lesson_with_its_id() -> None:
    document = save([*load(CURRENT).bullets, Bullet("api-00002", "api", "Another")], CURRENT)
    assert document["skills"]["api-00002"] == CURRENT["skills"]["api-00002"]
    assert document["skills"]["api-00008"]["content"] == "Another"


def test_a_removed_skill_that_is_learned_again_comes_back() -> None:
    document = save([*load(CURRENT).bullets, Bullet("misc-00050", "api", "Never use cents")], CURRENT)
    assert document["skills"]["api-00002"] == CURRENT["skills"]["api-00002"] | {"status": "active"}
    assert "misc-00050" not in document["skills"]


def test_two_skills_with_one_lesson_become_one_with_all_votes() -> None:
    twice = copy.deepcopy(COUNTED)
    twice["skills"]["api-00002"] = skill("api-00002", "api", "use cents.", helpful=1, harmful=0, neutral=0)
    assert len(load(twice).bullets) == 2
    document = save([Bullet("api-00001", "api", "Use cents", 4, 1)], twice)
    assert load(document).bullets == (Bullet("api-00001", "api", "Use cents", 4, 1),)
    assert document["skills"]["api-00002"]["status"] == "invalid"


def test_two_skills_with_one_lesson_each_keep_their_own() -> None:
    twice = copy.deepcopy(COUNTED)
    first = twice["skills"].pop("api-00001")
    twice["skills"]["api-00002"] = skill("api-00002", "api", "use cents.", helpful=1, harmful=0, neutral=0)
    twice["skills"]["api-00001"] = first
    twice |= {"sections": {"api": ["api-00002", "api-00001"]}, "next_id": 2}
    assert save(list(load(twice).bullets), twice) == twice


def test_damaged_skills_are_refused_alone_and_left_in_the_file() -> None:
    damaged = copy.deepcopy(CURRENT)
    damaged["skills"] |= {"x-00004": 3, "x-00005": {"section": "x"}, "x-00006": {"content": "kept", "sources": None}}
    damaged["sections"]["late"] = ["x-00006", 9]
    imported = load(damaged)
    assert [(r.where, r.reason) for r in imported.refused] == [
        ("skills['x-00004']", "not an object"),
        ("skills['x-00005']", "no text in `content`"),
    ]
    assert imported.bullets[-1] == Bullet("x-00006", "late", "kept")
    document = save(list(imported.bullets), damaged)
    assert document["skills"]["x-00004"] == 3
    assert document["skills"]["x-00005"] == {"section": "x"}
    assert document["sections"]["late"] == ["x-00006", 9]


def test_schema_2_takes_bullets_of_any_section() -> None:
    bullets = [*load(SCHEMA_2).bullets, Bullet("str-00009", "Money", "Issue\nInsight\nmore", 1, 2)]
    document = save(bullets, SCHEMA_2)
    found = document["skills"]["str-00009"]
    assert (found["section"], found["keywords"]) == ("context", ["money"])
    assert (found["issue"], found["insight"]) == ("Issue", "Insight\nmore")
    assert (found["helpful_count"], found["harmful_count"]) == (1, 2)
    one_line = save([Bullet("h-00001", "harness", "x"), Bullet("c-00002", "context", "y")], SCHEMA_2)["skills"]
    assert one_line["h-00001"]["insight"] is None
    # Kayba refuses a context skill without an insight.
    assert one_line["c-00002"]["insight"] == "y"
    again = load(save([Bullet("c-00005", "context", "y")], SCHEMA_2))
    assert [b.content for b in again.bullets] == ["y"]


def test_a_new_skillbook_is_one_kayba_reads() -> None:
    document = json.loads(write([Bullet("a-00004", "A", "x", 1, 2)], "skillbook"))
    assert document["skills"]["a-00004"].items() >= {"section": "A", "content": "x", "helpful": 1, "harmful": 2}.items()
    assert document["sections"] == {"A": ["a-00004"]}
    assert document["next_id"] == 4
    assert document["similarity_decisions"] == {}
    assert json.loads(write([], "skillbook", previous=b"")) == {
        "skills": {},
        "sections": {},
        "next_id": 0,
        "similarity_decisions": {},
    }


def test_the_file_written_into_counts_more_than_what_an_import_kept() -> None:
    newer = copy.deepcopy(CURRENT)
    newer["skills"]["api-00001"]["evidence"] = "seen again"
    data = write(load(CURRENT).bullets, "skillbook", extra=load(CURRENT).extra, previous=json.dumps(newer).encode())
    assert json.loads(data) == newer
    with pytest.raises(FormatError, match="the file to write into: not JSON"):
        write([], "skillbook", previous=b"# Notes of mine")


def test_what_is_kept_for_the_round_trip_can_be_stored() -> None:
    odd = read(b'{"skills": {"a-1": {"section": "A", "content": "x", "score": NaN, "why": "\\ud800"}}}')
    assert json.loads(msgspec.json.encode(odd.extra)) == odd.extra


def test_many_skills_take_one_pass() -> None:
    # Anything quadratic in this would run into the time limit of the test.
    skills = {f"a-{n:05d}": skill(f"a-{n:05d}", "A", f"lesson {n % 100} {'x' * 5}") for n in range(20_000)}
    document = {"skills": skills, "sections": {"A": list(skills)}, "next_id": 20_000, "similarity_decisions": {}}
    assert save(list(load(document).bullets), document) == document
