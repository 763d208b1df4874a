"""Support holds back and lets go; the token budget chooses who yields."""

from __future__ import annotations

import asyncio
from random import Random

import pytest
from hypothesis import given as examples
from hypothesis import strategies as st

from operators.budget import cost, tokens
from operators.caps import PENDING_KEPT, evicted, support
from operators.combine import apply
from operators.facts import EMPTY, Delta, Evidence, PersonFact, Supersession, Text, Vote, merge
from operators.playbook import Playbook
from operators.settings import Settings
from operators.values import Bullet
from operators.view import removal, shown
from tests.operators.scripted import Scripted, contents, covers_all, learn_all, name_of, trace

NOTHING = Playbook()


def taught(text: str, *by: tuple[str, str]) -> Delta:
    """A bullet and its (trace, session)s."""
    return Delta(
        texts=frozenset({Text(name_of(text), False, text, "OTHERS", "")}),
        evidence=frozenset(Evidence(name_of(text), each, 1, session) for each, session in by),
    )


def replaced(old: str, new: str, window: int = 1) -> Delta:
    return Delta(supersessions=frozenset({Supersession(name_of(old), window, name_of(new))}))


def person(text: str, kind: str, offset: int = 1) -> Delta:
    return Delta(people=frozenset({PersonFact(name_of(text), offset, kind, text, "OTHERS")}))  # type: ignore[arg-type]


class Prompt:
    """Windows through support, one after another."""

    def __init__(self, traces: int, sessions: int = 1) -> None:
        self.settings = Settings(support_traces=traces, support_sessions=sessions)
        self.playbook = NOTHING
        self.pending = EMPTY

    def window(self, *deltas: Delta) -> list[str]:
        delta = EMPTY
        for each in deltas:
            delta = merge(delta, each)
        now, self.pending = support(delta, self.pending, self.playbook, self.settings)
        self.playbook = apply(self.playbook, now)
        return self.shown()

    def shown(self) -> list[str]:
        return contents(shown(self.playbook).values())


def test_one_trace_is_enough_by_default() -> None:
    delta = taught("a b", ("t1", ""))
    assert support(delta, EMPTY, NOTHING, Settings()) == (delta, EMPTY)


def test_what_too_few_traces_teach_waits_over_windows() -> None:
    prompt = Prompt(3)
    assert prompt.window(taught("a b", ("t1", ""))) == []
    assert prompt.window() == []
    assert prompt.window(taught("a b", ("t2", "")), taught("c d", ("t2", ""))) == []
    assert prompt.window(taught("a b", ("t3", ""))) == ["a b"]
    assert shown(prompt.playbook)[name_of("a b")].traces == 3
    assert {text.content for text in prompt.pending.texts} == {"c d"}


def test_two_insights_of_one_trace_are_one_trace() -> None:
    prompt = Prompt(2)
    twice = Delta(evidence=frozenset({Evidence(name_of("a b"), "t1", 2, "")}))
    assert prompt.window(taught("a b", ("t1", "")), twice) == []


def test_one_window_may_hold_support_enough() -> None:
    assert Prompt(2).window(taught("a b", ("t1", "")), taught("a b", ("t2", ""))) == ["a b"]


@pytest.mark.parametrize(
    ("sessions", "shows"),
    [(("s1", "s1"), False), (("s1", "s2"), True), (("", ""), False), (("", "s1"), True)],
)
def test_traces_must_come_from_several_sessions(sessions: tuple[str, str], shows: bool) -> None:
    prompt = Prompt(2, 2)
    shown_after = prompt.window(taught("a b", *((f"t{at}", session) for at, session in enumerate(sessions))))
    assert shown_after == (["a b"] if shows else [])


def test_sessions_gather_over_windows() -> None:
    prompt = Prompt(1, 2)
    assert prompt.window(taught("a b", ("t1", "s1"))) == []
    assert prompt.window(taught("a b", ("t2", "s1"))) == []
    assert prompt.window(taught("a b", ("t3", "s2"))) == ["a b"]


def test_a_live_bullet_takes_any_evidence() -> None:
    prompt = Prompt(2)
    prompt.window(taught("a b", ("t1", ""), ("t2", "")))
    prompt.window(taught("a b", ("t3", "")))
    assert shown(prompt.playbook)[name_of("a b")].traces == 3
    assert prompt.pending == EMPTY


def test_the_old_bullet_stays_while_its_replacement_waits() -> None:
    prompt = Prompt(2)
    prompt.window(taught("old", ("t1", ""), ("t2", "")))
    assert prompt.window(taught("new", ("t3", "")), replaced("old", "new")) == ["old"]
    assert prompt.window(taught("other", ("t4", ""), ("t5", ""))) == ["old", "other"]
    assert prompt.window(taught("new", ("t6", ""))) == ["new", "other"]
    assert prompt.pending == EMPTY


def test_votes_and_removals_do_not_wait() -> None:
    prompt = Prompt(2)
    prompt.window(taught("old", ("t1", ""), ("t2", "")), taught("gone", ("t1", ""), ("t2", "")))
    vote = Delta(votes=frozenset({Vote(name_of("old"), "t3", False)}))
    prompt.window(taught("new", ("t3", "")), vote, removal(prompt.playbook, [name_of("gone")], 1))
    assert prompt.shown() == ["old"]
    assert shown(prompt.playbook)[name_of("old")].helpful == 1
    assert {text.content for text in prompt.pending.texts} == {"new"}


def test_a_removed_lesson_needs_support_again() -> None:
    prompt = Prompt(2)
    prompt.window(taught("a b", ("t1", ""), ("t2", "")))
    prompt.window(removal(prompt.playbook, [name_of("a b")], 1))
    assert prompt.window(taught("a b", ("t3", ""))) == []
    assert prompt.window(taught("a b", ("t4", ""))) == ["a b"]


def test_evidence_without_a_text_brings_nothing_back_past_support() -> None:
    # A carried insight was evidence for a bullet of its base, which was removed in the meantime.
    prompt = Prompt(2)
    prompt.window(taught("a b", ("t1", ""), ("t2", "")))
    prompt.window(removal(prompt.playbook, [name_of("a b")], 1))
    alone = Delta(evidence=frozenset({Evidence(name_of("a b"), "t3", 1, "")}))
    assert prompt.window(alone) == []
    assert prompt.window(taught("a b", ("t4", ""))) == ["a b"]


def test_what_is_covered_already_does_not_wait_for_anything() -> None:
    prompt = Prompt(2)
    dropped = taught("a b", ("t1", ""))
    prompt.window(dropped, Delta(covered_evidence=dropped.evidence), taught("c d", ("t1", "")))
    assert {text.content for text in prompt.pending.texts} == {"c d"}


# What people removed


def test_near_duplicates_of_what_a_person_removed_are_held() -> None:
    prompt = Prompt(1)
    prompt.window(taught("amounts are in cents", ("t1", "")))
    prompt.window(person("amounts are in cents", "remove"))
    assert prompt.window(taught("Amounts are in cent", ("t2", "")), taught("c d", ("t2", ""))) == ["c d"]
    assert prompt.window(taught("amounts are in cents", ("t3", ""))) == ["c d"]
    assert {text.content for text in prompt.pending.texts} == {"Amounts are in cent"}


def test_they_are_let_go_once_the_person_takes_it_back() -> None:
    prompt = Prompt(1)
    prompt.window(taught("amounts are in cents", ("t1", "")))
    prompt.window(person("amounts are in cents", "remove"))
    prompt.window(taught("Amounts are in cent", ("t2", "")))
    prompt.window(person("amounts are in cents", "unpin", 2))
    assert prompt.window() == ["Amounts are in cent", "amounts are in cents"]
    assert prompt.pending == EMPTY


def test_a_live_bullet_is_not_held_for_what_was_removed_beside_it() -> None:
    prompt = Prompt(1)
    prompt.window(taught("amounts are in cents", ("t1", "")), taught("Amounts are in cent", ("t1", "")))
    prompt.window(person("amounts are in cents", "remove"))
    assert prompt.window(taught("Amounts are in cent", ("t2", ""))) == ["Amounts are in cent"]


def test_pending_is_bounded_and_keeps_what_most_traces_teach() -> None:
    many = EMPTY
    texts: set[Text] = set()
    evidence: set[Evidence] = set()
    for at in range(PENDING_KEPT + 5):
        texts.add(Text(f"b{at:05}", False, f"text {at}", "OTHERS", ""))
        evidence |= {Evidence(f"b{at:05}", f"t{each}", 1, "") for each in range(1 if at < 5 else 2)}
    many = Delta(texts=frozenset(texts), evidence=frozenset(evidence))
    now, pending = support(many, EMPTY, NOTHING, Settings(support_traces=3))
    assert not now.texts
    assert len(pending.texts) == PENDING_KEPT
    assert not {text.bullet for text in pending.texts} & {f"b{at:05}" for at in range(5)}


def test_support_over_a_whole_run() -> None:
    lessons = ["a b", "c d", "a b", "e f", "a b", "c d", "g h", "e f"]
    traces = [trace(at, lesson, session=f"s{at % 2}") for at, lesson in enumerate(lessons)]
    shelf = asyncio.run(learn_all(Scripted(covers_all), traces, size=2, support_traces=2, support_sessions=2))
    assert [contents(p.update.bullets) for p in shelf.of()] == [[], [], [], []]
    alternate = [trace(at, lesson, session=f"s{at}") for at, lesson in enumerate(lessons)]
    shelf = asyncio.run(learn_all(Scripted(covers_all), alternate, size=2, support_traces=2, support_sessions=2))
    assert [contents(p.update.bullets) for p in shelf.of()] == [[], ["a b"], ["a b", "c d"], ["a b", "c d", "e f"]]


TEXTS = ("a b", "c d", "e f")


@examples(st.lists(st.lists(st.integers(0, 10**6), max_size=4), max_size=8), st.integers(1, 3), st.integers(1, 3))
def test_support_shows_exactly_what_has_enough_of_it(seeds: list[list[int]], traces: int, sessions: int) -> None:
    prompt = Prompt(traces, sessions)
    by: dict[str, set[tuple[str, str]]] = {}
    for window in seeds:
        deltas = []
        for seed in window:
            rng = Random(seed)
            text, session = rng.choice(TEXTS), rng.choice(("", "s1", "s2", "s3"))
            number = rng.randrange(6)
            deltas.append(taught(text, (f"t{number} {session}", session)))
            by.setdefault(text, set()).add((f"t{number} {session}", session))
        expected = {
            text
            for text, taught_by in by.items()
            if len({each for each, _ in taught_by}) >= traces and len({session for _, session in taught_by}) >= sessions
        }
        assert prompt.window(*deltas) == sorted(expected)
    assert {text.content for text in prompt.pending.texts} == set(by) - set(prompt.shown())
    counted = {bullet.content: bullet.traces for bullet in shown(prompt.playbook).values()}
    assert counted == {text: len(by[text]) for text in prompt.shown()}


# The budget


def live(*bullets: Bullet) -> dict[str, Bullet]:
    return {bullet.bullet: bullet for bullet in bullets}


def bullet(name: str, number: int = 0, helpful: int = 0, harmful: int = 0, pinned: bool = False) -> Bullet:
    return Bullet(f"misc-{number:05d}" if number else "", "OTHERS", "x" * 40, helpful, harmful, name, pinned=pinned)


def test_a_bullet_costs_its_bytes_and_its_id() -> None:
    assert cost(Bullet(content="x" * 4)) == 5
    assert cost(Bullet(content="x" * 5)) == 6
    assert cost(Bullet(content="€€€€")) == 7
    assert tokens([Bullet(content="x" * 4)] * 3) == 15


def test_nothing_yields_within_the_budget() -> None:
    bullets = live(bullet("a", 1), bullet("b", 2))
    assert evicted(bullets, tokens(bullets.values())) == []
    assert evicted({}, 0) == []


def test_the_least_useful_yields_first_and_of_equals_the_oldest() -> None:
    bullets = live(
        bullet("a", 1, 2, 1), bullet("b", 2), bullet("c", 3, 0, 1), bullet("d", 10), bullet("e"), bullet("f", 4, 9)
    )
    order = ["c", "b", "d", "e", "a", "f"]
    for count in range(1, 6):
        assert evicted(bullets, tokens(bullets.values()) - 14 * count) == order[:count]


def test_no_more_yield_than_must() -> None:
    bullets = live(bullet("a", 1), bullet("b", 2), bullet("c", 3))
    assert evicted(bullets, tokens(bullets.values()) - 1) == ["a"]


def test_the_number_of_an_id_is_a_number() -> None:
    old = Bullet("misc-99999", "OTHERS", "x" * 40, bullet="old")
    new = Bullet("misc-100000", "OTHERS", "x" * 40, bullet="new")
    assert evicted(live(new, old), 14) == ["old"]


def test_what_comes_back_is_as_new_as_what_was_never_shown() -> None:
    bullets = live(bullet("back", 1), bullet("there", 2))
    assert evicted(bullets, 14, {"there"}) == ["there"]
    assert evicted(bullets, 14, {"there", "back"}) == ["back"]


def test_what_is_pinned_never_yields() -> None:
    bullets = live(bullet("a", 1, 0, 9, pinned=True), bullet("b", 2, 9))
    assert evicted(bullets, 0) == ["b"]


def test_a_bullet_that_no_budget_holds_goes_before_all_others() -> None:
    small = [Bullet(id=f"misc-{n:05}", content=f"lesson {n}", bullet=f"b{n}") for n in range(1, 6)]
    giant = Bullet(id="misc-00009", content="word " * 5_000, bullet="giant", helpful=99)
    assert evicted({each.bullet: each for each in [*small, giant]}, 500) == ["giant"]
