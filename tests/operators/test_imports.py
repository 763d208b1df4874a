"""An import as facts: the same content is the same facts, and nothing in a file overwrites anything."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from operators.facts import EMPTY, Count, Delta, merge
from operators.identity import identity
from operators.imports import LONGEST_ID, import_delta, import_source, proposed_ids
from operators.values import Bullet

bullets = st.lists(
    st.builds(
        Bullet,
        id=st.sampled_from(["", "str-00001", "err-00002"]),
        section=st.sampled_from(["OTHERS", "Others:", "A", ""]),
        content=st.sampled_from(["x", "X.", "y", "", " ", "z\nz"]) | st.text(max_size=5),
        helpful=st.integers(0, 5),
        harmful=st.integers(0, 5),
        key=st.sampled_from(["", "tool|arg"]),
        raw=st.booleans(),
    ),
    max_size=8,
)


def counts(delta: Delta, name: str) -> tuple[int, int]:
    found = [count for count in delta.counts if count.bullet == name]
    return sum(count.helpful for count in found), sum(count.harmful for count in found)


@given(bullets)
def test_ids_and_order_do_not_matter(given: list[Bullet]) -> None:
    renamed = [Bullet("new-1", b.section, b.content, b.helpful, b.harmful, "", b.key, b.raw) for b in reversed(given)]
    assert import_source(renamed) == import_source(given)
    assert import_delta(renamed) == import_delta(given)


@given(bullets)
def test_importing_twice_changes_nothing(given: list[Bullet]) -> None:
    delta = import_delta(given)
    assert merge(delta, import_delta(given)) == delta


@given(bullets)
def test_every_bullet_with_text_is_alive_and_shows_a_text(given: list[Bullet]) -> None:
    delta = import_delta(given)
    alive = {fact.bullet for fact in delta.evidence}
    assert alive == {fact.bullet for fact in delta.texts}
    assert alive >= {identity(b.section, b.content, b.key) for b in given if b.content.strip(" .!;:,\n") == "x"}
    assert {count.bullet for count in delta.counts} <= alive
    assert {fact.trace for fact in delta.evidence} <= {import_source(given)}
    assert sorted(fact.number for fact in delta.evidence) == list(range(1, len(alive) + 1))


def test_two_imports_with_one_bullet_add_up() -> None:
    name = identity("OTHERS", "x")
    first = import_delta([Bullet("", "OTHERS", "x", 3, 1)])
    second = import_delta([Bullet("", "OTHERS", "x", 2, 0), Bullet("", "OTHERS", "y")])
    assert counts(merge(first, second), name) == (5, 1)


def test_the_same_insight_twice_in_one_file_is_one_bullet_with_all_votes() -> None:
    given = [Bullet("a-1", "OTHERS", "Check the date.", 5, 0), Bullet("a-2", "others", "check the DATE", 2, 1)]
    delta = import_delta(given)
    assert delta.counts == {Count(identity("OTHERS", "check the date"), import_source(given), 7, 1)}
    assert len(delta.evidence) == 1
    assert {text.content for text in delta.texts} == {"Check the date.", "check the DATE"}


def test_another_text_or_count_is_another_import() -> None:
    base = import_source([Bullet("", "A", "x", 1)])
    assert base.startswith("import:")
    assert len({base, import_source([Bullet("", "A", "x", 2)]), import_source([Bullet("", "A", "y", 1)])}) == 3


def test_every_wording_is_part_of_an_import() -> None:
    sources = {import_source([Bullet("", "A", "x"), Bullet("", "A", wording)]) for wording in ("x", "X", "x.", " x")}
    assert len(sources) == 4


def test_nothing_makes_nothing() -> None:
    assert import_delta([]) == EMPTY
    assert import_delta([Bullet("a-1", "A", " \n", 9)]) == EMPTY
    assert not import_delta([])


def test_an_id_used_twice_stays_with_the_first() -> None:
    given = [Bullet("str-00001", "A", "x"), Bullet("str-00001", "A", "y"), Bullet("str-00002", "A", "X")]
    assert proposed_ids(given) == {identity("A", "x"): "str-00001"}


def test_ids_that_no_line_can_hold_are_not_kept() -> None:
    odd = ["", " a-1", "a\n-1", "a]-1", "⏎-1", "a-" + "9" * 10, "a" * LONGEST_ID + "-1", "\u2028-1"]
    assert proposed_ids([Bullet(name, "A", str(n)) for n, name in enumerate(odd)]) == {}
    kept = ["my-skill", "a-000000000000001", "process_management-00012", "名前-1"]
    assert list(proposed_ids([Bullet(name, "A", str(n)) for n, name in enumerate(kept)]).values()) == kept
