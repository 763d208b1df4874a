"""Level 2: one call on the merged proposals of a window, only where it can change something.

It sees the base and the proposals, not the reflections, and answers with facts that join the merged delta, never a
replacement: a proposal that it does not cite stands (Combee, arXiv 2604.04247, "parallel scan aggregation", where the
last call's answer replaces what it read).
"""

from __future__ import annotations

from collections.abc import Sequence

from operators.calls import Calls, Failed
from operators.facts import EMPTY, Delta, Evidence, Supersession, Text, merge
from operators.identity import identity, one_line
from operators.method import Method
from operators.budget import tokens
from operators.scan import Node
from operators.settings import Settings
from operators.similar import Texts
from operators.state import Standing
from operators.values import Bullet, Curation
from operators.view import removal


async def level_two(
    tree: Node[Delta], parts: Sequence[Delta], base: Standing, method: Method, calls: Calls, settings: Settings
) -> tuple[Delta, int]:
    """The facts that level 2 adds to a window's delta, and how many calls it took.

    Above ``fan_in`` proposals it runs in a tree: groups of them are reduced, then what came of them, for as long as
    that makes them fewer.
    """
    proposals = _proposals(tree.value, base)
    if not _can_change(proposals, parts, base, settings):
        return EMPTY, 0
    extra, made = EMPTY, 0
    while proposals:
        chunks = [proposals[i : i + settings.fan_in] for i in range(0, len(proposals), settings.fan_in)]
        answers = await calls.gather(method.reduce, [(chunk, base.bullets) for chunk in chunks])
        made += len(chunks)
        left: list[Bullet] = []
        for chunk, answer in zip(chunks, answers, strict=True):
            facts, standing = _reduced(
                chunk, Curation() if isinstance(answer, Failed) else answer, tree.value, extra, base
            )
            extra = merge(extra, facts)
            left += standing
        if len(chunks) == 1 or len(left) >= len(proposals):
            break
        proposals = left
    return extra, made


def _proposals(delta: Delta, base: Standing) -> list[Bullet]:
    """What the groups propose, each bullet once: the wording that would be shown, and how many traces teach it."""
    known = {bullet.bullet for bullet in base.bullets}
    traces: dict[str, set[str]] = {}
    for bullet, trace, _, _ in delta.evidence:
        traces.setdefault(bullet, set()).add(trace)
    wording: dict[str, Text] = {}
    for text in sorted(delta.texts, reverse=True):
        wording[text.bullet] = text
    return [
        Bullet(
            section=text.section, content=text.content, bullet=bullet, key=text.key, traces=len(traces.get(bullet, ()))
        )
        for bullet, text in sorted(wording.items())
        if bullet not in known
    ]


def _can_change(proposals: Sequence[Bullet], parts: Sequence[Delta], base: Standing, settings: Settings) -> bool:
    """Whether proposals overlap, contradict each other, or exceed the budget."""
    if not proposals:
        return False
    targets: dict[str, set[str]] = {}
    for part in parts:
        for bullet, _, by in part.supersessions:
            targets.setdefault(bullet, set()).add(by)
        for bullet in {fact.bullet for fact in part.covered_evidence} | {fact.bullet for fact in part.covered_folds}:
            targets.setdefault(bullet, set()).add("")
    if any(len(each) > 1 for each in targets.values()):
        return True
    if tokens(base.bullets) + tokens(proposals) > settings.token_budget:
        return True
    contents = [bullet.content for bullet in proposals]
    return any(Texts(contents[:at]).related_to(content) for at, content in enumerate(contents) if at)


def _reduced(
    proposals: Sequence[Bullet], curation: Curation, delta: Delta, extra: Delta, base: Standing
) -> tuple[Delta, list[Bullet]]:
    """One call's answer as facts, and the proposals that stand after it, new ones included."""
    known = {bullet.bullet for bullet in base.bullets}
    evidence = delta.evidence | extra.evidence
    texts: set[Text] = set()
    taught: set[Evidence] = set()
    edges: set[Supersession] = set()
    removed: set[str] = set()
    standing = {bullet.bullet: bullet for bullet in proposals}
    for operation in curation.operations:
        cited = [proposals[n - 1] for n in dict.fromkeys(operation.cites) if 1 <= n <= len(proposals)]
        old = [bullet for bullet in operation.bullets if bullet in known]
        content = operation.content.strip()
        if operation.type == "REMOVE":
            removed.update(old if cited else ())
            continue
        if not cited or not content:
            continue
        section = one_line(operation.section) or cited[0].section
        new = identity(section, content, operation.key)
        names = {bullet.bullet for bullet in cited}
        texts.add(Text(new, False, content, section, operation.key))
        taught.update(fact._replace(bullet=new) for fact in evidence if fact.bullet in names)
        edges.update(Supersession(bullet, base.window, new) for bullet in (*sorted(names), *old) if bullet != new)
        for name in names:
            standing.pop(name, None)
        standing[new] = Bullet(section=section, content=content, bullet=new, key=operation.key, traces=len(cited))
    refused: set[str] = set()
    for drop in curation.drops:
        for number in dict.fromkeys(drop.cites):
            name = proposals[number - 1].bullet if 1 <= number <= len(proposals) else ""
            if name in standing and len(refused) < len(proposals) // 2:
                refused.add(name)
                del standing[name]
    facts = Delta(
        texts=frozenset(texts),
        evidence=frozenset(taught),
        supersessions=frozenset(edges),
        covered_evidence=frozenset(fact for fact in evidence if fact.bullet in refused),
    )
    if removed:
        facts = merge(facts, removal(base.playbook, sorted(removed), base.window))
    return facts, [standing[bullet] for bullet in sorted(standing)]
