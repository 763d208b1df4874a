"""Kayba's skillbook JSON, in all its versions.

Before 0.7 the top key is ``bullets``; before 0.9.3 a skill has ``helpful``, ``harmful`` and ``neutral``; schema 2 (the
newest) has ``issue`` and ``insight`` in place of ``content``, ``active`` in place of ``status``, and counts again. A
skill that is not active is no bullet. Writing goes into the document that was read: what a playbook has no place for
(sources, evidence, times, similarity decisions, removed skills) stays where its skill stays.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from operators.identity import identity, section_key, section_slug
from operators.text import display_number, order
from operators.values import Bullet
from stream.formats.decode import dump_json
from stream.formats.entries import FALLBACK_SECTION, Entries, entry_content
from stream.formats.imported import FormatError, Imported

_SCHEMA_2_SECTIONS = ("context", "harness")
_COUNTS = ("helpful", "harmful")
_NUMBER_DIGITS = 9


class _Shape(NamedTuple):
    """How one document spells things."""

    top: str
    schema_2: bool
    counted: bool


def read(document: Any) -> Imported:
    """Read the active skills; the whole document is kept as ``extra`` for :func:`write`.

    :raises FormatError: no skillbook.
    """
    shape = _shape(document)
    homes = {
        name: section
        for section, names in _sections(document).items()
        for name in (names if isinstance(names, list) else [])
        if isinstance(name, str) and section.strip()
    }
    entries, inactive = Entries(), 0
    for name, skill in document[shape.top].items():
        if isinstance(skill, dict) and not _is_active(skill):
            inactive += 1
            continue
        where = f"{shape.top}[{name!r}]"
        entry = skill | {"id": name, "key": ""} if isinstance(skill, dict) else skill
        if shape.schema_2 and isinstance(entry, dict):
            entry |= {count: entry.get(f"{count}_count") for count in _COUNTS}
        entries.add(where, entry, section=homes.get(name, ""))
    if inactive:
        entries.warnings.append(f"{inactive} skills are not active there and were not imported")
    extra = {"document": document}
    return Imported("skillbook", tuple(entries.bullets), extra, tuple(entries.warnings), tuple(entries.refused))


def write(bullets: Sequence[Bullet], extra: dict[str, Any]) -> bytes:
    """Write the bullets as a skillbook, into the document that ``extra`` keeps or into a new one.

    A bullet goes to the active skill of the same id and text, else of the same text (it then keeps the file's id), else
    of the same id (its text was edited), else to a removed skill of the same text, else it is new. Active skills that
    no bullet goes to are marked as removed. An id that is another skill's is never overwritten.
    """
    blank: dict[str, Any] = {"skills": {}, "sections": {}, "next_id": 0, "similarity_decisions": {}}
    document: dict[str, Any] = dict(extra.get("document") or blank)
    shape = _shape(document)
    was_active = _actives(document[shape.top])
    skills: dict[str, Any] = dict(document[shape.top])
    document[shape.top] = skills
    shown = order(bullets)
    homes = _assign(shown, skills)
    last = max((_number(name) for name in (*skills, *(bullet.id for bullet in shown))), default=0)
    last = max(last, document["next_id"] if isinstance(document.get("next_id"), int) else 0)
    for place, bullet in enumerate(shown):
        name = homes.get(place)
        if name is None:
            name = bullet.id
            if not name or name in skills:
                last += 1
                name = f"{section_slug(bullet.section)}-{last:05d}"
            skills[name] = _new(name, bullet, shape)
        else:
            skills[name] = _renewed(skills[name], bullet, shape)
    for name in was_active - set(homes.values()):
        skills[name] = skills[name] | ({"active": False} if shape.schema_2 else {"status": "invalid"})
    document["sections"] = _listed(_sections(document), skills)
    document["next_id"] = last
    return dump_json(document)


def _shape(document: Any) -> _Shape:
    if not isinstance(document, dict):
        raise FormatError("not a skillbook: the JSON is no object")
    top = next((key for key in ("skills", "bullets") if isinstance(document.get(key), dict)), None)
    if top is None:
        raise FormatError("not a skillbook: neither `skills` nor `bullets` is an object of skills by id")
    skills = [skill for skill in document[top].values() if isinstance(skill, dict)]
    schema_2 = str(document.get("schema_version", "")) == "2" or any("issue" in skill for skill in skills)
    return _Shape(top, schema_2, top == "bullets" or not skills or any("helpful" in skill for skill in skills))


def _sections(document: dict[str, Any]) -> dict[str, Any]:
    sections = document.get("sections")
    return sections if isinstance(sections, dict) else {}


def _is_active(skill: dict[str, Any]) -> bool:
    return skill.get("status", "active") == "active" and skill.get("active", True) is not False


def _actives(skills: dict[str, Any]) -> set[str]:
    """Skills that are bullets; other entries, whatever they are, are not for us to change."""
    return {
        name for name, skill in skills.items() if isinstance(skill, dict) and _is_active(skill) and entry_content(skill)
    }


def _number(name: str) -> int:
    _, digits, significant = display_number(name)
    return int(significant or 0) if digits <= _NUMBER_DIGITS else 0


def _text_of(section: Any, content: str) -> str:
    return identity(section if isinstance(section, str) and section.strip() else FALLBACK_SECTION, content)


def _assign(shown: Sequence[Bullet], skills: dict[str, Any]) -> dict[int, str]:
    """Which skill each bullet (by place) goes to, as :func:`write` says; a bullet that is not in it is new."""
    texts = {
        name: _text_of(skill.get("section"), content)
        for name, skill in skills.items()
        if isinstance(skill, dict) and (content := entry_content(skill)).strip()
    }
    active = {name for name in texts if _is_active(skills[name])}
    wanted = [_text_of(bullet.section, bullet.content) for bullet in shown]
    homes: dict[int, str] = {}
    taken: set[str] = set()

    def take(place: int, name: str) -> None:
        homes[place] = name
        taken.add(name)

    def take_by_text(names: Iterable[str]) -> None:
        free: dict[str, deque[str]] = {}
        for name in names:
            if name not in taken:
                free.setdefault(texts[name], deque()).append(name)
        for place, text in enumerate(wanted):
            if place not in homes and free.get(text):
                take(place, free[text].popleft())

    for place, bullet in enumerate(shown):
        if bullet.id in active and bullet.id not in taken and texts[bullet.id] == wanted[place]:
            take(place, bullet.id)
    take_by_text(name for name in texts if name in active)
    for place, bullet in enumerate(shown):
        if place not in homes and bullet.id in active and bullet.id not in taken:
            take(place, bullet.id)
    take_by_text(name for name in texts if name not in active)
    return homes


def _renewed(skill: dict[str, Any], bullet: Bullet, shape: _Shape) -> dict[str, Any]:
    """The skill with the bullet's text and counts; all else of it as it was."""
    changes: dict[str, Any] = {}
    if entry_content(skill) != bullet.content:
        needs_insight = skill.get("section") == _SCHEMA_2_SECTIONS[0]
        changes |= _content(bullet, needs_insight) if shape.schema_2 else {"content": bullet.content}
        # An embedding is of the text it was made from.
        changes |= {"embedding": None} if "embedding" in skill else {}
    if not shape.schema_2 and _text_of(skill.get("section"), "") != _text_of(bullet.section, ""):
        changes["section"] = bullet.section
    if not _is_active(skill):
        changes |= {"active": True} if shape.schema_2 else {"status": "active"}
    changes |= _counts(bullet, shape, skill)
    return skill | changes


def _new(name: str, bullet: Bullet, shape: _Shape) -> dict[str, Any]:
    if not shape.schema_2:
        skill: dict[str, Any] = {"id": name, "section": bullet.section, "content": bullet.content}
        skill |= {"helpful": bullet.helpful, "harmful": bullet.harmful, "neutral": 0} if shape.counted else {}
        return skill | {"status": "active", "sources": []}
    key = section_key(bullet.section)
    section = key if key in _SCHEMA_2_SECTIONS else _SCHEMA_2_SECTIONS[0]
    skill = {"id": name, "section": section, "keywords": [key or section], **_content(bullet, section == "context")}
    skill |= {"occurrences": [], "active": True, "used_count": 0}
    return skill | _counts(bullet, shape, {}) | {"neutral_count": 0}


def _content(bullet: Bullet, needs_insight: bool) -> dict[str, Any]:
    issue, _, insight = bullet.content.partition("\n")
    return {"issue": issue, "insight": insight or (issue if needs_insight else None)}


def _counts(bullet: Bullet, shape: _Shape, skill: dict[str, Any]) -> dict[str, int]:
    if shape.schema_2:
        return {"helpful_count": bullet.helpful, "harmful_count": bullet.harmful}
    return {"helpful": bullet.helpful, "harmful": bullet.harmful} if "helpful" in skill else {}


def _listed(sections: dict[str, Any], skills: dict[str, Any]) -> dict[str, Any]:
    """The sections with each skill under its own, in the order it had; names of no skill stay where they are."""
    homes = {
        name: skill["section"]
        for name, skill in skills.items()
        if isinstance(skill, dict) and isinstance(skill.get("section"), str)
    }
    listed: dict[str, Any] = {}
    seen: set[str] = set()
    for section, names in sections.items():
        if not isinstance(names, list):
            listed[section] = names
            continue
        listed[section] = [n for n in names if not isinstance(n, str) or homes.get(n, section) == section]
        seen.update(n for n in listed[section] if isinstance(n, str))
    for name, section in homes.items():
        if name not in seen:
            into = listed.setdefault(section, [])
            if isinstance(into, list):
                into.append(name)
    return listed
