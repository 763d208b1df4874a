"""Versions: numbers, display ids, what changed, rollbacks, and that the log rebuilds every one of them to the byte."""

from __future__ import annotations

from random import Random
from typing import Any

import msgspec
import pytest
from hypothesis import given as examples
from hypothesis import strategies as st
from msgspec import UNSET
from msgspec.structs import replace

from operators.budget import tokens
from operators.entry import Entry
from operators.facts import EMPTY, Delta, Evidence, PersonFact, Supersession, Text, Vote, merge
from operators.imports import import_delta, proposed_ids
from operators.learn import Learning
from operators.scan import scan
from operators.settings import Settings
from operators.snapshot import Snapshot, dump, load
from operators.state import Carried, PromptState, Standing, base_for
from operators.text import parse_ace, render
from operators.values import Bullet, Given, Insight, Update
from operators.version import SNAPSHOT_EVERY, Published, advance, publish_delta, publish_rollback, publish_window
from operators.view import removal
from operators.wire import encode
from tests.operators.scripted import contents, name_of

NEW = PromptState("p")
SETTINGS = Settings()


def taught(*texts: str, by: str = "t1", session: str = "", raw: bool = False, at: int = 1) -> Delta:
    """What trace ``by`` taught with its insights from number ``at`` on."""
    return Delta(
        texts=frozenset(Text(name_of(text), raw, text, "OTHERS", "") for text in texts),
        evidence=frozenset(Evidence(name_of(text), by, number, session) for number, text in enumerate(texts, at)),
    )


def voted(text: str, helpful: int = 0, harmful: int = 0) -> Delta:
    votes = [Vote(name_of(text), f"h{at}", False) for at in range(helpful)]
    return Delta(votes=frozenset(votes + [Vote(name_of(text), f"b{at}", True) for at in range(harmful)]))


def person(text: str, offset: int, kind: str, content: str = "") -> Delta:
    fact = PersonFact(name_of(text), offset, kind, content, "OTHERS" if content else "")  # type: ignore[arg-type]
    return Delta(people=frozenset({fact}))


def window(state: PromptState, delta: Delta, settings: Settings = SETTINGS, **fields: Any) -> Published:
    """The next window of a prompt."""
    number = state.now.window + 1
    base = base_for(state, number, settings.max_staleness)
    fields.setdefault("traces", ((f"w{number}", ""),))
    carried = fields.pop("carried", ())
    return publish_window(state, number, Learning(None, delta, carried), base, settings, **fields)


def windows(*deltas: Delta, settings: Settings = SETTINGS) -> list[Published]:
    state, made = NEW, []
    for delta in deltas:
        made.append(window(state, delta, settings))
        state = made[-1].state
    return made


def ids(published: Published) -> dict[str, str]:
    return {bullet.content: bullet.id for bullet in published.update.bullets}


def imported(state: PromptState, *bullets: Bullet) -> Published:
    return publish_delta(state, import_delta(bullets), SETTINGS, kind="import", ids=proposed_ids(bullets))


# Updates


def test_a_window_that_teaches_nothing_makes_a_version_that_changed_nothing() -> None:
    made = window(NEW, EMPTY)
    assert (made.update.version, made.update.base, made.update.kind, made.update.changed) == (1, 0, "window", False)
    assert (made.update.text, made.update.bullets) == ("", ())
    assert made.update.at is UNSET
    assert b'"at"' not in encode(made.update)


def test_an_update_shows_the_whole_prompt() -> None:
    update = windows(taught("a b"), taught("c d"))[-1].update
    assert update.text == render(update.bullets) == "## OTHERS\n[misc-00001] a b\n[misc-00002] c d"
    assert contents(update.bullets) == ["a b", "c d"]
    assert update.changed
    parsed = msgspec.json.decode(encode(update), type=Update)
    assert parsed == update


def test_votes_change_counts_and_not_what_agents_read() -> None:
    made = windows(taught("a b"), voted("a b", 2, 1))
    assert not made[1].update.changed
    assert made[1].update.text == made[0].update.text
    assert (made[1].update.bullets[0].helpful, made[1].update.bullets[0].harmful) == (2, 1)
    counting = windows(taught("a b"), voted("a b", 2, 1), settings=Settings(counters=True))
    assert counting[1].update.changed
    assert "helpful=2 harmful=1" in counting[1].update.text


def test_at_is_kept_until_a_later_one() -> None:
    first = window(NEW, EMPTY, at="2026-01-01T00:00:00Z")
    assert window(first.state, EMPTY).update.at == "2026-01-01T00:00:00Z"
    assert window(first.state, EMPTY, at="2025-01-01T00:00:00Z").update.at == "2025-01-01T00:00:00Z"


def test_learned_counts_the_traces_that_were_reflected() -> None:
    made = window(NEW, EMPTY, traces=(("t1", "aa"), ("t2", "bb")), rejected=(("t2", "no reason"),))
    assert made.update.learned.traces == 1
    assert (made.entry.batch_size, made.entry.traces, made.entry.rejected) == (
        2,
        (("t1", "aa"), ("t2", "bb")),
        (("t2", "no reason"),),
    )


def test_facts_join_the_newest_version_though_they_come_from_an_older_base() -> None:
    made = windows(taught("a b"), taught("c d"), taught("e f"))
    edge = Supersession(name_of("a b"), 1, name_of("a b c"))
    late = window(made[-1].state, merge(taught("a b c"), Delta(supersessions=frozenset({edge}))))
    assert contents(late.update.bullets) == ["a b c", "c d", "e f"]


# Display ids


def test_display_ids_count_up_and_are_never_given_again() -> None:
    first, second = windows(taught("a b"), taught("c d"))
    gone = window(second.state, removal(second.state.now.playbook, [name_of("c d")], 2))
    assert ids(window(gone.state, taught("e f"))) == {"a b": "misc-00001", "e f": "misc-00003"}
    assert ids(first) == {"a b": "misc-00001"}


def test_a_lesson_learned_again_gets_its_id_back() -> None:
    made = windows(taught("a b"), taught("c d"))[-1]
    gone = window(made.state, removal(made.state.now.playbook, [name_of("a b")], 2))
    assert ids(window(gone.state, taught("a b", by="t9"))) == {"a b": "misc-00001", "c d": "misc-00002"}


def test_a_superseding_bullet_has_an_id_of_its_own() -> None:
    made = windows(taught("a b"))[-1]
    edge = Supersession(name_of("a b"), 1, name_of("c d"))
    assert ids(window(made.state, merge(taught("c d"), Delta(supersessions=frozenset({edge}))))) == {
        "c d": "misc-00002"
    }


def test_sections_share_one_counter() -> None:
    delta = Delta(
        texts=frozenset(
            {
                Text("x", False, "1", "COMMON MISTAKES TO AVOID", ""),
                Text("y", False, "2", "FORMULAS & CALCULATIONS", ""),
            }
        ),
        evidence=frozenset({Evidence("x", "t", 1, ""), Evidence("y", "t", 2, "")}),
    )
    assert sorted(ids(window(NEW, delta)).values()) == ["calc-00001", "err-00002"]


def test_an_import_keeps_the_ids_that_are_free_and_never_restarts_numbering() -> None:
    made = windows(taught("a b"))[-1]
    new = [Bullet("misc-00001", "OTHERS", "c d"), Bullet("calc-00040", "OTHERS", "e f"), Bullet("", "OTHERS", "g h")]
    after = imported(made.state, *new)
    assert ids(after) == {"a b": "misc-00001", "c d": "misc-00041", "e f": "calc-00040", "g h": "misc-00042"}
    assert after.state.counter == 42
    assert ids(window(after.state, taught("i j")))["i j"] == "misc-00043"


def test_an_id_of_a_removed_bullet_is_not_free() -> None:
    made = windows(taught("a b"))[-1]
    gone = window(made.state, removal(made.state.now.playbook, [name_of("a b")], 1))
    assert ids(imported(gone.state, Bullet("misc-00001", "OTHERS", "c d"))) == {"c d": "misc-00002"}


def test_an_import_does_not_rename_what_is_there() -> None:
    made = windows(taught("a b"))[-1]
    assert ids(imported(made.state, Bullet("calc-00007", "OTHERS", "a b"))) == {"a b": "misc-00001"}


def test_an_import_again_changes_nothing() -> None:
    bullets = parse_ace("## OTHERS\n[x-00003] helpful=2 harmful=1 :: a b").bullets
    once = imported(NEW, *bullets)
    again = imported(once.state, *bullets)
    assert not again.update.changed
    assert again.update.bullets == once.update.bullets
    assert (once.update.bullets[0].helpful, once.update.bullets[0].harmful) == (2, 1)


def test_imports_and_edits_are_no_windows() -> None:
    made = imported(NEW, Bullet("", "OTHERS", "a b"))
    assert (made.entry.window, made.entry.batch_size, made.update.learned.traces, made.update.kind) == (
        0,
        0,
        0,
        "import",
    )
    edit = publish_delta(made.state, person("a b", 1, "edit", "A, b"), SETTINGS, kind="edit")
    assert (edit.entry.window, edit.update.base, edit.update.kind) == (0, 1, "edit")
    assert contents(edit.update.bullets) == ["A, b"]
    assert ids(edit) == {"A, b": "misc-00001"}


# The token budget


def fits(*texts: str) -> int:
    return tokens(Bullet(content=text) for text in texts)


def test_the_budget_evicts_the_least_useful_and_then_the_oldest() -> None:
    texts = ["wash the car", "feed our dog", "sing a songs", "paint a wall"]
    settings = Settings(token_budget=fits(*texts[:2]))
    made = windows(taught(*texts[:2]), voted(texts[0], helpful=1), taught(*texts[2:], by="t2"), settings=settings)[-1]
    assert contents(made.update.bullets) == sorted([texts[0], texts[3]])
    evicted = {fact.bullet for fact in made.entry.delta.covered_evidence}
    assert evicted == {name_of(texts[1]), name_of(texts[2])}
    assert made.entry.audit["evicted"] == ["misc-00001", name_of(texts[2])]  # one was not shown yet, so has no id


def test_harmful_votes_evict_before_age() -> None:
    settings = Settings(token_budget=fits("a b", "c d"))
    made = windows(taught("a b"), taught("c d"), voted("c d", harmful=1), taught("e f", by="t2"), settings=settings)[-1]
    assert contents(made.update.bullets) == ["a b", "e f"]


def test_what_a_person_fixed_is_never_evicted() -> None:
    settings = Settings(token_budget=fits("a b"))
    state = windows(taught("a b"), settings=settings)[-1].state
    state = publish_delta(state, person("a b", 1, "pin", "a b"), settings, kind="edit").state
    made = window(state, taught("c d", by="t2"), settings)
    assert contents(made.update.bullets) == ["a b"]
    state = publish_delta(made.state, person("a b", 2, "unpin"), settings, kind="edit").state
    assert contents(window(state, taught("c d", by="t3"), settings).update.bullets) == ["c d"]


def test_an_evicted_lesson_that_is_learned_again_comes_back_with_its_id() -> None:
    settings = Settings(token_budget=fits("a b"))
    made = windows(taught("a b"), taught("c d"), taught("a b", by="t3"), settings=settings)
    assert [ids(each) for each in made] == [{"a b": "misc-00001"}, {"c d": "misc-00002"}, {"a b": "misc-00001"}]
    # Its old votes and evidence went with it.
    assert made[-1].update.bullets[0].traces == 1


def test_an_eviction_names_all_that_end_in_the_bullet() -> None:
    settings = Settings(token_budget=fits("a b"))
    edge = Supersession(name_of("a b"), 1, name_of("c d"))
    made = windows(taught("a b"), merge(taught("c d"), Delta(supersessions=frozenset({edge}))), settings=settings)
    assert contents(made[-1].update.bullets) == ["c d"]
    last = window(made[-1].state, taught("e f", by="t3"), settings)
    assert contents(last.update.bullets) == ["e f"]
    assert {fact.bullet for fact in last.entry.delta.covered_evidence} == {name_of("a b"), name_of("c d")}


# A guard


def test_what_a_guard_refuses_is_split_along_the_tree_and_quarantined_alone() -> None:
    parts = [taught(text, by=f"t{at}") for at, text in enumerate(["a b", "c d", "bad", "e f"])]
    learning = Learning(scan(parts, merge), voted("a b", 1))
    made = publish_window(
        NEW,
        1,
        learning,
        NEW.now,
        SETTINGS,
        traces=(("t", ""),),
        accept=lambda delta: all(text.content != "bad" for text in delta.texts),
    )
    assert contents(made.update.bullets) == ["a b", "c d", "e f"]
    assert [each.delta for each in made.state.quarantined] == [parts[2]]
    assert made.entry.quarantined == made.state.quarantined
    assert dump(advance(NEW, made.entry)) == dump(made.state)
    assert window(made.state, EMPTY).state.quarantined == made.state.quarantined


# Rollbacks


def test_a_rollback_shows_what_the_version_showed() -> None:
    made = windows(taught("a b"), taught("c d"), voted("a b", 3))
    back = publish_rollback(made[-1].state, made[0].state, SETTINGS)
    assert back.update.bullets == made[0].update.bullets
    assert (back.update.version, back.update.base, back.update.kind, back.update.changed) == (4, 1, "rollback", True)
    assert (back.entry.window, back.state.now.window) == (3, 3)
    assert back.entry.audit == {"to": 1}
    assert publish_rollback(back.state, made[0].state, SETTINGS).update.changed is False


def test_a_rollback_to_nothing_shows_nothing_and_ids_go_on() -> None:
    made = windows(taught("a b"), taught("c d"))[-1]
    back = publish_rollback(made.state, NEW, SETTINGS)
    assert back.update.bullets == ()
    assert back.state.counter == 2
    assert ids(window(back.state, taught("e f", "a b", by="t9"))) == {"e f": "misc-00003", "a b": "misc-00001"}


def test_a_rollback_keeps_what_people_decided() -> None:
    made = windows(taught("a b"), taught("c d"), taught("e f"))
    state = made[-1].state
    for at, decided in enumerate(
        [person("c d", 1, "edit", "C and D"), person("a b", 2, "remove"), person("e f", 3, "pin", "e f")]
    ):
        state = publish_delta(state, decided, SETTINGS, kind="edit").state
        assert state.now.version == 4 + at
    back = publish_rollback(state, made[0].state, SETTINGS)
    assert contents(back.update.bullets) == ["C and D", "e f"]
    again = window(back.state, taught("a b", by="t9"))
    assert contents(again.update.bullets) == ["C and D", "e f"]


def test_a_rollback_before_an_edit_keeps_the_edit() -> None:
    made = windows(taught("a b"))[-1]
    edited = publish_delta(made.state, person("a b", 1, "edit", "A, b"), SETTINGS, kind="edit")
    assert contents(publish_rollback(edited.state, made.state, SETTINGS).update.bullets) == ["A, b"]


def test_a_rollback_keeps_what_is_carried_now() -> None:
    carried = (Carried(Given(Insight(1, "OTHERS", "x y"), "t1", missed=1), 5),)
    first = window(NEW, taught("a b"))
    second = window(first.state, taught("c d"), carried=carried)
    back = publish_rollback(second.state, first.state, SETTINGS)
    assert back.state.carried == carried


def test_a_rollback_brings_back_what_waited_for_support_then() -> None:
    settings = Settings(support_traces=2)
    made = windows(taught("a b"), taught("c d", by="t2"), taught("a b", by="t3"), settings=settings)
    assert contents(made[-1].update.bullets) == ["a b"]
    back = publish_rollback(made[-1].state, made[0].state, settings)
    assert back.state.pending == made[0].state.pending
    assert contents(window(back.state, taught("a b", by="t4"), settings).update.bullets) == ["a b"]


def test_a_rollback_is_the_oldest_base_from_then_on() -> None:
    made = windows(*(taught(f"lesson {at}") for at in range(5)))
    back = publish_rollback(made[-1].state, made[1].state, SETTINGS)
    assert base_for(back.state, 6, 3).version == 6
    assert back.state.older == ()


def test_after_a_rollback_later_traces_may_teach_a_lesson_again() -> None:
    made = windows(taught("a b"), taught("c d"))
    back = publish_rollback(made[-1].state, made[0].state, SETTINGS)
    again = window(back.state, taught("c d", by="t9"))
    assert ids(again) == {"a b": "misc-00001", "c d": "misc-00002"}
    assert again.update.bullets[1].traces == 1


# Whole histories


LESSONS = ("a b", "c d", "e f g", "h", "i j k l m n", "A b!")


class History:
    """A prompt that lives through random events; every version is held against one that is rebuilt from bytes."""

    def __init__(self, settings: Settings, seed: int) -> None:
        self.settings = settings
        self.rng = Random(seed)
        self.states: list[PromptState] = [NEW]  # in memory from the first version to the last
        self.reloaded = NEW  # through bytes after every version, as after a kill
        self.rebuilt = NEW  # from the log alone
        self.log: list[Published] = []
        self.offset = 0

    def event(self, kind: str) -> None:
        state = self.states[-1]
        rng, settings = self.rng, self.settings
        if kind == "window":
            number = state.now.window + 1
            learning = self.learning(base_for(state, number, settings.max_staleness), number)
            traces = tuple((f"w{number}.{at}", "") for at in range(rng.randrange(3)))

            def make(state: PromptState) -> Published:
                base = base_for(state, number, settings.max_staleness)
                return publish_window(state, number, learning, base, settings, traces=traces, at=rng_at)

            rng_at = rng.choice((None, f"2026-01-{number % 28 + 1:02d}T00:00:00Z"))
        elif kind == "rollback":
            to = load(dump(rng.choice(self.states)))

            def make(state: PromptState) -> Published:
                return publish_rollback(state, to, settings)

        elif kind == "import":
            bullets = [
                Bullet(rng.choice(("", "misc-00002", "x-7")), "OTHERS", rng.choice(LESSONS), rng.randrange(3))
                for _ in range(rng.randrange(1, 3))
            ]

            def make(state: PromptState) -> Published:
                delta, wanted = import_delta(bullets), proposed_ids(bullets)
                return publish_delta(state, delta, settings, kind="import", ids=wanted)

        else:
            self.offset += 1
            what = rng.choice(("edit", "pin", "unpin", "remove"))
            text = rng.choice(LESSONS)
            decided = person(text, self.offset, what, f"{text} as edited" if what == "edit" else text)

            def make(state: PromptState) -> Published:
                return publish_delta(state, decided, settings, kind="edit")

        made = make(state)
        again = make(self.reloaded)
        assert encode(again.entry) == encode(made.entry)
        assert encode(again.update) == encode(made.update)
        self.keep(made, again)

    def keep(self, made: Published, again: Published) -> None:
        self.log.append(made)
        self.states.append(made.state)
        self.reloaded = load(msgspec.json.decode(encode(dump(again.state)), type=Snapshot))
        entry = msgspec.json.decode(encode(made.entry), type=Entry)
        assert entry == made.entry
        self.rebuilt = advance(self.rebuilt, entry)

    def learning(self, base: Standing, number: int) -> Learning:
        rng = self.rng
        parts = [self.delta(base, number, at) for at in range(rng.randrange(4))]
        votes = [
            Vote(name_of(rng.choice(LESSONS)), f"w{number}.{at}", rng.random() < 0.5) for at in range(rng.randrange(3))
        ]
        extra = Delta(votes=frozenset(votes))
        # As in life, what a trace taught beside may be published at once, and what fell due is settled or carried on.
        due = number + 1 + self.settings.max_staleness
        carried = [
            Carried(Given(Insight(9, "OTHERS", rng.choice(LESSONS)), f"w{number}.{rng.randrange(3)}", missed=1), due)
            for _ in range(rng.randrange(3))
        ]
        for each in self.states[-1].carried:
            if each.due == number and rng.random() < 0.5:
                carried.append(Carried(replace(each.given, missed=each.given.missed + 1), due))
            elif each.due == number:
                given = each.given
                extra = merge(extra, taught(given.insight.content, by=given.trace, at=given.insight.number))
        if not parts or rng.random() < 0.2:
            return Learning(None, extra, tuple(carried))
        return Learning(scan(parts, merge), extra, tuple(carried))

    def delta(self, base: Standing, number: int, at: int) -> Delta:
        """What one curator might make of the base."""
        rng = self.rng
        text = rng.choice(LESSONS)
        delta = taught(text, by=f"w{number}.{at}", session=f"s{rng.randrange(3)}", raw=rng.random() < 0.2)
        kind = rng.choice(("add", "add", "add", "update", "merge", "remove"))
        names = [bullet.bullet for bullet in base.bullets]
        chosen = rng.sample(names, min(len(names), rng.randrange(1, 3)))
        if kind == "remove":
            return removal(base.playbook, chosen, base.window)
        if kind != "add":
            new = name_of(text)
            edges = frozenset(Supersession(old, base.window, new) for old in chosen if old != new)
            delta = merge(delta, Delta(supersessions=edges))
        return delta


events = st.lists(st.sampled_from(["window"] * 6 + ["rollback", "import", "edit", "edit"]), min_size=1, max_size=16)


@st.composite
def histories(draw: st.DrawFn) -> History:
    staleness = draw(st.integers(0, 3))
    settings = Settings(
        max_staleness=staleness,
        fold_every=draw(st.integers(staleness + 2, staleness + 4)),
        fold_after=draw(st.integers(1, 4)),
        support_traces=draw(st.integers(1, 2)),
        support_sessions=draw(st.integers(1, 2)),
        token_budget=draw(st.sampled_from([12, 30, 80_000])),
        counters=draw(st.booleans()),
    )
    history = History(settings, draw(st.integers(0, 2**32)))
    for kind in draw(events):
        history.event(kind)
    return history


@examples(histories())
def test_the_log_rebuilds_every_version(history: History) -> None:
    state = NEW
    for published in history.log:
        state = advance(state, msgspec.json.decode(encode(published.entry), type=Entry))
        assert dump(state) == dump(published.state)
        assert state.now.bullets == published.update.bullets
        assert encode(dump(state)) == encode(dump(published.state))
        assert [each.bullets for each in state.older] == [each.bullets for each in published.state.older]
    assert history.rebuilt == state


@examples(histories())
def test_a_state_comes_back_from_its_bytes(history: History) -> None:
    for state in history.states:
        back = load(msgspec.json.decode(encode(dump(state)), type=Snapshot))
        assert dump(back) == dump(state)
        assert back.now.bullets == state.now.bullets
        assert [each.bullets for each in back.older] == [each.bullets for each in state.older]
        assert (back.carried, back.pending, back.counter, back.at) == (
            state.carried,
            state.pending,
            state.counter,
            state.at,
        )
        for number in range(state.now.window + 1, state.now.window + 2 + history.settings.max_staleness):
            base, same = (base_for(each, number, history.settings.max_staleness) for each in (state, back))
            assert (base.version, base.window, base.bullets) == (same.version, same.window, same.bullets)
            assert base.playbook == same.playbook


@examples(histories())
def test_display_ids_are_never_reused_and_never_change(history: History) -> None:
    named: dict[str, str] = {}
    counter = 0
    for published in history.log:
        shown_ids = [bullet.id for bullet in published.update.bullets]
        assert all(shown_ids)
        assert len(set(shown_ids)) == len(shown_ids)
        for bullet in published.update.bullets:
            assert named.setdefault(bullet.id, bullet.bullet) == bullet.bullet
        assert published.state.counter >= counter
        counter = published.state.counter
    assert len(set(named.values())) == len(named)


@examples(histories())
def test_versions_and_windows_count_up(history: History) -> None:
    assert [each.update.version for each in history.log] == list(range(1, len(history.log) + 1))
    last = 0
    for published in history.log:
        last += published.entry.kind == "window"
        assert (published.entry.window, published.state.now.window) == (last, last)
        assert published.update.base < published.update.version


@examples(histories())
def test_no_version_exceeds_the_budget_but_for_what_people_fixed(history: History) -> None:
    for published in history.log:
        bullets = published.update.bullets
        over = tokens(bullets) > history.settings.token_budget
        assert not over or all(bullet.pinned for bullet in bullets)


@examples(histories())
def test_changed_says_whether_agents_read_something_else(history: History) -> None:
    before = ""
    for published in history.log:
        assert published.update.changed == (published.update.text != before)
        before = published.update.text
        assert before == render(published.update.bullets, counters=history.settings.counters)


@examples(histories(), st.data())
def test_a_rollback_shows_the_old_version_where_people_decided_nothing(history: History, data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(history.states) - 1))
    back = publish_rollback(history.states[-1], load(dump(history.states[at])), history.settings)
    assert back.state.now.window == history.states[-1].now.window
    assert back.state.carried == history.states[-1].carried
    if any(each.entry.delta.people for each in history.log):
        return
    assert back.update.bullets == history.states[at].now.bullets
    assert back.state.counter == history.states[-1].counter


def test_a_trace_counts_once_though_a_fold_comes_between_what_it_taught_and_what_is_carried_of_it() -> None:
    settings = Settings(fold_every=3)
    insight = Given(Insight(2, "OTHERS", "a b"), "t1", missed=1)
    made = [window(NEW, taught("a b", by="t1"), settings, carried=(Carried(insight, 3),))]
    made.append(window(made[-1].state, taught("c d", by="t2"), settings))
    # Left once more in the window that folds: what its trace taught before must not become a mere count.
    made.append(window(made[-1].state, EMPTY, settings, carried=(Carried(replace(insight, missed=2), 5),)))
    assert made[-1].entry.folded
    made.append(window(made[-1].state, EMPTY, settings))
    made.append(window(made[-1].state, taught("a b", by="t1", at=2), settings))
    assert {bullet.content: bullet.traces for bullet in made[-1].update.bullets} == {"a b": 1, "c d": 1}
    made.append(window(made[-1].state, EMPTY, settings))
    assert made[-1].entry.folded
    assert {bullet.content: bullet.traces for bullet in made[-1].update.bullets} == {"a b": 1, "c d": 1}
    state = NEW
    for published in made:
        state = advance(state, published.entry)
        assert dump(state) == dump(published.state)


def test_a_snapshot_stands_in_the_log_now_and_then() -> None:
    made = windows(*[EMPTY] * (SNAPSHOT_EVERY + 1))
    assert [each.update.version for each in made if each.entry.snapshot is not None] == [SNAPSHOT_EVERY]
    assert made[SNAPSHOT_EVERY - 1].entry.snapshot == dump(made[SNAPSHOT_EVERY - 1].state)


def test_the_log_rebuilds_versions_of_runs_with_another_staleness() -> None:
    history = History(Settings(max_staleness=2, fold_every=5), 7)
    for _ in range(12):
        history.event("window")
    history.settings = Settings(max_staleness=0, fold_every=5)
    for _ in range(6):
        history.event("window")
    state = NEW
    for published in history.log:
        state = advance(state, msgspec.json.decode(encode(published.entry), type=Entry))
        assert encode(dump(state)) == encode(dump(published.state))


@pytest.mark.parametrize("staleness", [0, 1, 3])
def test_states_do_not_grow_with_the_number_of_windows(staleness: int) -> None:
    settings = Settings(max_staleness=staleness, fold_every=staleness + 2)
    state, sizes = NEW, []
    for at in range(60):
        made = window(state, merge(taught("a b", by=f"t{at}"), voted("a b", 1)), settings)
        state = made.state
        sizes.append(len(encode(dump(state))))
    assert max(sizes[-10:]) < 2 * max(sizes[10:20])
    assert state.now.bullets[0].traces == 60
    assert len(state.older) <= 2 * (staleness + 2)
