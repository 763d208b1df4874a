"""From a window's reflections to its delta: shuffle, curate, scan, and carry what no curator cited."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Iterable, Iterator, Sequence
from itertools import repeat
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from operators import shuffle
from operators.calls import Calls, Failed, attempt, is_late
from operators.cite import Checked, Status, check
from operators.facts import EMPTY, Delta, Evidence, Text, Vote, merge
from operators.identity import identity, normalise, one_line
from operators.method import Method
from operators.modelfree import union
from operators.overload import Load
from operators.reduce import Reduced, level_two
from operators.repeats import Key, key_of, settle_repeats
from operators.scan import Node, scan
from operators.settings import Settings
from operators.shuffle import place_carried, window_seed
from operators.similar import Texts
from operators.state import Carried, Standing
from operators.values import Curation, Given, Insight, Reflection

CHANCES = 2
"""How many more times than the first an insight is given before it enters raw."""


class Learning(Struct, frozen=True):
    """What a window makes of a prompt, before caps.

    :param tree: the scan's tree over the groups' deltas; its value is their merge. None where there was no group.
    :param extra: facts that no group made: votes, level 2, and what entered raw.
    :param carried: insights to give again.
    :param audit: for people: drops, refused operations, fallbacks.
    :param is_last: nothing stays carried, whenever it was due.
    """

    tree: Node[Delta] | None
    extra: Delta
    carried: tuple[Carried, ...] = ()
    load: Load = Load(0, 0, 0, 0, 0)
    calls: int = 0
    audit: dict[str, Any] = field(default_factory=dict)
    is_last: bool = False


class Asked(Struct, frozen=True):
    """A window whose curators were asked, one a group.

    :param groups: what each was given.
    :param answers: of each its answer, how it failed, or an awaitable of either.
    :param known: evidence for the base of those carried insights that it says already.
    """

    window: int
    reflections: Sequence[Reflection]
    base: Standing
    groups: list[list[Given]]
    answers: list[Curation | Awaitable[Curation] | Failed]
    known: Delta

    @property
    def is_answered(self) -> bool:
        """Whether no answer has to be awaited."""
        return not any(map(is_late, self.answers))


def ask(
    prompt: str,
    window: int,
    reflections: Sequence[Reflection],
    due: Sequence[Carried],
    base: Standing,
    method: Method,
    settings: Settings,
) -> Asked:
    """Shuffle a window's insights into groups, and call each group's curator.

    :param due: carried insights that are due in this window.
    """
    seed = window_seed(settings.seed, prompt, window)
    dealt = shuffle.groups(len(reflections), seed, settings.copies)
    known, waiting = _already_kept(due, base)
    groups = [group for group in _grouped(reflections, dealt, waiting, seed) if group]
    answers = [attempt(method.curate, group, base.bullets) for group in groups]
    return Asked(window, reflections, base, groups, answers, known)


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
    return await learn_from(ask(prompt, window, reflections, due, base, method, settings), method, calls, settings)


async def learn_from(asked: Asked, method: Method, calls: Calls, settings: Settings) -> Learning:
    """Learn from what the curators answer."""
    base, groups = asked.base, asked.groups
    answers = await calls.finish(asked.answers) if groups else []
    checked: list[Checked] = []
    failures = 0
    for group, answer in zip(groups, answers, strict=True):
        if not isinstance(answer, Curation):  # it raised, or whatever it gave is no answer
            failures += 1
            answer = union(group)
        checked.append(check(group, answer, base))
    fates = _fates(groups, checked)
    tree = scan([each.delta for each in checked], merge) if checked else None
    copies = settle_repeats(groups, checked, fates, tree.value if tree else EMPTY)
    votes = Delta(votes=votes_of(asked.reflections))
    second = Reduced()
    if method.reduces and tree is not None:
        second = await level_two(tree, [each.delta for each in checked], base, method, calls, settings)
    carried, raw = _carry(groups, fates, asked.window, settings.max_staleness)
    entered = _enter_raw(raw, base, tree.value if tree else EMPTY)
    extra = merge(merge(votes, merge(asked.known, copies)), merge(second.facts, entered))
    return Learning(
        tree,
        extra,
        carried,
        _load(len(asked.reflections), groups, fates, len(raw)),
        len(groups) + second.calls,
        _audit(groups, checked, failures, raw, second),
    )


def enter_all(window: int, carried: Sequence[Carried], base: Standing) -> Learning:
    """The empty window of an idle prompt, or of the end of a replay: all that is carried enters, without a call."""
    known, rest = _already_kept(carried, base)
    entered = _enter_raw(rest, base, EMPTY)
    audit = {"raw": [_name(given) for given in rest]} if rest else {}
    return Learning(None, merge(known, entered), (), Load(0, 0, 0, len(rest), 0), 0, audit, is_last=True)


def _grouped(
    reflections: Sequence[Reflection], dealt: list[list[int]], carried: Sequence[Given], seed: int
) -> list[list[Given]]:
    """What each group's curator is given; a group without an insight stays empty and makes no call."""
    fresh = {
        index: [Given(insight, reflection.trace, reflection.session) for insight in _worded(reflection.insights)]
        for index, reflection in enumerate(reflections)
        if reflection.insights
    }
    groups = [[given for index in members if index in fresh for given in fresh[index]] for members in dealt]
    if carried and not groups:
        return [list(carried)]
    if carried:
        for given, at in zip(carried, place_carried(len(carried), len(groups), seed), strict=True):
            groups[at].append(given)
    return groups


def _worded(insights: Sequence[Insight]) -> Iterator[Insight]:
    """The insights that say anything; the others teach nothing, and no bullet can be made of them.

    Where a method gave one number twice, they are numbered anew: by its number an insight is known until it has a fate.
    """
    if len(insights) > 1 and len({insight.number for insight in insights}) < len(insights):
        insights = [replace(insight, number=number) for number, insight in enumerate(insights, 1)]
    return (insight for insight in insights if normalise(insight.content))


def votes_of(reflections: Sequence[Reflection]) -> frozenset[Vote]:
    """The votes of all reflections, as facts."""
    votes = [(bullet, each.trace, False) for each in reflections for bullet in each.helpful]
    votes += [(bullet, each.trace, True) for each in reflections for bullet in each.harmful]
    # As Vote._make does, a frame less for each: there is a vote or more a trace.
    return frozenset(map(tuple.__new__, repeat(Vote), votes))


def _already_kept(due: Iterable[Carried], base: Standing) -> tuple[Delta, list[Given]]:
    """Carried insights that a kept bullet says already become its evidence; the others are given again."""
    given = [carried.given for carried in due]
    if not given or not base.bullets:
        return EMPTY, given
    said = Texts([bullet.content for bullet in base.bullets])
    rest: list[Given] = []
    texts: set[Text] = set()
    evidence: set[Evidence] = set()
    for one in given:
        at = said.same_as(one.insight.content)
        if at is None:
            rest.append(one)
        else:
            bullet = base.bullets[at].bullet
            texts.update(_worded_as(bullet, base))
            evidence.add(Evidence(bullet, one.trace, one.insight.number, one.session))
    return Delta(texts=frozenset(texts), evidence=frozenset(evidence)), rest


def _worded_as(bullet: str, base: Standing) -> list[Text]:
    """The text of a bullet of the base, to go with new evidence for it: since then it may have been forgotten."""
    record = base.playbook.records.get(bullet)
    return [] if record is None or record.text is None else [record.text]


def _fates(groups: Sequence[Sequence[Given]], checked: Sequence[Checked]) -> dict[Key, Status]:
    """What became of each insight; of its copies covered beats duplicate beats dropped beats uncited."""
    fates: dict[Key, Status] = {}
    for group, one in zip(groups, checked, strict=True):
        for given, status in zip(group, one.status, strict=True):
            key = (given.trace, given.insight.number)
            if status >= fates.get(key, Status.UNCITED):
                fates[key] = status
    return fates


def _carry(
    groups: Sequence[Sequence[Given]], fates: dict[Key, Status], window: int, max_staleness: int
) -> tuple[tuple[Carried, ...], list[Given]]:
    """Those to give again, and those whose chances are used up; each once, in the order of trace and number."""
    if Status.UNCITED not in fates.values():
        return (), []
    uncited = {key_of(given): given for group in groups for given in group if fates[key_of(given)] is Status.UNCITED}
    carried, raw = [], []
    for _, given in sorted(uncited.items()):
        if given.missed >= CHANCES:
            raw.append(given)
        else:
            again = Given(given.insight, given.trace, given.session, given.missed + 1)
            carried.append(Carried(again, window + 1 + max_staleness))
    return tuple(carried), raw


def _enter_raw(raw: Sequence[Given], base: Standing, delta: Delta) -> Delta:
    """A bullet of its own for each insight, marked raw, unless one of the base or of this window says it already."""
    if not raw:
        return EMPTY
    words = sorted(delta.texts)
    bullets = [bullet.bullet for bullet in base.bullets] + [text.bullet for text in words]
    said = Texts([*(bullet.content for bullet in base.bullets), *(text.content for text in words)])
    texts: set[Text] = set()
    evidence: set[Evidence] = set()
    for given in raw:
        insight = given.insight
        at = said.same_as(insight.content)
        if at is None:
            content, section = insight.content.strip(), one_line(insight.section) or "OTHERS"
            bullet = identity(section, content, insight.key)
            texts.add(Text(bullet, True, content, section, insight.key))
            bullets.append(bullet)
            said.append(content)
        else:
            bullet = bullets[at]
            texts.update(_worded_as(bullet, base))
        evidence.add(Evidence(bullet, given.trace, insight.number, given.session))
    return Delta(texts=frozenset(texts), evidence=frozenset(evidence))


def _load(size: int, groups: Sequence[Sequence[Given]], fates: dict[Key, Status], raw: int) -> Load:
    if not fates:
        return Load(size, 0, 0, raw, 0)
    first = {(given.trace, given.insight.number) for group in groups for given in group if not given.missed}
    good = sum(fates[key] >= Status.DUPLICATE for key in first)
    covered = sum(status is Status.COVERED for status in fates.values())
    return Load(size, len(first), good, raw, covered)


def _name(given: Given) -> list[object]:
    return [given.trace, given.insight.number]


def _audit(
    groups: Sequence[Sequence[Given]],
    checked: Sequence[Checked],
    failures: int,
    raw: Sequence[Given],
    second: Reduced,
) -> dict[str, Any]:
    audit: dict[str, Any] = {}
    drops = [
        [*_name(group[number - 1]), reason]
        for group, one in zip(groups, checked, strict=True)
        for number, reason in one.drops
    ]
    failed = [
        [*_name(group[number - 1]), reason]
        for group, one in zip(groups, checked, strict=True)
        for number, reason in one.failed
    ]
    if failed:
        audit["drops_that_do_not_hold"] = failed
    if drops:
        audit["drops"] = drops
    refused = [refusal.why for one in checked for refusal in one.refused]
    if refused:
        audit["refused"] = dict(sorted(Counter(refused).items()))
    if failures:
        audit["curator_fallbacks"] = failures
    if second.drops:
        audit["level_2_drops"] = [list(drop) for drop in second.drops]
    if second.failures:
        audit["level_2_failures"] = second.failures
    if raw:
        audit["raw"] = [_name(given) for given in raw]
    return audit
