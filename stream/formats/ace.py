"""ACE's playbook text with counters, and the JSON its curator and reflector answer with (arXiv 2510.04618)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from operators.text import order, parse_ace, render
from operators.values import Bullet
from stream.formats.decode import dump_json, encode
from stream.formats.entries import Entries, entry_id
from stream.formats.imported import FormatError, Imported

_CHANGES = {"UPDATE", "MERGE", "DELETE", "REMOVE", "TAG", "KEEP"}


def read_text(text: str, *, name: str = "ace") -> Imported:
    """Read ACE's text; what is before its first header and which sections are empty goes to ``extra``."""
    parsed = parse_ace(text)
    entries = Entries()
    for bullet in parsed.bullets:
        if bullet.content.strip():
            entries.bullets.append(bullet)
        else:
            entries.refuse(f"[{bullet.id}]", "a bullet without text", "")
    extra = {"preamble": parsed.preamble, "sections": list(parsed.sections)}
    return Imported(name, tuple(entries.bullets), extra, parsed.problems, tuple(entries.refused))


def write_text(bullets: Sequence[Bullet], extra: dict[str, Any], *, counters: bool = True) -> bytes:
    """Write ACE's text, after the preamble and with the empty sections that ``extra`` keeps."""
    preamble = extra.get("preamble") or ""
    body = render(bullets, counters=counters, sections=extra.get("sections") or ())
    return encode("\n\n".join(part for part in (preamble, body) if part))


def read_json(document: Any) -> Imported:
    """Read curator operations (ACE's, Kayba's), a list of bullets, or an object that holds either.

    An import adds bullets, so of operations only ADD is taken; what changes bullets that are not in the file is
    refused, one by one. Tags count as votes for bullets of the file; every tag counts, and unknown ids are refused.
    """
    if isinstance(document, list):
        is_operations = any(isinstance(each, dict) and _type(each) for each in document)
        document = {"operations" if is_operations else "bullets": document}
    if not isinstance(document, dict):
        raise FormatError("the JSON holds no playbook: expected an object with `operations` or `bullets`, or a list")
    if isinstance(document.get("playbook"), str) and not {"operations", "bullets"} & set(document):
        return replace(read_text(document["playbook"]), format="ace-json", extra={})
    entries = Entries()
    for name in ("bullets", "operations", "bullet_tags"):
        if not isinstance(document.get(name, []), list):
            raise FormatError(f"`{name}` is not a list; see ACE's curator output for the form")
    for number, each in enumerate(document.get("bullets", [])):
        entries.add(f"bullets[{number}]", each)
    for number, each in enumerate(document.get("operations", [])):
        _operation(entries, f"operations[{number}]", each)
    _tags(entries, document.get("bullet_tags", []))
    reasoning = document.get("reasoning")
    extra = {"reasoning": reasoning} if isinstance(reasoning, str) and reasoning else {}
    return Imported("ace-json", tuple(entries.bullets), extra, tuple(entries.warnings), tuple(entries.refused))


def write_json(bullets: Sequence[Bullet], extra: dict[str, Any]) -> bytes:
    """Write ADD operations as a curator gives them; id and counts are beside, where ACE passes over them."""
    operations = [
        {
            "type": "ADD",
            "section": bullet.section,
            "content": bullet.content,
            "bullet_id": bullet.id,
            "helpful": bullet.helpful,
            "harmful": bullet.harmful,
        }
        for bullet in order(bullets)
    ]
    return dump_json({"reasoning": extra.get("reasoning", ""), "operations": operations})


def _type(entry: dict[str, Any]) -> str:
    value = entry.get("type", entry.get("op"))
    return value.strip().upper() if isinstance(value, str) else ""


def _operation(entries: Entries, where: str, entry: Any) -> None:
    kind = _type(entry) if isinstance(entry, dict) else ""
    if kind == "ADD" or not isinstance(entry, dict):
        entries.add(where, entry)
    elif kind in _CHANGES:
        entries.refuse(where, f"{kind} changes bullets that are there; an import only adds", entry)
    else:
        entries.refuse(where, f"an operation of type {kind or 'none'}; expected ADD", entry)


def _tags(entries: Entries, tags: list[Any]) -> None:
    places: dict[str, int] = {}
    for place, bullet in enumerate(entries.bullets):
        if bullet.id:
            places.setdefault(bullet.id, place)
    for number, tag in enumerate(tags):
        where = f"bullet_tags[{number}]"
        if not isinstance(tag, dict):
            entries.refuse(where, "not an object", tag)
            continue
        vote, name = tag.get("tag"), entry_id(tag) or tag.get("bullet")
        if not isinstance(name, str) or name not in places:
            entries.refuse(where, "a vote for an id that is not in the file", tag)
            continue
        bullet = entries.bullets[places[name]]
        if vote == "helpful":
            entries.bullets[places[name]] = replace(bullet, helpful=bullet.helpful + 1)
        elif vote == "harmful":
            entries.bullets[places[name]] = replace(bullet, harmful=bullet.harmful + 1)
        elif vote != "neutral":
            entries.refuse(where, "a tag other than helpful, harmful and neutral", tag)
