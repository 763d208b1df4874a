"""Level 2: one call on the merged proposals of a window, only where it can change something.

It sees the base and the proposals, not the reflections, and answers with facts that join the merged delta, never a
replacement: a proposal that it does not cite stands (Combee, arXiv 2604.04247, "parallel scan aggregation", where the
last call's answer replaces what it read).
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from operators.budget import tokens
from operators.calls import Calls
from operators.cite import REASONS
from operators.facts import EMPTY, Delta, Evidence, Supersession, Text, merge
from operators.identity import identity, one_line
from operators.method import Method
from operators.scan import Node
from operators.settings import Settings
from operators.similar import Texts, is_same
from operators.state import Standing
from operators.values import Bullet, Curation, Drop
from operators.view import removal


class Reduced(Struct, frozen=True):
    """What level 2 adds to a window's delta.

    :param calls: how many it took, of which ``failures`` gave no answer.
    :param drops: (bullet, reason) of each proposal that was refused.
    """

    facts: Delta = EMPTY
    calls: int = 0
    failures: int = 0
    drops: tuple[tuple[str, str], ...] = ()


async def level_two(
    tree: Node[Delta], parts: Sequence[Delta], base: Standing, method: Method, calls: Calls, settings: Settings
) -> Reduced:
    """Ask level 2 about the proposals of a window.

    Above ``fan_in`` proposals it runs in a tree: groups of them are reduced, then what came of them, for as long as
    that takes fewer calls.
    """
    proposals = _proposals(tree.value, base)
    if not _can_change(proposals, parts, base, settings):
        return Reduced()
    reduction = _Reduction(tree.value, base, len(proposals) // 2)
    made = failures = 0
    while proposals:
        chunks = [proposals[i : i + settings.fan_in] for i in range(0, len(proposals), settings.fan_in)]
        answers = await calls.gather(method.reduce, [(chunk, base.bullets) for chunk in chunks])
        made += len(chunks)
        left: list[Bullet] = []
        for chunk, answer in zip(chunks, answers, strict=True):
            if isinstance(answer, Curation):
                left += reduction.take(chunk, answer)
            else:
                failures += 1
                left += chunk
        if -(-len(left) // settings.fan_in) >= len(chunks):
            break
        proposals = left
    return Reduced(reduction.facts, made, failures, tuple(reduction.drops))


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
    texts = Texts(bullet.content for bullet in proposals)
    return any(set(texts.related_to(bullet.content)) - {at} for at, bullet in enumerate(proposals))


class _Reduction:
    """The facts that the calls of one window's level 2 make, and what they may still drop."""

    def __init__(self, delta: Delta, base: Standing, drops_left: int) -> None:
        self.facts = EMPTY
        self.drops: list[tuple[str, str]] = []
        self._delta = delta
        self._base = base
        self._known = {bullet.bullet for bullet in base.bullets}
        self._drops_left = drops_left

    def take(self, proposals: Sequence[Bullet], curation: Curation) -> list[Bullet]:
        """Join one call's answer; returns the proposals that stand after it, new ones included."""
        known, window = self._known, self._base.window
        evidence = self._delta.evidence | self.facts.evidence
        standing = {bullet.bullet: bullet for bullet in proposals}
        texts: set[Text] = set()
        taught: set[Evidence] = set()
        edges: set[Supersession] = set()
        removed: set[str] = set()
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
            mine = {fact._replace(bullet=new) for fact in evidence if fact.bullet in names}
            taught |= mine
            replaced = names.union(old if operation.type != "ADD" else ())
            edges.update(Supersession(bullet, window, new) for bullet in replaced if bullet != new)
            for name in names:
                standing.pop(name, None)
            if new not in known:
                traces = len({fact.trace for fact in mine})
                standing[new] = Bullet(section=section, content=content, bullet=new, key=operation.key, traces=traces)
        # What replaces a bullet cannot be dropped any more: that one ends in it, and keeps it alive.
        fixed = {edge.by for edge in self._delta.supersessions | self.facts.supersessions | edges}
        repeats, refused = self._drop(proposals, curation.drops, standing, fixed)
        edges.update(Supersession(bullet, window, of) for bullet, of in repeats.items())
        taught.update(fact._replace(bullet=repeats[fact.bullet]) for fact in evidence if fact.bullet in repeats)
        facts = Delta(
            texts=frozenset(texts),
            evidence=frozenset(taught),
            supersessions=frozenset(edges),
            covered_evidence=frozenset(fact for fact in evidence if fact.bullet in refused),
        )
        if removed:
            facts = merge(facts, removal(self._base.playbook, sorted(removed), window))
        self.facts = merge(self.facts, facts)
        return [standing[bullet] for bullet in sorted(standing)]

    def _drop(
        self, proposals: Sequence[Bullet], drops: Sequence[Drop], standing: dict[str, Bullet], fixed: set[str]
    ) -> tuple[dict[str, str], set[str]]:
        """Take what is dropped out of ``standing``, in the order of the answer.

        :return: what each verified duplicate repeats, which it ends in from now on; and the others, at most half.
        """
        repeats: dict[str, str] = {}
        refused: set[str] = set()
        for drop in drops:
            of = proposals[drop.of - 1] if drop.of is not None and 1 <= drop.of <= len(proposals) else None
            for number in dict.fromkeys(drop.cites):
                one = proposals[number - 1] if 1 <= number <= len(proposals) else None
                if one is None or one.bullet not in standing or drop.reason not in REASONS:
                    continue
                if drop.reason == "duplicate" and of is not None and is_same(one.content, of.content):
                    end = of.bullet
                    while end in repeats:
                        end = repeats[end]
                    if end == one.bullet or end in refused:  # one of a circle must stay
                        continue
                    repeats[one.bullet] = of.bullet
                elif self._drops_left and len(refused) < len(proposals) // 2 and one.bullet not in fixed:
                    self._drops_left -= 1
                    refused.add(one.bullet)
                else:
                    continue
                del standing[one.bullet]
                self.drops.append((one.bullet, drop.reason))
        return repeats, refused
