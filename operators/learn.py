"""From a window's reflections to its delta: shuffle, curate, scan, and carry what no curator cited."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from msgspec import Struct, field

from operators.calls import Calls, Failed
from operators.cite import Checked, Status, check
from operators.facts import EMPTY, Delta, Evidence, Text, Vote, merge
from operators.identity import identity, one_line
from operators.method import Method
from operators.overload import Load
from operators.reduce import level_two
from operators.scan import Node, scan
from operators.settings import Settings
from operators.shuffle import groups, place_carried, window_seed
from operators.similar import Texts
from operators.state import Carried, Standing
from operators.modelfree import union
from operators.values import Given, Reflection

CHANCES = 2
"""How many more times than the first an insight is given before it enters raw."""


class Learning(Struct, frozen=True):
    """What a window makes of a prompt, before caps.

    :param tree: the scan's tree over the groups' deltas; its value is their merge. None where there was no group.
    :param extra: facts that no group made: votes, level 2, and what entered raw.
    :param carried: insights to give again.
    :param audit: for people: drops, refused operations, fallbacks.
    """

    tree: Node[Delta] | None
    extra: Delta
    carried: tuple[Carried, ...] = ()
    load: Load = Load(0, 0, 0, 0, 0)
    calls: int = 0
    audit: dict[str, Any] = field(default_factory=dict)


async def learn(
    prompt: str,
    window: int,
    reflections: Sequence[Reflection],
    due: Sequence[Carried],
    base: Standing,
    method: Method,
    calls: Calls,
    settings: Settings,
) -> Learning:
    """Learn from one window on one base.

    :param due: carried insights that are due in this window.
    """
    seed = window_seed(settings.seed, prompt, window)
    dealt = groups(len(reflections), seed, settings.copies)
    known, waiting = _already_kept(due, base)
    tables = _tables(reflections, dealt, waiting, seed)
    asked = [table for table in tables if table]
    answers = await calls.gather(method.curate, [(table, base.bullets) for table in asked]) if asked else []
    checked: list[Checked] = []
    failures = 0
    for table, answer in zip(asked, answers, strict=True):
        if isinstance(answer, Failed):
            failures += 1
            answer = union(table)
        checked.append(check(table, answer, base))
    fates = _fates(asked, checked)
    tree = scan([each.delta for each in checked], merge) if checked else None
    votes = Delta(votes=_votes(reflections))
    second = EMPTY
    reduce_calls = 0
    if method.reduces and tree is not None:
        second, reduce_calls = await level_two(tree, [each.delta for each in checked], base, method, calls, settings)
    carried, raw = _carry(asked, fates, window, settings.max_staleness)
    entered = _enter_raw(raw, base, tree.value if tree else EMPTY)
    extra = merge(merge(votes, known), merge(second, entered))
    return Learning(
        tree,
        extra,
        carried,
        _load(len(reflections), asked, fates, len(raw)),
        len(asked) + reduce_calls,
        _audit(asked, checked, failures, raw),
    )


def enter_all(window: int, carried: Sequence[Carried], base: Standing) -> Learning:
    """The empty window of an idle prompt, or of the end of a replay: all that is carried enters, without a call."""
    known, rest = _already_kept(carried, base)
    entered = _enter_raw(rest, base, EMPTY)
    audit = {"raw": [_name(given) for given in rest]} if rest else {}
    return Learning(None, merge(known, entered), (), Load(0, 0, 0, len(rest), 0), 0, audit)


def _tables(
    reflections: Sequence[Reflection], dealt: list[list[int]], carried: Sequence[Given], seed: int
) -> list[list[Given]]:
    """What each group's curator is given; a group without an insight stays empty and makes no call."""
    fresh = {
        index: [Given(insight, reflection.trace, reflection.session) for insight in reflection.insights]
        for index, reflection in enumerate(reflections)
        if reflection.insights
    }
    tables: list[list[Given]] = [[] for _ in dealt]
    for table, members in zip(tables, dealt, strict=True):
        for index in members:
            if index in fresh:
                table.extend(fresh[index])
    if carried and not tables:
        return [list(carried)]
    if carried:
        for given, group in zip(carried, place_carried(len(carried), len(tables), seed), strict=True):
            tables[group].append(given)
    return tables


def _votes(reflections: Sequence[Reflection]) -> frozenset[Vote]:
    votes = [(bullet, each.trace, False) for each in reflections for bullet in each.helpful]
    votes += [(bullet, each.trace, True) for each in reflections for bullet in each.harmful]
    return frozenset(map(Vote._make, votes))


def _already_kept(due: Iterable[Carried], base: Standing) -> tuple[Delta, list[Given]]:
    """Carried insights that a kept bullet says already become its evidence; the others are given again."""
    given = [carried.given for carried in due]
    if not given or not base.bullets:
        return EMPTY, given
    texts = Texts([bullet.content for bullet in base.bullets])
    rest: list[Given] = []
    evidence: set[Evidence] = set()
    for one in given:
        at = texts.same_as(one.insight.content)
        if at is None:
            rest.append(one)
        else:
            evidence.add(Evidence(base.bullets[at].bullet, one.trace, one.insight.number, one.session))
    return Delta(evidence=frozenset(evidence)), rest


def _key(given: Given) -> tuple[str, int]:
    return given.trace, given.insight.number


def _fates(tables: Sequence[Sequence[Given]], checked: Sequence[Checked]) -> dict[tuple[str, int], Status]:
    """What became of each insight; of its copies covered beats duplicate beats dropped beats uncited."""
    fates: dict[tuple[str, int], Status] = {}
    for table, one in zip(tables, checked, strict=True):
        for given, status in zip(table, one.status, strict=True):
            key = (given.trace, given.insight.number)
            if status >= fates.get(key, Status.UNCITED):
                fates[key] = status
    return fates


def _carry(
    tables: Sequence[Sequence[Given]], fates: dict[tuple[str, int], Status], window: int, max_staleness: int
) -> tuple[tuple[Carried, ...], list[Given]]:
    """Those to give again, and those whose chances are used up; each once, in the order of trace and number."""
    if Status.UNCITED not in fates.values():
        return (), []
    uncited = {_key(given): given for table in tables for given in table if fates[_key(given)] is Status.UNCITED}
    carried, raw = [], []
    for _, given in sorted(uncited.items()):
        if given.missed >= CHANCES:
            raw.append(given)
        else:
            again = Given(given.insight, given.trace, given.session, given.missed + 1)
            carried.append(Carried(again, window + 1 + max_staleness))
    return tuple(carried), raw


def _enter_raw(raw: Sequence[Given], base: Standing, delta: Delta) -> Delta:
    """A bullet of its own for each insight, marked raw, unless a bullet of the base or of this window says it already."""
    if not raw:
        return EMPTY
    words = sorted(delta.texts)
    bullets = [bullet.bullet for bullet in base.bullets] + [text.bullet for text in words]
    contents = [bullet.content for bullet in base.bullets] + [text.content for text in words]
    texts: set[Text] = set()
    evidence: set[Evidence] = set()
    for given in raw:
        insight = given.insight
        at = Texts(contents).same_as(insight.content)
        if at is None:
            content, section = insight.content.strip(), one_line(insight.section) or "OTHERS"
            bullet = identity(section, content, insight.key)
            texts.add(Text(bullet, True, content, section, insight.key))
            bullets.append(bullet)
            contents.append(content)
        else:
            bullet = bullets[at]
        evidence.add(Evidence(bullet, given.trace, insight.number, given.session))
    return Delta(texts=frozenset(texts), evidence=frozenset(evidence))


def _load(size: int, tables: Sequence[Sequence[Given]], fates: dict[tuple[str, int], Status], raw: int) -> Load:
    if not fates:
        return Load(size, 0, 0, raw, 0)
    first = {(given.trace, given.insight.number) for table in tables for given in table if not given.missed}
    good = sum(fates[key] >= Status.DUPLICATE for key in first)
    covered = sum(status is Status.COVERED for status in fates.values())
    return Load(size, len(first), good, raw, covered)


def _name(given: Given) -> list[object]:
    return [given.trace, given.insight.number]


def _audit(
    tables: Sequence[Sequence[Given]], checked: Sequence[Checked], failures: int, raw: Sequence[Given]
) -> dict[str, Any]:
    audit: dict[str, Any] = {}
    drops = [
        [*_name(table[number - 1]), reason]
        for table, one in zip(tables, checked, strict=True)
        for number, reason in one.drops
    ]
    if drops:
        audit["drops"] = drops
    refused = Counter(refusal.why for one in checked for refusal in one.refused)
    if refused:
        audit["refused"] = dict(sorted(refused.items()))
    if failures:
        audit["curator_fallbacks"] = failures
    if raw:
        audit["raw"] = [_name(given) for given in raw]
    return audit
