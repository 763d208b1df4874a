"""What an import is to a playbook: a delta whose trace is the hash of its parsed bullets.

The hash leaves out display ids and order, which say nothing about the lessons: the same content is the same facts, so
importing it once more changes nothing. Another import of the same bullets has another hash, and its counts add up.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from operators.facts import Count, Delta, Evidence, Text
from operators.identity import identity, is_printable, normalise
from operators.settings import Settings
from operators.state import PromptState, Standing
from operators.text import display_number
from operators.values import Bullet
from operators.version import Published, publish_delta

LONGEST_ID = 100
"""Longer display ids are not kept, in characters."""

_NUMBER_DIGITS = 9
_DIGEST = bytes(8).hex()


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


def recognised(bullets: Sequence[Bullet], now: Standing) -> tuple[Bullet, ...]:
    """The bullets, each under the key of one that is shown with the same text.

    Most formats have no place for keys, and an export that is merged in again must not come to stand beside itself.
    """
    keys = {identity(each.section, each.content): each.key for each in now.bullets if each.key}
    found = []
    for each in bullets:
        name = identity(each.section, each.content)
        known = each.key or name in now.playbook.records or name not in keys
        found.append(each if known else replace(each, key=keys[name]))
    return tuple(found)


def not_shown(bullets: Sequence[Bullet], now: Standing) -> int:
    """How many of an import's bullets agents do not get: replaced, removed, or beyond the budget."""
    shown = {each.bullet for each in now.bullets}
    return len({identity(each.section, each.content, each.key) for each in recognised(bullets, now)} - shown)


def publish_import(
    state: PromptState,
    bullets: Sequence[Bullet],
    settings: Settings,
    *,
    format: str = "",
    extra: Mapping[str, Any] | None = None,
    at: str | None = None,
    lineage: str = "",
) -> Published:
    """Make the version of an import; whether the prompt holds it already is for the caller to look up.

    :param format: what the bullets were read from, and ``extra`` what else that held.
    """
    known = recognised(bullets, state.now)
    return publish_delta(
        state,
        import_delta(known),
        settings,
        kind="import",
        ids=proposed_ids(known),
        traces=[(import_source(known), _DIGEST)],
        at=at,
        lineage=lineage,
        audit={"source": import_source(bullets), "format": format, "extra": dict(extra or {})},
    )


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
