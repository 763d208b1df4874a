"""What a person decides about one bullet, as a delta: pin, unpin, edit, remove."""

from __future__ import annotations

from operators.facts import Delta, PersonFact, PersonKind
from operators.playbook import BLANK, Playbook, Record
from operators.state import Standing
from operators.view import root


class Undecidable(ValueError):
    """What a person asked for cannot be done; the message says why, for that person."""


def person_delta(
    now: Standing, kind: PersonKind, bullet: str, offset: int, *, content: str = "", section: str = ""
) -> Delta:
    """Make the fact of what a person decided.

    :param now: the standing that it is decided on.
    :param bullet: its display id (``err-00012``) or its identity.
    :param offset: of the control that says so; of several facts about one bullet the greatest wins.
    :param content: what an edit makes of it, and ``section`` where an edit moves it; else it stays in its section.
    :raises Undecidable: when there is no such bullet, or nothing to decide about it.
    """
    identity, record = _named(now.playbook, bullet)
    shown = next((each for each in now.bullets if each.bullet == identity), None)
    if kind == "unpin":
        if record.person is None or record.person.kind == "unpin":
            raise Undecidable(f"nothing that a person decided about {bullet} holds")
        return _of(PersonFact(identity, offset, kind))
    if kind == "edit":
        if not content.strip():
            raise Undecidable(f"an edit of {bullet} needs a text; to take the bullet away, remove it")
        if shown is None and record.person is None:
            raise Undecidable(_gone(now, bullet, identity))
        kept = shown.section if shown is not None else record.text.section if record.text is not None else ""
        return _of(PersonFact(identity, offset, kind, content, section or kept))
    if shown is None:
        raise Undecidable(_gone(now, bullet, identity))
    if kind == "remove":
        return _of(PersonFact(identity, offset, kind))
    return _of(PersonFact(identity, offset, kind, shown.content, shown.section))


def _of(fact: PersonFact) -> Delta:
    return Delta(people=frozenset((fact,)))


def _named(playbook: Playbook, bullet: str) -> tuple[str, Record]:
    record = playbook.records.get(bullet)
    if record is not None:
        return bullet, record
    # Ids are never reused, but an import may have kept one that was given before: the smallest identity answers then.
    found = min((identity for identity, display in playbook.ids.items() if display == bullet), default=None)
    if found is None:
        raise Undecidable(f"there is no bullet {bullet}")
    return found, playbook.records.get(found) or BLANK


def _gone(now: Standing, bullet: str, identity: str) -> str:
    end = root(now.playbook, identity)
    if end != identity and any(each.bullet == end for each in now.bullets):
        return f"{bullet} is not shown any more: {now.playbook.ids.get(end) or end} has replaced it"
    return f"{bullet} is not shown any more"
