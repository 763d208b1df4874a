"""Which bullets a trace's agent had read, so that votes go to those and to no others."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from operators.state import PromptState, Standing
from operators.text import escape
from operators.values import Bullet, Trace

_ID = re.compile(r"\[([^\[\]\s]{1,100})\]")


def seen(
    trace: Trace, known: Standing, lineage: str, bullets_of: Callable[[int], Sequence[Bullet]]
) -> Sequence[Bullet]:
    """The bullets a trace's agent had read.

    Those it names, when their lineage is ours or not given; else those whose id and content both stand in its prompt
    text; else those of the version it names, when the lineage is ours; else none.

    :param known: the standing whose ids count.
    :param bullets_of: the bullets of one version; empty when there is no such version.
    """
    if not known.version:
        return ()
    ours = trace.lineage == lineage
    if trace.bullets is not None and (ours or trace.lineage is None):
        return _named(trace.bullets, known)
    standing = _standing_in(trace, known.bullets)
    if standing or not ours or trace.version is None:
        return standing
    return bullets_of(trace.version)


def _named(ids: Sequence[str], known: Standing) -> list[Bullet]:
    wanted = set(ids)
    found = [bullet for bullet in known.bullets if bullet.id in wanted]
    missing = wanted - {bullet.id for bullet in found}
    if missing:
        # A bullet superseded since is not shown any more, yet a vote on it still counts for its successor.
        for bullet, display in sorted(each for each in known.playbook.ids.items() if each[1] in missing):
            record = known.playbook.records.get(bullet)
            if record is not None and record.text is not None:
                text = record.text
                found.append(Bullet(display, text.section, text.content, bullet=bullet, key=text.key))
    return found


def _standing_in(trace: Trace, bullets: Sequence[Bullet]) -> list[Bullet]:
    """Bullets whose id and content stand in the prompt text of the trace: its system and user steps."""
    texts = [step.content for step in trace.steps if step.role == "system" or step.role == "user"]
    if not texts or "[" not in (text := "\n".join(texts)):
        return []
    ids = set(_ID.findall(text))
    return [
        bullet for bullet in bullets if bullet.id in ids and (bullet.content in text or escape(bullet.content) in text)
    ]


def no_past(prompt: str, version: int) -> Sequence[Bullet]:
    """Know no version but those that a state holds."""
    return ()


def seen_by(
    lineage: str,
    trace: Trace,
    state: PromptState,
    past: Callable[[str, int], Sequence[Bullet]] = no_past,
) -> Sequence[Bullet]:
    """The bullets a trace's agent had read.

    :param past: the bullets of a version of a prompt that its state does not hold any more.
    """
    if trace.version is None:
        return seen(trace, state.now, lineage, _no_bullets)

    def bullets_of(version: int) -> Sequence[Bullet]:
        standings = (*state.older, state.now)
        held = next((each.bullets for each in standings if each.version == version), None)
        return past(state.prompt, version) if held is None else held

    return seen(trace, state.now, lineage, bullets_of)


def _no_bullets(version: int) -> Sequence[Bullet]:
    return ()
