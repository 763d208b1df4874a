"""Directory names: harmless, distinct on every file system, and, unless too long, telling which prompt they are."""

from __future__ import annotations

import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream.names import LIMIT, canonical, directory_name, is_shortened, prompt_name

NASTY = [
    "",
    ".",
    "..",
    "../../etc",
    "/etc/passwd",
    ".git",
    "a.",
    "a..",
    "CON",
    "con",
    "con.txt",
    "lpt1",
    "a\0b",
    "a\nb",
    "\U0001f600",
    "\ud800",
    "\udcff",
    "\u00e9",
    "e\u0301",
    "support/refunds",
    "Support/Refunds",
    "+support",
    "=",
    "%2f",
    "x" * 300,
    "x" * 301,
    "/" * 300,
    "A" * 120,
    "-rf",
    "~",
    "$HOME",
    " ",
]
texts = st.text(st.characters(codec=None), max_size=200) | st.sampled_from(NASTY) | st.text("aA./%+=", max_size=8)


@pytest.mark.parametrize(
    ("name", "directory"),
    [
        ("support", "support"),
        ("support/refunds", "support%2frefunds"),
        ("Support Bot", "+support%20+bot"),
        ("v1.2_x-y", "v1.2_x-y"),
        ("", "="),
        ("..", "%2e%2e"),
        (".git", "%2egit"),
        ("con.txt", "%63on.txt"),
        ("\u00e9", "%c3%a9"),
    ],
)
def test_a_name_stays_readable(name: str, directory: str) -> None:
    assert directory_name(name) == directory


@given(texts)
def test_a_directory_name_is_harmless(name: str) -> None:
    directory = directory_name(name)
    assert re.fullmatch(r"[a-z0-9_%+=-]([a-z0-9._%+=-]*[a-z0-9_%+=-])?", directory)
    assert len(directory) <= LIMIT
    assert not re.fullmatch(r"(con|prn|aux|nul|com\d|lpt\d)(\..*)?", directory)


@given(texts)
def test_a_directory_name_tells_its_prompt_unless_shortened(name: str) -> None:
    directory = directory_name(name)
    if is_shortened(directory):
        assert len(name) > LIMIT / 13
        assert prompt_name(directory) is None
    else:
        assert prompt_name(directory) == canonical(name)


@given(texts, texts)
def test_different_names_get_different_directories(one: str, other: str) -> None:
    same = directory_name(one) == directory_name(other)
    assert same == (canonical(one) == canonical(other))


def test_nasty_names_stay_apart_on_any_file_system() -> None:
    folded = {unicodedata.normalize("NFC", directory_name(name)).casefold().rstrip(". ") for name in NASTY}
    assert len(folded) == len(NASTY)


def test_what_json_takes_for_one_name_is_one() -> None:
    assert directory_name("\ud83d\ude00") == directory_name("\U0001f600")
    assert canonical("\ud83d\ude00") == "\U0001f600"
    assert canonical("\ude00\ud83d") == "\ude00\ud83d"


@given(st.text(st.characters(codec="ascii"), max_size=20))
def test_foreign_directories_are_no_prompts(directory: str) -> None:
    name = prompt_name(directory)
    assert name is None or directory_name(name) == directory


@pytest.mark.parametrize("directory", ["Support", "%41", "%ff", "+", "%2", ".ds_store", "a.", "", "con", "%2F"])
def test_what_we_would_not_write_is_not_ours(directory: str) -> None:
    assert prompt_name(directory) is None
