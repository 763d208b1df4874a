"""A version that is too large: what is published in its place."""

from __future__ import annotations

from msgspec.structs import replace

from operators.budget import tokens
from operators.learn import Learning
from operators.settings import Settings
from operators.smaller import passed, smaller
from operators.state import Carried, PromptState, base_for
from operators.values import Given, Insight
from operators.version import Published, advance, publish_delta, publish_window
from tests.operators.test_version import NEW, SETTINGS, taught, window

TEXTS = [f"{number} " + "x" * 400 for number in range(10)]


def learned(count: int, state: PromptState = NEW) -> Published:
    """A window that taught as many bullets."""
    return window(state, taught(*TEXTS[:count]), traces=(("t1", "d"), ("t2", "d")))


def test_bullets_are_pruned_more_and_more_and_then_nothing_is_learned() -> None:
    versions = list(smaller(learned(8), 0.5, "too large"))
    counts = [len(each.update.bullets) for each in versions]
    assert counts == [3, 2, 1, 0]
    assert [each.entry.refused for each in versions] == [""] * (len(versions) - 1) + ["too large"]
    first = versions[0]
    assert tokens(first.update.bullets) <= 0.9 * 0.5 * tokens(learned(8).update.bullets)
    assert len(first.entry.audit["evicted"]) == 5
    # The log alone rebuilds it, and what yielded stays away.
    assert advance(NEW, first.entry).now.bullets == first.update.bullets
    assert set(window(first.state, taught()).update.bullets) == set(first.update.bullets)


def test_no_version_is_given_twice() -> None:
    versions = list(smaller(learned(2), 0.5, "too large"))
    assert [len(each.update.bullets) for each in versions] == [0, 0]
    assert [bool(each.entry.refused) for each in versions] == [False, True]


def test_pruning_does_not_loosen_the_budget_that_is_set() -> None:
    state, tight = NEW, Settings(token_budget=250)
    made = publish_window(state, 1, Learning(None, taught(*TEXTS)), base_for(state, 1, 1), tight)
    assert all(tokens(each.update.bullets) <= 250 for each in smaller(made, 0.99, ""))


def test_where_fewer_bullets_would_not_help_nothing_is_learned_at_once() -> None:
    before = learned(3).state
    traces = (("w1", "d1"), ("w2", "d2"))
    made = window(before, taught("new", by="t9"), traces=traces, rejected=(("w2", "bad"),))
    (refused,) = smaller(made, 1.0, "no room")
    assert made.update.learned.traces == 1
    assert (refused.update.version, refused.entry.window) == (2, 2)
    assert refused.update.bullets == before.now.bullets
    assert not refused.update.changed
    assert refused.update.learned.traces == 0
    assert (refused.entry.traces, refused.entry.rejected) == (traces, (("w2", "bad"),))
    assert refused.entry.refused == "no room"
    assert advance(before, refused.entry).now.playbook == refused.state.now.playbook


def test_what_was_carried_gets_its_chance_in_a_later_window() -> None:
    carried = [Carried(Given(Insight(1, "s", f"c{due}"), "t"), due) for due in (1, 2)]
    before = replace(NEW, carried=tuple(carried))
    made = window(before, taught("new"))
    (refused,) = smaller(made, 1.0, "no room")
    later = 1 + 1 + SETTINGS.max_staleness
    assert [(each.given.insight.content, each.due) for each in refused.state.carried] == [("c1", later), ("c2", 2)]
    assert passed(made).carried == refused.state.carried


def test_what_all_was_to_enter_is_let_go() -> None:
    before = replace(NEW, carried=(Carried(Given(Insight(1, "s", "c"), "t"), 2),))
    everything = Learning(None, taught("c"), (), is_last=True)
    made = publish_window(before, 1, everything, before.now, SETTINGS)
    (refused,) = smaller(made, 1.0, "no room")
    assert refused.state.carried == passed(made).carried == ()


def test_a_window_that_makes_no_version_is_passed() -> None:
    before = learned(3).state
    after = passed(window(before, taught("new")))
    assert (after.now.version, after.now.window) == (1, 2)
    assert after.now.bullets == before.now.bullets


def test_what_a_person_asked_for_is_not_made_smaller() -> None:
    made = publish_delta(NEW, taught(*TEXTS), SETTINGS, kind="import")
    assert list(smaller(made, 0.5, "too large")) == []
