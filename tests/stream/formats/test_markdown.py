"""Markdown files: people's text is left alone, lists are bullets, and what we write is read back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from operators.values import Bullet
from stream.formats import FormatError, Imported, read, write

BULLETS = [Bullet("a-1", "Refunds", "Amounts are in cents", 1), Bullet("a-2", "Refunds", "First:\n\n```\n## x\n```")]
REGION = """<!-- tracecomb:begin -->

## Refunds

- Amounts are in cents
- First:

  ```
  ## x
  ```

<!-- tracecomb:end -->
"""
SKILL = """---
name: refunds
description: - not a bullet
---

# Refund skill

Some prose.

## Rules

- Amounts are in cents
- Long lines are
  wrapped
  by editors\\
  or broken
* Another list

### Don't

1. Refund twice
2. Nested:
   - one
   - two

     ```python
     ## not a header
     - not a bullet
     ```

<!-- tracecomb:protect -->
- a person's own note
<!-- tracecomb:unprotect -->

```
- in code
```

Setext heading
--------------
-   Wide mark
- [ ] a task

| table | x |
"""


def read_md(text: str) -> Imported:
    return read(text.encode(), format="markdown")


def test_a_new_file_is_readable() -> None:
    assert write(BULLETS, "markdown").decode() == REGION


def test_a_free_form_file_is_imported() -> None:
    imported = read(SKILL.encode(), "SKILL.md")
    assert imported.format == "markdown"
    assert [(b.section, b.content) for b in imported.bullets] == [
        ("Rules", "Amounts are in cents"),
        ("Rules", "Long lines are wrapped by editors\nor broken"),
        ("Rules", "Another list"),
        ("Rules / Don't", "Refund twice"),
        ("Rules / Don't", "Nested:\n- one\n- two\n\n  ```python\n  ## not a header\n  - not a bullet\n  ```"),
        ("Setext heading", "Wide mark"),
        ("Setext heading", "[ ] a task"),
    ]
    assert imported.warnings == ("line 8 and 2 other places: text outside of lists is no bullet and was left alone",)


def test_a_title_is_the_section_where_there_is_no_other() -> None:
    assert [b.section for b in read_md("- before\n\n# Title\n- x\n## Part\n- y\n# Next\n- z").bullets] == [
        "OTHERS",
        "Title",
        "Part",
        "Next",
    ]


def test_quotes_and_html_are_left_alone() -> None:
    imported = read_md("## A\n> - quoted\n\n<div>\n- raw\n</div>\n\n<!-- a comment -->\n\n- x\n- \n")
    assert [b.content for b in imported.bullets] == ["x"]
    assert "line 2 and 1 other places" in imported.warnings[0]


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_only_the_region_of_a_file_changes(newline: str, mark: str) -> None:
    before = f"{mark}---\nname: x\n---\n\n# Mine\n\n- my own \n\n```\n<!-- tracecomb:begin -->\n```\n\n".replace(
        "\n", newline
    )
    after = "\n\n## After\n- also mine".replace("\n", newline)
    old = "<!-- tracecomb:begin -->\n\n## Old\n\n- old\n\n<!-- tracecomb:end -->".replace("\n", newline)
    written = write(BULLETS, "markdown", previous=(before + old + after).encode()).decode()
    assert written == before + REGION.replace("\n", newline) + after.removeprefix(newline)
    imported = read(written.encode())
    assert [(b.section, b.content) for b in imported.bullets] == [(b.section, b.content) for b in BULLETS]
    assert imported.warnings == ("only what is between the tracecomb markers was read",)
    assert write(BULLETS, "markdown", previous=written.encode()).decode() == written


@pytest.mark.parametrize(
    ("previous", "start"),
    [
        (b"", b""),
        (b"# Mine", b"# Mine\n\n"),
        (b"# Mine\n", b"# Mine\n\n"),
        (b"# M\r\n", b"# M\r\n\r\n"),
        (b"\xe9\n", b"\xe9\n\n"),
    ],
)
def test_a_file_without_markers_gets_the_region_at_its_end(previous: bytes, start: bytes) -> None:
    written = write(BULLETS, "markdown", previous=previous)
    region = REGION.replace("\n", "\r\n") if b"\r" in previous else REGION
    assert written == start + region.encode()
    assert write(BULLETS, "markdown", previous=written) == written


afters = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=20) | st.just("...")


@given(st.text(alphabet=st.sampled_from("ab#-`> \n\r\t\\<!"), max_size=40), afters)
def test_what_is_around_the_region_is_kept_byte_for_byte(before: str, after: str) -> None:
    try:
        written = write(BULLETS, "markdown", previous=before.encode())
    except FormatError:
        assert "```" in before
        return
    assert written.startswith(before.encode())
    again = write(BULLETS[:1], "markdown", previous=written + after.encode())
    assert again.startswith(before.encode())
    assert again.endswith(after.encode())


def test_protected_text_inside_the_region_stays() -> None:
    note = "<!-- tracecomb:protect -->\n## Not a section\n- by hand\n<!-- tracecomb:unprotect -->\n"
    previous = f"<!-- tracecomb:begin -->\n## Old\n- old\n\n{note}<!-- tracecomb:end -->\n"
    written = write(BULLETS, "markdown", previous=previous.encode()).decode()
    assert written == REGION.replace("begin -->\n", f"begin -->\n\n{note}", 1)
    assert [b.content for b in read_md(written).bullets] == [b.content for b in BULLETS]
    assert write(BULLETS, "markdown", previous=written.encode()).decode() == written


@pytest.mark.parametrize(
    ("previous", "message"),
    [
        ("x\n\n<!-- tracecomb:begin -->\n", "line 3: .* never closed"),
        ("<!-- tracecomb:end -->\n", "line 1: .* without its counterpart"),
        ("<!-- tracecomb:begin -->\n<!-- tracecomb:begin -->\n<!-- tracecomb:end -->\n", "line 2: .* counterpart"),
        ("<!-- tracecomb:begin -->\n<!-- tracecomb:end -->\n" * 2, "line 3: a second"),
        ("<!-- tracecomb:protect -->\n", "line 1: .* never closed"),
        ("a\0b", "not UTF-8 text"),
        ("```\ncode", "never closed; close it first"),
    ],
)
def test_a_file_that_could_be_damaged_is_not_written(previous: str, message: str) -> None:
    with pytest.raises(FormatError, match=message):
        write(BULLETS, "markdown", previous=previous.encode())


def test_markers_in_a_protected_part_are_a_persons_text() -> None:
    previous = "<!-- tracecomb:protect -->\n<!-- tracecomb:begin -->\n<!-- tracecomb:unprotect -->\n"
    written = write(BULLETS, "markdown", previous=previous.encode()).decode()
    assert written == f"{previous}\n{REGION}"


def test_protected_text_around_the_region_is_not_repeated() -> None:
    note = "<!-- tracecomb:protect -->\n- by hand\n<!-- tracecomb:unprotect -->\n"
    previous = f"{note}\n{REGION}\n{note}".encode()
    assert write(BULLETS, "markdown", previous=previous) == previous


def test_front_matter_that_is_never_closed_hides_no_region() -> None:
    written = write(BULLETS, "markdown", previous=b"---\nname: x\n")
    assert [b.content for b in read(written).bullets] == [b.content for b in BULLETS]
    again = write(BULLETS, "markdown", previous=written + b"...\n")
    assert again == written + b"...\n"


def test_an_edit_by_hand_inside_the_region_is_read() -> None:
    edited = REGION.replace("- First:", "- Added by hand,\n  on two lines\n- First:").replace(
        "## Refunds", "## Money back"
    )
    assert [(b.section, b.content) for b in read_md(edited).bullets] == [
        ("Money back", "Amounts are in cents"),
        ("Money back", "Added by hand,\non two lines"),
        ("Money back", "First:\n\n```\n## x\n```"),
    ]


@pytest.mark.parametrize(
    ("content", "line"),
    [
        ("---", "- ␛;---"),
        (" x", "- ␛; x"),
        ("a\n", "- ␛;a⏎"),
        ("# x", "- # x"),
        ("- x", "- - x"),
        ("a <!-- tracecomb:end -->", "- a \\<!-- tracecomb:end -->"),
        ("⏎", "- ␛23CE;"),
        ("```\nnever closed", "- ```\n  never closed"),
    ],
)
def test_content_that_markdown_would_take_for_structure(content: str, line: str) -> None:
    written = write([Bullet("a-1", "A", content), Bullet("a-2", "A", "zz")], "markdown").decode()
    assert f"\n{line}\n- zz\n" in written
    assert [b.content for b in read_md(written).bullets] == [content, "zz"]


def test_deep_nesting_swallows_no_other_bullet() -> None:
    deep = "\n".join("  " * n + "- x" for n in range(300))
    bullets = [Bullet("a-1", "A", deep), Bullet("a-2", "A", "after")]
    assert [b.content for b in read_md(write(bullets, "markdown").decode()).bullets] == [deep, "after"]


def test_a_deeply_nested_list_ends_where_it_ends() -> None:
    deep = "\n".join("  " * n + f"- level {n}" for n in range(30))
    assert [b.content[:7] for b in read_md(f"## A\n{deep}\n- after").bullets] == ["level 0", "after"]


def test_no_bullets_leave_an_empty_region() -> None:
    data = write([], "markdown")
    assert data == b"<!-- tracecomb:begin -->\n<!-- tracecomb:end -->\n"
    assert read(data).bullets == ()
