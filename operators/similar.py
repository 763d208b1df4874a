"""Near-duplicates, by rapidfuzz: texts that say the same thing in almost the same words."""

from __future__ import annotations

import re
from collections.abc import Iterable

from rapidfuzz import fuzz, process

from operators.identity import normalise

SAME = 90.0
"""Similarity (0 to 100, in the order of words) from which two texts count as one lesson; ACE merges at 0.90."""
RELATED = 75.0
"""Similarity (0 to 100, of shared words) from which texts may be about one thing."""

# Words that turn a lesson into another one though almost every letter is the same.
_HARD = re.compile(
    r"\d+(?:\.\d+)?|\b(?:not|no|nor|never|none|neither|cannot|without|avoid|unless|except|until|always|only|before|after"
    r"|first|last|then|min|max|minimum|maximum|least|most|less|more|above|below)\b|\w*n['’]t\b|`[^`]*`|\b\w+_\w+\b"
)


def hard_tokens(text: str) -> list[str]:
    """What must agree besides the wording: numbers, negations, order words and identifiers, as they come."""
    return _HARD.findall(text.casefold())


def is_same(left: str, right: str) -> bool:
    """Whether two texts are near-duplicates of each other."""
    one, other = normalise(left), normalise(right)
    return one == other or (fuzz.ratio(one, other, score_cutoff=SAME) > 0 and _agree(one, other))


def _agree(one: str, other: str) -> bool:
    """Whether like texts say one thing: the very same words in another order may say the opposite."""
    return hard_tokens(one) == hard_tokens(other) and sorted(one.split()) != sorted(other.split())


class Texts:
    """Texts to look near-duplicates up in, normalised once."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._normal = [normalise(text) for text in texts]

    def append(self, text: str) -> None:
        """Take one more text, at the next index."""
        self._normal.append(normalise(text))

    def same_as(self, text: str) -> int | None:
        """The index of the nearest near-duplicate of ``text``; of equals the first."""
        if not self._normal:
            return None
        wanted = normalise(text)
        found = process.extract(wanted, self._normal, scorer=fuzz.ratio, score_cutoff=SAME, limit=50)
        for candidate, _, index in found:
            if candidate == wanted or _agree(candidate, wanted):
                return int(index)
        return None

    def related_to(self, text: str) -> list[int]:
        """The indexes of all texts that share words with ``text``, however few words one of them has."""
        wanted = normalise(text)
        found = process.extract(wanted, self._normal, scorer=fuzz.token_set_ratio, score_cutoff=RELATED, limit=None)
        return sorted(int(index) for _, _, index in found)

    def covered_by(self, text: str) -> list[int]:
        """The indexes of all texts that ``text`` plausibly covers: related ones of which it says over half the words.

        Else a text as general as "the tool" would cover all that speak of a tool.
        """
        said = set(normalise(text).split())
        found = []
        for index in self.related_to(text):
            words = set(self._normal[index].split())
            if 2 * len(words & said) > len(words):
                found.append(index)
        return found
