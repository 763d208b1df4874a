"""What counts as printable must not depend on the Unicode tables that a Python comes with."""

from __future__ import annotations

import sys
import unicodedata

from operators.identity import is_printable, printable


def test_printable_is_what_this_python_says_of_all_that_it_knows() -> None:
    known = [chr(code) for code in range(sys.maxunicode + 1) if unicodedata.category(chr(code)) not in ("Cn", "Zs")]
    assert [char for char in known if is_printable(char) != char.isprintable()] == []


def test_what_this_python_does_not_know_yet_counts_as_a_letter() -> None:
    assert is_printable("\U0001faef")  # came with Unicode 17
    assert not is_printable("a\u2028b")


def test_what_cannot_be_seen_is_replaced() -> None:
    assert printable("a\u202eb\ud800c") == "a b c"
    assert printable("plain 🙂 text") == "plain 🙂 text"
