"""What is shown, by other ways than from scratch: one bullet's end, and counts brought up to date."""

from __future__ import annotations

from hypothesis import given

from operators.combine import apply
from operators.facts import Delta, Evidence, Vote, merge
from operators.fold import fold
from operators.playbook import Playbook
from operators.view import chains, recounted, root, roots, shown
from tests.operators.laws.strategies import BULLETS, deltas, known, playbooks

OPEN = ("evidence", "votes", "covered_evidence", "covered_votes")


def touched(delta: Delta) -> set[str]:
    return {fact[0] for field in OPEN for fact in getattr(delta, field)}


@given(playbooks())
def test_the_end_of_one_chain_is_that_of_all(playbook: Playbook) -> None:
    ends = roots(playbook)
    assert {bullet: root(playbook, bullet) for bullet in BULLETS} == {
        bullet: ends.get(bullet, bullet) for bullet in BULLETS
    }
    assert {bullet: end for end, members in chains(playbook).items() for bullet in members} == ends


@given(playbooks(), deltas(*OPEN), deltas("votes"), deltas())
def test_counts_brought_up_to_date_are_those_from_scratch(
    playbook: Playbook, delta: Delta, ballots: Delta, anything: Delta
) -> None:
    old = apply(playbook, known())
    for news in (delta, ballots, anything):
        new = apply(old, news)
        again = recounted(tuple(shown(old).values()), old, new, touched(news))
        assert again is None or {bullet.bullet: bullet for bullet in again} == shown(new)
        old = new


def test_evidence_that_is_covered_may_end_a_bullet() -> None:
    old = apply(Playbook(), known())
    cover = Delta(covered_evidence=known(("a",)).evidence)
    assert recounted(tuple(shown(old).values()), old, apply(old, cover), {"a"}) is None


@given(playbooks(), deltas("votes"))
def test_votes_alone_are_always_brought_up_to_date(playbook: Playbook, ballots: Delta) -> None:
    new = apply(playbook, ballots)
    again = recounted(tuple(shown(playbook).values()), playbook, new, touched(ballots))
    assert again is not None
    assert {bullet.bullet: bullet for bullet in again} == shown(new)


@given(playbooks(), deltas("evidence"))
def test_evidence_that_brings_a_bullet_back_is_not_missed(playbook: Playbook, taught: Delta) -> None:
    old = apply(Playbook(), Delta(texts=known().texts))
    new = apply(old, merge(taught, Delta(evidence=frozenset({Evidence("a", "t9", 1, "")}))))
    assert recounted((), old, new, {"a", *touched(taught)}) is None


def test_counts_stay_right_across_a_fold() -> None:
    anchor = apply(apply(Playbook(), known()), Delta(votes=frozenset({Vote("a", "t1", False)})))
    before = apply(anchor, Delta(votes=frozenset({Vote("a", "t2", False)})))
    folded = fold(before, anchor, 1)
    ballots = Delta(votes=frozenset({Vote("a", "t3", True)}))
    after = apply(folded, ballots)
    again = recounted(tuple(shown(before).values()), folded, after, touched(ballots))
    assert again == tuple(shown(after)[bullet.bullet] for bullet in again or ())
