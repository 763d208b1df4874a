"""The model-free method: lessons from errors and what came after them, by comparing calls. No model, no state.

It knows tools only by what their calls and errors look like, so it finds what an agent found out by itself and misses
what takes understanding. Its three kinds of lesson:

* a call failed and the same tool succeeded later: what changed in the arguments, or which tool was called in between;
* the same call failed three times and nothing helped;
* a failed run has feedback.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from operators.attempts import MISSING, Attempt, Change, attempts, canonical, changes, find
from operators.identity import identity
from operators.lesson import Fix, Lesson, error, name, value
from operators.mask import leaves, mask, plain
from operators.values import Bullet, Curation, Given, Insight, Operation, Reflection, Trace

MISTAKES = "COMMON MISTAKES TO AVOID"
STRATEGIES = "STRATEGIES & INSIGHTS"

_LOOP = 3
_MOST = 20
_FIXES = 3
_ERRORS = 100
_FEEDBACK, _TASK, _GIVEN = 200, 80, 80


class Key(NamedTuple):
    """The canonical key of a model-free bullet: a tool, an argument, an error with its values masked.

    The argument is empty where the lesson is about the whole call, ``*`` in a loop; feedback has no tool.
    """

    tool: str
    argument: str
    error: str

    def __str__(self) -> str:
        return json.dumps(self, ensure_ascii=False)


@lru_cache(maxsize=16_384)  # every trace votes on the same few bullets
def parse_key(key: str) -> Key | None:
    """Read a bullet's key; None when another method made it."""
    if not key.startswith('["'):
        return None
    try:
        parts = json.loads(key)
    except (ValueError, RecursionError):
        return None
    return Key(*parts) if len(parts) == 3 and all(isinstance(part, str) for part in parts) else None


class ModelFree:
    """Reflects without a model and curates by plain union; never suspends."""

    name = "model-free"
    reduces = False

    def reflect(self, trace: Trace, seen: Sequence[Bullet]) -> Reflection:
        """Learn from one trace, and vote on the seen bullets about a tool that it called.

        A bullet is voted harmful when the very error it warns of came back although it had been seen. It is voted
        helpful when the tool was called, that error did not come and the run is not known to have failed: the absence
        of the error is the evidence, so a run of unknown outcome votes too. Else there is no vote.
        """
        failed = _failed(trace)
        wrong = any(step.error for step in trace.steps if step.role == "tool")
        if not wrong and not failed and not seen:
            return Reflection(trace.id, trace.session)
        made = attempts(trace.steps) if wrong else []
        found = dict(_mistakes(made))
        if failed and trace.outcome.feedback.strip():
            key, text = _feedback(trace)
            found[key] = (STRATEGIES, text)
        insights = tuple(
            Insight(number, section, text, str(key))
            for number, (key, (section, text)) in enumerate(list(found.items())[:_MOST], 1)
        )
        helpful, harmful = _votes(_errors(trace, made), failed, seen) if seen else ((), ())
        return Reflection(trace.id, trace.session, insights, helpful, harmful)

    def curate(self, given: Sequence[Given], base: Sequence[Bullet]) -> Curation:
        """Add every insight; those of one identity are one bullet."""
        return union(given)

    def reduce(self, proposals: Sequence[Bullet], base: Sequence[Bullet]) -> Curation:
        """Change nothing: the merge has already made one bullet of each identity."""
        return Curation()


def union(given: Sequence[Given]) -> Curation:
    """The plain union of a group: one ADD an identity, in order of appearance, citing all of its insights."""
    groups: dict[str, list[int]] = {}
    for number, one in enumerate(given, 1):
        insight = one.insight
        groups.setdefault(identity(insight.section, insight.content, insight.key), []).append(number)
    operations = []
    for cites in groups.values():
        shown = given[cites[0] - 1].insight
        if len(cites) > 1:
            shown = min([given[number - 1].insight for number in cites], key=lambda insight: insight.content)
        operations.append(Operation("ADD", tuple(cites), (), shown.section, shown.content, shown.key))
    return Curation(tuple(operations))


def _failed(trace: Trace) -> bool:
    success, reward = trace.outcome.success, trace.outcome.reward
    return not success if success is not None else reward is not None and reward <= 0


def _mistakes(made: list[Attempt]) -> Iterator[tuple[Key, tuple[str, str]]]:
    """Recoveries and loops, in the order in which their errors first came; the first of a key counts."""
    by_tool: dict[str, list[Attempt]] = {}
    for attempt in made:
        by_tool.setdefault(attempt.tool, []).append(attempt)
    done: set[tuple[str, str]] = set()
    kept: set[Key] = set()
    for attempt in made:
        mistake = (attempt.tool, attempt.masked)
        if not attempt.error or attempt.arguments is MISSING or mistake in done:
            continue
        if len(done) == _ERRORS:
            return
        done.add(mistake)
        lessons = _recovery(attempt, by_tool[attempt.tool], made) or _loop(attempt, by_tool[attempt.tool])
        for argument, lesson in lessons:
            key = Key(attempt.tool, argument, attempt.masked)
            if key not in kept:
                kept.add(key)
                yield key, (MISTAKES, str(lesson))


def _recovery(first: Attempt, calls: list[Attempt], made: list[Attempt]) -> list[tuple[str, Lesson]]:
    """What led from a call that failed to one of the same tool that succeeded.

    With several errors on the way, what changed between the last call with this error and the one after it is what
    mended this error. A call made before the error was read is no answer to it.
    """
    later = [call for call in calls if call.asked > first.answered and call.arguments is not MISSING]
    place = next((place for place, call in enumerate(later) if call.succeeded), None)
    if place is None:
        return []
    way = [first, *later[: place + 1]]
    end = way[-1]
    last = max(place for place, call in enumerate(way) if call.masked == first.masked)
    mended = way[last + 1]
    others = _between(way[last], mended, made)
    lasting = {change.argument: change for change in changes(first.arguments, end.arguments)}
    step = [change.argument for change in changes(way[last].arguments, mended.arguments)]
    fixes = [lasting[argument] for argument in step if argument in lasting]
    if step:
        chosen = _asked_for(first, fixes or list(lasting.values()))
        return [_fix(first, change, others) for change in chosen]
    # Where nothing in the call tells progress from a step back, only the call that succeeded does.
    others = _between(way[last], end, made)
    if others:
        return [("", _lesson(first, "call first", first=_tools(others), given=_given(others)))]
    return [("", _lesson(first, "again"))]


def _between(failed: Attempt, mended: Attempt, made: list[Attempt]) -> list[Attempt]:
    """Other tools' calls that were made after the one call failed and had succeeded before the other was made."""
    between = [call for call in made if failed.answered < call.asked and call.answered < mended.asked]
    return [call for call in between if call.tool != failed.tool and call.succeeded]


def _asked_for(failed: Attempt, found: list[Change]) -> list[Change]:
    """The changes that the error names, by argument or else by value; else all where they are at most two.

    More changes that no error asked for are another call, not a mended one.
    """
    told = _words(failed.error)
    for named in (
        [change for change in found if _names(told, change.argument)],
        [change for change in found if _holds(failed.error, change.before)],
    ):
        if named:
            return named[:_FIXES]
    return found if len(found) <= 2 else []


def _fix(failed: Attempt, change: Change, others: list[Attempt]) -> tuple[str, Lesson]:
    argument, before, after = change
    example = {
        "argument": argument,
        "before": "" if before is MISSING else value(before),
        "after": "" if after is MISSING else value(after),
    }
    if after is MISSING:
        return argument, _lesson(failed, "leave out", **example)
    known = list(leaves(failed.arguments))
    for other in reversed(others):
        field = find(other.output, after)
        if field is not None and argument and after not in known and after not in leaves(other.arguments):
            return argument, _lesson(
                failed, "pass", **example, first=(other.tool,), given=_given([other]), field=name(field)
            )
    return argument, _lesson(failed, "add" if before is MISSING else "change", **example)


def _loop(failed: Attempt, calls: list[Attempt]) -> list[tuple[str, Lesson]]:
    """The same call failing three times, when nothing in the trace mended it."""
    same = Counter(canonical(call.arguments) for call in calls if call.masked == failed.masked)
    same.pop(None, None)
    return [("*", _lesson(failed, "stop"))] if max(same.values(), default=0) >= _LOOP else []


def _feedback(trace: Trace) -> tuple[Key, str]:
    feedback = trace.outcome.feedback
    task = f' (task: "{plain(trace.task, _TASK)}")' if trace.task.strip() else ""
    return Key("", "", mask(feedback)), f'A run failed: "{plain(feedback, _FEEDBACK)}"{task}'


def _errors(trace: Trace, made: list[Attempt]) -> dict[str, set[str]]:
    """The masked errors of each tool that the trace called; most traces have none, and need no attempts for that."""
    raw = {call.name for step in trace.steps for call in step.calls}
    raw.update(step.name for step in trace.steps if step.name and step.role == "tool")
    called: dict[str, set[str]] = {name(tool): set() for tool in raw}
    for attempt in made:
        if attempt.error:
            called.setdefault(attempt.tool, set()).add(attempt.masked)
    called.pop("", None)
    return called


def _votes(
    errors: dict[str, set[str]], failed: bool, seen: Sequence[Bullet]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    helpful: list[str] = []
    harmful: list[str] = []
    for bullet in seen:
        key = parse_key(bullet.key)
        if key is None:
            came = _told_of(bullet, errors)
        elif key.tool in errors:
            came = key.error in errors[key.tool]
        else:
            continue
        if came:
            harmful.append(bullet.bullet)
        elif came is not None and not failed:
            helpful.append(bullet.bullet)
    return tuple(helpful), tuple(harmful)


def _told_of(bullet: Bullet, errors: dict[str, set[str]]) -> bool | None:
    """Whether an error came that a bullet of another method speaks of; None when it is about no tool called, or that
    cannot be told."""
    about = [tool for tool in errors if tool in bullet.content and _stands(tool, bullet.content)]
    if not about:
        return None
    came = {masked for tool in about for masked in errors[tool]}
    warned = mask(bullet.content) if came else ""
    return any(masked in warned for masked in came) or (None if came else False)


def _lesson(failed: Attempt, fix: Fix, **parts: Any) -> Lesson:
    return Lesson(failed.tool, error(failed.error), fix, **parts)


def _tools(others: list[Attempt]) -> tuple[str, ...]:
    """The last tools called, oldest first, each once."""
    return tuple(reversed(list(dict.fromkeys(other.tool for other in reversed(others)))[:_FIXES]))


def _given(others: list[Attempt]) -> str:
    """What the only tool was called with; nothing when there are several, or it took nothing."""
    arguments = others[-1].arguments
    return value(arguments, _GIVEN) if len(_tools(others)) == 1 and arguments and arguments is not MISSING else ""


def _words(text: str) -> str:
    """The words of a text or of a name, between spaces: ``quote_id``, ``quoteId`` and ``Quote ID`` are the same."""
    text = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", plain(text, 600))
    return f" {re.sub(r'[^0-9a-z]+', ' ', text.casefold()).strip()} "


def _names(told: str, argument: str) -> bool:
    words = _words(argument.rpartition(".")[2])
    return words.strip() != "" and words in told


def _holds(text: str, before: Any) -> bool:
    return isinstance(before, str | int | float) and len(str(before)) > 2 and _stands(str(before)[:200], text[:2_000])


def _stands(word: str, text: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text) is not None
