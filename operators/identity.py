"""Identity of bullets: derived from section and canonical key, so two curators that find one lesson find one bullet."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from hashlib import blake2b

_SPACE = re.compile(r"\s+")
_SLUGS = {
    "strategies_and_insights": "str",
    "formulas_and_calculations": "calc",
    "code_snippets_and_templates": "code",
    "common_mistakes_to_avoid": "err",
    "problem_solving_heuristics": "prob",
    "context_clues_and_indicators": "ctx",
    "others": "misc",
}

SECTIONS = (
    "STRATEGIES & INSIGHTS",
    "FORMULAS & CALCULATIONS",
    "CODE SNIPPETS & TEMPLATES",
    "COMMON MISTAKES TO AVOID",
    "PROBLEM-SOLVING HEURISTICS",
    "CONTEXT CLUES & INDICATORS",
    "OTHERS",
)
"""ACE's default sections, in the order they are shown (arXiv 2510.04618)."""


# What Unicode calls controls, formats, separators, surrogates and private; a table of our own, for Python's grows with
# each version, and the same traces must teach the same bytes on all of them.
_UNPRINTABLE = re.compile(
    "[\0-\x1f\x7f-\xa0\xad\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u1680\u180e\u2000-\u200f\u2028-\u202f\u205f-\u206f"
    "\u3000\ud800-\uf8ff\ufeff\ufff9-\ufffb\ufffe\uffff\U000110bd\U000110cd\U00013430-\U0001343f\U0001bca0-\U0001bca3"
    "\U0001d173-\U0001d17a\U000e0000-\U000e00ff\U000e01f0-\U0010ffff]"
)


def is_printable(text: str) -> bool:
    """Whether all of ``text`` can be seen on a line of text, in the same way on every Python."""
    return _UNPRINTABLE.search(text) is None


def printable(text: str) -> str:
    """The text with a space for each character that cannot be seen."""
    return _UNPRINTABLE.sub(" ", text)


def one_line(text: str) -> str:
    """Fold every run of white space, line breaks of any kind included, to one space."""
    return _SPACE.sub(" ", text).strip()


@lru_cache(1 << 13)
def normalise(text: str) -> str:
    """The form in which two wordings of a bullet count as the same text: NFKC, case and white space folded."""
    return one_line(unicodedata.normalize("NFKC", text)).casefold().rstrip(" .!;:,")


@lru_cache(1 << 10)
def section_key(section: str) -> str:
    """ACE's key of a section header: lower case, spaces and hyphens to ``_``, ``&`` to ``and``."""
    return one_line(section).rstrip(" :").casefold().replace("&", "and").replace("-", "_").replace(" ", "_")


def section_slug(section: str) -> str:
    """The letters before a display id's number: ACE's for its own sections, else up to four letters of the key."""
    key = section_key(section)
    letters = "".join(c for c in key if "a" <= c <= "z")
    return _SLUGS.get(key) or letters[:4] or "misc"


@lru_cache(1 << 13)  # one lesson is met many times: by each copy of its insight, in window after window
def identity(section: str, content: str, key: str = "") -> str:
    """The identity (20 hex digits) of the bullet with this section and canonical key, or text where there is no key."""
    canonical = f"k\x1f{key}" if key else f"t\x1f{normalise(content)}"
    digest = blake2b(f"{section_key(section)}\x1f{canonical}".encode("utf-8", "surrogatepass"), digest_size=10)
    return digest.hexdigest()
