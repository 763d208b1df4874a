"""Votes go to the bullets that a trace's agent had read: those it names, those in its prompt, or its version's."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from operators.combine import apply
from operators.facts import Delta, Evidence, Supersession, Text
from operators.playbook import Playbook
from operators.seen import seen
from operators.snapshot import with_ids
from operators.state import Standing
from operators.text import order, render
from operators.values import Bullet, Step, Trace
from operators.view import shown
from tests.operators.scripted import contents, name_of

OURS = "9f2c"
TEXTS = ("amounts are in cents", "call search first", "two\nlines of it")


def standing(*texts: str, superseded: tuple[str, str] | None = None) -> Standing:
    delta = Delta(
        texts=frozenset(Text(name_of(text), False, text, "OTHERS", "") for text in texts),
        evidence=frozenset(Evidence(name_of(text), "t0", 1, "") for text in texts),
    )
    playbook = apply(Playbook(), delta)
    if superseded is not None:
        old, new = map(name_of, superseded)
        playbook = apply(playbook, Delta(supersessions=frozenset({Supersession(old, 1, new)})))
    playbook = with_ids(playbook, tuple((name_of(text), f"misc-{at:05d}") for at, text in enumerate(texts, 1)))
    return Standing(4, 4, playbook, tuple(order(shown(playbook).values())))


KNOWN = standing(*TEXTS)
OLD = (Bullet("misc-00009", "OTHERS", "what version 2 showed", bullet="b9"),)


def read(trace: Trace, known: Standing = KNOWN) -> list[str]:
    asked: list[int] = []

    def bullets_of(version: int) -> Sequence[Bullet]:
        asked.append(version)
        return OLD if version == 2 else ()

    return contents(seen(trace, known, OURS, bullets_of))


def prompted(text: str, role: str = "system", **fields: object) -> Trace:
    return Trace(steps=(Step(role, text),), **fields)  # type: ignore[arg-type]


@pytest.mark.parametrize("lineage", [OURS, None])
def test_bullets_that_a_trace_names_are_those_it_saw(lineage: str | None) -> None:
    trace = Trace(bullets=("misc-00002", "misc-00077"), lineage=lineage, version=2)
    assert read(trace) == ["call search first"]


def test_a_trace_that_names_no_bullet_saw_none() -> None:
    trace = prompted(render(KNOWN.bullets), bullets=(), lineage=OURS, version=2)
    assert read(trace) == []


def test_names_of_another_lineage_do_not_count() -> None:
    assert read(Trace(bullets=("misc-00001",), lineage="theirs", version=2)) == []


def test_a_bullet_superseded_since_still_counts_for_its_successor() -> None:
    known = standing("old", "new", superseded=("old", "new"))
    assert contents(known.bullets) == ["new"]
    found = seen(Trace(bullets=("misc-00001", "misc-00002")), known, OURS, lambda version: ())
    assert sorted(bullet.bullet for bullet in found) == sorted([name_of("old"), name_of("new")])


@pytest.mark.parametrize("counters", [False, True])
@pytest.mark.parametrize("role", ["system", "user"])
@pytest.mark.parametrize("lineage", [OURS, None, "theirs"])
def test_bullets_in_the_prompt_text_are_those_it_saw(counters: bool, role: str, lineage: str | None) -> None:
    text = "You are an agent.\n" + render(KNOWN.bullets, counters=counters) + "\nGood luck."
    assert read(prompted(text, role, lineage=lineage)) == sorted(TEXTS)


def test_both_the_id_and_the_content_must_stand_there() -> None:
    assert read(prompted("[misc-00001] amounts are in dollars")) == []
    assert read(prompted("amounts are in cents")) == []
    assert read(prompted("[misc-00077] amounts are in cents")) == []
    assert read(prompted("[misc-00002] call search first, [not an id]")) == ["call search first"]


@pytest.mark.parametrize("role", ["assistant", "tool", "event"])
def test_what_an_agent_or_a_tool_says_is_no_prompt(role: str) -> None:
    assert read(prompted(render(KNOWN.bullets), role)) == []


def test_else_the_version_it_names_counts_if_the_lineage_is_ours() -> None:
    assert read(prompted("hello", lineage=OURS, version=2)) == ["what version 2 showed"]
    assert read(prompted("hello", lineage=OURS, version=3)) == []
    assert read(prompted("hello", lineage="theirs", version=2)) == []
    assert read(prompted("hello", lineage=None, version=2)) == []
    assert read(prompted("hello", lineage=OURS)) == []


def test_the_prompt_text_goes_before_the_version() -> None:
    assert read(prompted("[misc-00002] call search first", lineage=OURS, version=2)) == ["call search first"]


def test_before_the_first_version_nothing_was_seen() -> None:
    def never(version: int) -> Sequence[Bullet]:
        raise AssertionError("nobody asks")

    for trace in (Trace(bullets=("misc-00001",)), prompted("[misc-00001] x"), Trace(lineage=OURS, version=1)):
        assert list(seen(trace, Standing(), OURS, never)) == []
