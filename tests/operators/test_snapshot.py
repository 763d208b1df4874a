"""States as bytes: whatever a state holds comes back, and equal states are equal bytes."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given as examples
from hypothesis import strategies as st

from operators.chunks import flat
from operators.combine import apply
from operators.facts import Delta, merge
from operators.playbook import Playbook
from operators.snapshot import Facts, Snapshot, dump, facts, load, playbook_of, with_ids
from operators.state import Carried, PromptState, Quarantined, Standing, Step
from operators.text import order
from operators.values import Given, Insight
from operators.view import shown
from operators.wire import encode
from tests.operators.laws.strategies import deltas, known, playbooks


def through_bytes(state: PromptState) -> PromptState:
    return load(msgspec.json.decode(encode(dump(state)), type=Snapshot))


def standing(playbook: Playbook, version: int, step: Step | None) -> Standing:
    return Standing(version, version, playbook, tuple(order(shown(playbook).values())), step)


def state_of(start: Playbook, steps: list[Delta], **fields: object) -> PromptState:
    standings = [standing(start, 1, None)]
    for at, delta in enumerate(steps, 2):
        ids = ((f"b{at}", f"misc-{at:05d}"),)
        playbook = with_ids(apply(standings[-1].playbook, delta), ids)
        standings.append(standing(playbook, at, Step(delta, ids)))
    return PromptState("p", standings[-1], tuple(standings[:-1]), **fields)  # type: ignore[arg-type]


def test_a_new_prompt_comes_back() -> None:
    state = PromptState("p")
    assert through_bytes(state) == state


@examples(playbooks())
def test_a_playbook_comes_back_from_its_facts(playbook: Playbook) -> None:
    plain = msgspec.json.decode(encode(facts(playbook)), type=Facts)
    back = playbook_of(plain)
    assert back == playbook
    assert back.ids == playbook.ids
    assert shown(back) == shown(playbook)
    assert encode(facts(back)) == encode(facts(playbook))


@examples(playbooks(), deltas())
def test_what_comes_back_goes_on_as_before(playbook: Playbook, delta: Delta) -> None:
    back = playbook_of(facts(playbook))
    assert apply(back, delta) == apply(playbook, delta)
    assert shown(apply(back, delta)) == shown(apply(playbook, delta))


@examples(playbooks(), st.lists(deltas(), max_size=3), deltas(), deltas())
def test_a_whole_state_comes_back(start: Playbook, steps: list[Delta], pending: Delta, refused: Delta) -> None:
    state = state_of(
        start,
        steps,
        counter=17,
        carried=(Carried(Given(Insight(2, "OTHERS", "x", "key"), "t1", "s1", 1), 9),),
        pending=pending,
        quarantined=(Quarantined(3, refused, "refused"),),
        at="2026-01-02T03:04:05Z",
    )
    back = through_bytes(state)
    assert dump(back) == dump(state)
    assert encode(dump(back)) == encode(dump(state))
    assert (back.counter, back.carried, back.pending, back.quarantined, back.at) == (
        state.counter,
        state.carried,
        state.pending,
        state.quarantined,
        state.at,
    )
    for one, other in zip((*back.older, back.now), (*state.older, state.now), strict=True):
        assert (one.version, one.window, one.bullets) == (other.version, other.window, other.bullets)
        assert one.playbook == other.playbook
        assert one.playbook.ids == other.playbook.ids


@examples(st.lists(deltas(), min_size=1, max_size=5), st.randoms(use_true_random=False))
def test_equal_states_are_equal_bytes_however_they_came_about(parts: list[Delta], random: object) -> None:
    one = other = Playbook()
    for delta in parts:
        one = apply(one, delta)
    total = Delta()
    for delta in reversed(parts):
        total = merge(delta, total)
    other = apply(other, total)
    assert encode(facts(one)) == encode(facts(other))


def test_only_the_oldest_standing_is_written_in_full() -> None:
    state = state_of(apply(Playbook(), known()), [Delta(), known(["a"])])
    written = dump(state).standings
    assert [each.facts is not None for each in written] == [True, False, False]
    assert written[2].delta == known(["a"])


def test_a_standing_whose_facts_no_step_tells_is_written_in_full() -> None:
    first = standing(Playbook(), 1, None)
    folded = standing(apply(Playbook(), known()), 2, None)
    state = PromptState("p", folded, (first,))
    assert [each.facts is not None for each in dump(state).standings] == [True, True]
    assert through_bytes(state).now.bullets == folded.bullets


def test_open_facts_in_several_chunks_are_one() -> None:
    playbook = Playbook()
    for trace in range(40):
        playbook = apply(playbook, Delta(evidence=frozenset(known(["a"]).evidence)))
        playbook = apply(playbook, known(["b"]) if trace % 2 else known(["c"]))
    assert flat(playbook_of(facts(playbook)).evidence) == flat(playbook.evidence)


@pytest.mark.parametrize("text", ["\x00", "a\nb", "## X", "⏎␛", "🙂", "\u2028"])
def test_any_text_comes_back(text: str) -> None:
    carried = (Carried(Given(Insight(1, text, text, text), text, text), 2),)
    state = PromptState(text, carried=carried, at=text)
    assert through_bytes(state) == state
