"""The ledger against a model of sets: nothing is done that was not, nothing done is forgotten, the span holds."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from stream.kafka.ledger import SPAN, Ledger, Misused, Position


def position(offset: int, beyond: Sequence[int]) -> Position:
    return Position(offset, sum(1 << (each - offset) for each in beyond))


def all_of(position: Position) -> set[int]:
    return {offset for first, last in position.ranges() for offset in range(first, last + 1)}


def test_a_slow_head_holds_the_prefix() -> None:  # faust-streaming 606
    ledger = Ledger(Position(100))
    assert list(ledger.deliver(range(100, 110))) == list(range(100, 110))
    ledger.done(range(101, 110))
    assert ledger.oldest == 100
    assert ledger.position() == position(100, range(101, 110))
    ledger.done([100])
    assert ledger.position() == Position(110)
    assert ledger.oldest is None


def test_what_was_done_beyond_is_skipped_when_it_is_read_again() -> None:
    ledger = Ledger(position(100, [101, 103]))
    assert list(ledger.deliver([100, 101, 102])) == [100, 102]
    ledger.done([100])
    assert ledger.position() == position(102, [103])
    ledger.done([102])
    assert ledger.position() == Position(104)
    assert list(ledger.deliver([103, 104])) == [104]


def test_what_was_done_may_begin_at_the_position() -> None:  # where records before it expired
    ledger = Ledger(position(100, [100, 101, 103]))
    assert ledger.position() == position(102, [103])
    assert list(ledger.deliver([100, 101, 102])) == [102]
    ledger.done([102])
    assert ledger.position() == Position(104)


def test_what_was_not_done_may_be_gone_when_it_is_read_again() -> None:  # compacted, or expired
    ledger = Ledger(position(10, [12, 15]))
    assert list(ledger.deliver([12])) == []
    assert ledger.position() == position(13, [15])
    assert list(ledger.deliver([15, 16])) == [16]
    assert (ledger.oldest, ledger.position()) == (16, Position(16))
    ledger = Ledger(position(10, [12]))
    ledger.pass_to(12)
    assert ledger.position() == Position(13)


def test_holes_are_passed() -> None:
    ledger = Ledger(Position(0))
    ledger.deliver([3, 10, 12])
    assert ledger.position() == Position(3)
    ledger.done([10])
    assert ledger.position() == position(3, [10])
    ledger.done([3])
    assert ledger.position() == Position(12)
    ledger.done([12])
    assert ledger.position() == Position(13)


def test_a_hole_of_any_size_costs_nothing() -> None:
    ledger = Ledger(position(5, [7]))
    ledger.deliver([1 << 60])
    assert ledger.position() == Position(1 << 60)
    ledger.done([1 << 60])
    ledger.pass_to(1 << 61)
    assert ledger.position() == Position(1 << 61)


def test_what_was_passed_over_is_not_committed_while_something_before_it_is_in_flight() -> None:
    ledger = Ledger(Position(0))
    ledger.deliver([0, 1])
    ledger.pass_to(50)
    ledger.done([1])
    assert ledger.position() == position(0, [1])
    with pytest.raises(Misused, match="offset 49 was delivered after 49"):
        ledger.deliver([49])
    ledger.done([0])
    assert ledger.position() == Position(50)


def test_intake_stops_at_the_span() -> None:
    ledger = Ledger(Position(0))
    assert ledger.fits(range(7, 7 + 2 * SPAN)) == SPAN
    ledger.deliver(range(7, 7 + SPAN))
    assert ledger.limit == 7 + SPAN
    assert ledger.fits([7 + SPAN]) == 0
    with pytest.raises(Misused, match="offset 20007 is over 20000 past 7, the oldest not done"):
        ledger.deliver([7 + SPAN])
    ledger.done([7])
    assert ledger.fits([7 + SPAN, 9 + SPAN]) == 1
    assert ledger.fits([]) == 0


def test_without_anything_in_flight_there_is_no_limit() -> None:
    assert Ledger(Position(0)).limit is None


def test_two_far_apart_do_not_fit_at_once() -> None:
    assert Ledger(Position(0)).fits([5, 6, 5 + SPAN]) == 2


@pytest.mark.parametrize(
    ("offsets", "why"),
    [
        ([10], "nothing past 9 was delivered"),
        ([5], "it is a hole in the log"),
        ([3, 4, 3], "named twice"),
        ([0], "it is done already"),
        ([-1], "it is done already"),
        ([-7], "it is done already"),
    ],
)
def test_what_cannot_be_done_raises_and_marks_nothing(offsets: list[int], why: str) -> None:
    ledger = Ledger(Position(0), "agent-traces/3")
    ledger.deliver([0, 1, 2, 3, 4, 6, 7, 8, 9])
    ledger.done([0])
    before = ledger.position()
    for call in (ledger.done, ledger.preview):
        with pytest.raises(Misused, match=f"^agent-traces/3: offset {offsets[-1]} cannot be done: .*{why}"):
            call(offsets)
        assert ledger.position() == before
        assert ledger.in_flight == 8


@pytest.mark.parametrize("offsets", [[5, 5], [7, 6], [4, 9], [5, 8, 7, 9]])
def test_deliveries_out_of_order_raise(offsets: list[int]) -> None:
    ledger = Ledger(Position(5))
    with pytest.raises(Misused, match=r"not ascending|was delivered after 4"):
        ledger.deliver(offsets)


@pytest.mark.parametrize("start", [Position(-1), Position(3, -1), Position(3, 1 << SPAN)])
def test_no_ledger_starts_at_what_is_no_position(start: Position) -> None:
    with pytest.raises(Misused):
        Ledger(start)


def test_only_what_is_done_can_have_been_committed() -> None:
    ledger = Ledger(Position(10))
    ledger.deliver(range(10, 20))
    planned = ledger.preview([10, 11, 15])
    assert planned == position(12, [15])
    assert ledger.position() == Position(10)
    with pytest.raises(Misused, match="not all done"):
        ledger.commit(planned)
    ledger.done([10, 11, 15, 16])
    ledger.commit(planned)
    assert ledger.committed == planned
    with pytest.raises(Misused, match="not all done"):
        ledger.commit(position(12, [14]))
    with pytest.raises(Misused, match="after 12"):
        ledger.commit(Position(11))


def test_any_position_can_be_logged() -> None:
    assert repr(Position(5, 6)) == "Position(5, 0x6)"
    assert len(repr(Position(5, (1 << SPAN) - 1))) < 5100


@given(st.integers(0, 1 << 62), st.integers(0, (1 << 200) - 1), st.integers(0, 220), st.integers(0, 30))
def test_a_position_knows_what_it_covers(offset: int, beyond: int, at: int, length: int) -> None:
    found = Position(offset, beyond)
    ranges = list(found.ranges())
    assert all(first <= last for first, last in ranges)
    assert all(left[1] + 1 < right[0] for left, right in pairwise(ranges))
    done = all_of(found)
    assert position(offset, sorted(done)) == found
    assert found.end == max(done, default=offset - 1) + 1
    first = max(offset - 10 + at, 0)
    wanted = range(first, first + length + 1)
    assert found.covers(first, first + length) == all(each < offset or each in done for each in wanted)
    assert found.covers(first) == (first < offset or first in done)


class Deliveries(RuleBasedStateMachine):
    """A log with holes, read by one epoch after another; the model keeps plain sets."""

    @initialize(start=st.integers(0, 1000), gaps=st.lists(st.sampled_from([1, 1, 1, 1, 2, 7, 30, SPAN - 1, SPAN])))
    def begin(self, start: int, gaps: list[int]) -> None:
        self.ledger = Ledger(Position(start))
        self.log: list[int] = []
        at = start
        for gap in gaps * 20:
            at += gap
            self.log.append(at - 1)
        self.read = 0  # how many records of the log this epoch has read
        self.flying: set[int] = set()
        self.fate: set[int] = set()
        self.committed: tuple[Position, set[int]] = (Position(start), set())

    @rule(most=st.integers(1, 300), as_range=st.booleans())
    def deliver(self, most: int, as_range: bool) -> None:
        chunk: Sequence[int] = self.log[self.read : self.read + most]
        chunk = chunk[: self.ledger.fits(chunk)]
        if not self.flying and self.read < len(self.log):
            assert chunk, "nothing is in flight and nothing may be taken"
        if as_range and chunk and chunk[-1] - chunk[0] + 1 == len(chunk):
            chunk = range(chunk[0], chunk[-1] + 1)
        taken = list(self.ledger.deliver(chunk))
        assert taken == [each for each in chunk if each not in self.fate]
        self.flying.update(taken)
        self.read += len(chunk)

    @precondition(lambda self: self.flying)
    @rule(data=st.data(), share=st.floats(0, 1))
    def done(self, data: st.DataObject, share: float) -> None:
        some = data.draw(st.permutations(sorted(self.flying)))[: round(share * len(self.flying))]
        planned = self.ledger.preview(some)
        self.ledger.done(some)
        assert self.ledger.position() == planned
        self.flying.difference_update(some)
        self.fate.update(some)
        if data.draw(st.booleans()):
            self.ledger.commit(planned)
            self.committed = (planned, set(self.fate))

    @rule()
    def pass_over(self) -> None:
        """The consumer stands before its next record, behind which nothing of its own is left."""
        if self.read < len(self.log):
            self.ledger.pass_to(self.log[self.read])

    @rule()
    def take_over(self) -> None:
        where, fate = self.committed
        self.ledger = Ledger(where)
        self.fate = set(fate)
        self.flying = set()
        self.read = len([each for each in self.log if each < where.offset])

    @invariant()
    def holds(self) -> None:
        if not hasattr(self, "ledger"):
            return
        found = self.ledger.position()
        assert self.ledger.in_flight == len(self.flying)
        assert self.ledger.oldest == (min(self.flying) if self.flying else None)
        assert found.end - found.offset <= SPAN
        assert all_of(found) <= self.fate, "claims what has no fate"
        assert {each for each in self.log if each < found.offset} <= self.fate, "claims what has no fate"
        assert all(found.covers(each) for each in self.fate), "forgets a fate"


TestDeliveries = Deliveries.TestCase
TestDeliveries.settings = settings(stateful_step_count=30)
