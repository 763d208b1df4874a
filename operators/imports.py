"""What an import is to a playbook: a delta whose trace is the hash of its parsed bullets.

The hash leaves out display ids and order, which say nothing about the lessons: the same content is the same facts, so
importing it once more changes nothing. Another import of the same bullets has another hash, and its counts add up.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b

import msgspec
from msgspec import Struct

from operators.facts import Count, Delta, Evidence, Text
from operators.identity import identity, is_printable, normalise
from operators.text import display_number
from operators.values import Bullet

LONGEST_ID = 100
"""Longer display ids are not kept, in characters."""

_NUMBER_DIGITS = 9


class _Joined(Struct):
    """The bullets of one import that have one identity."""

    texts: set[Text]
    helpful: int = 0
    harmful: int = 0


def import_source(bullets: Iterable[Bullet]) -> str:
    """Name an import by its content, for use as a trace id: ``import:`` and 32 hex digits."""
    return _source(_joined(bullets))


def import_delta(bullets: Iterable[Bullet]) -> Delta:
    """Make the facts of an import; bullets without text are none.

    Bullets of one identity join: every wording is a fact, and their counts add up, for each line had its own votes.
    Evidence is numbered by identity, so that it does not depend on the order in the file.
    """
    joined = _joined(bullets)
    if not joined:
        return Delta()
    source = _source(joined)
    texts: set[Text] = set()
    for bullet in joined.values():
        texts |= bullet.texts
    return Delta(
        texts=frozenset(texts),
        evidence=frozenset(Evidence(name, source, number, source) for number, name in enumerate(sorted(joined), 1)),
        counts=frozenset(
            Count(name, source, bullet.helpful, bullet.harmful)
            for name, bullet in joined.items()
            if bullet.helpful or bullet.harmful
        ),
    )


def proposed_ids(bullets: Iterable[Bullet]) -> dict[str, str]:
    """The display ids an import would like to keep, by identity, in its order; each id at most once.

    Where two bullets claim one id the first has it, so nothing is overwritten and the other gets a fresh one. Ids that
    cannot stand in a line of text, or whose number would make the next ones absurd, are not proposed.
    """
    proposed: dict[str, str] = {}
    taken: set[str] = set()
    for bullet in bullets:
        name = identity(bullet.section, bullet.content, bullet.key)
        if name not in proposed and bullet.id not in taken and normalise(bullet.content) and _is_kept(bullet.id):
            proposed[name] = bullet.id
            taken.add(bullet.id)
    return proposed


def _is_kept(bullet_id: str) -> bool:
    if not 0 < len(bullet_id) <= LONGEST_ID or not is_printable(bullet_id) or bullet_id != bullet_id.strip():
        return False
    return not set("[]⏎␛") & set(bullet_id) and display_number(bullet_id)[1] <= _NUMBER_DIGITS


def _joined(bullets: Iterable[Bullet]) -> dict[str, _Joined]:
    joined: dict[str, _Joined] = {}
    for bullet in bullets:
        if not normalise(bullet.content):
            continue
        name = identity(bullet.section, bullet.content, bullet.key)
        into = joined.setdefault(name, _Joined(set()))
        into.texts.add(Text(name, bullet.raw, bullet.content, bullet.section, bullet.key))
        into.helpful += bullet.helpful
        into.harmful += bullet.harmful
    return joined


def _source(joined: dict[str, _Joined]) -> str:
    content = [(name, sorted(each.texts), each.helpful, each.harmful) for name, each in sorted(joined.items())]
    return "import:" + blake2b(msgspec.json.encode(content), digest_size=16).hexdigest()
