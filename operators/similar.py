"""Near-duplicates, by rapidfuzz: texts that say the same thing in almost the same words."""

from __future__ import annotations

import re
from collections.abc import Sequence

from rapidfuzz import fuzz, process

from operators.identity import normalise

SAME = 90.0
"""Similarity (0 to 100, of sorted words) from which two texts count as one lesson; ACE merges at 0.90."""
RELATED = 75.0
"""Similarity (0 to 100, of shared words) from which an operation without citations covers an insight."""

# Words that turn a lesson into another one though almost every letter is the same.
_HARD = re.compile(
    r"\d+(?:\.\d+)?|\b(?:not|no|never|without|always|only|before|after|first|last|min|max|minimum|maximum)\b|\w*n't\b"
    r"|`[^`]*`|\b\w+_\w+\b"
)


def hard_tokens(text: str) -> list[str]:
    """What must agree besides the wording: numbers, negations, order words and identifiers."""
    return sorted(_HARD.findall(text.casefold()))


def is_same(left: str, right: str) -> bool:
    """Whether two texts are near-duplicates of each other."""
    one, other = normalise(left), normalise(right)
    if one == other:
        return True
    return fuzz.token_sort_ratio(one, other, score_cutoff=SAME) > 0 and hard_tokens(one) == hard_tokens(other)


class Texts:
    """Texts to look near-duplicates up in, normalised once."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._texts = texts
        self._normal = [normalise(text) for text in texts]

    def same_as(self, text: str) -> int | None:
        """The index of the nearest near-duplicate of ``text``; of equals the first."""
        if not self._normal:
            return None
        wanted = normalise(text)
        found = process.extract(wanted, self._normal, scorer=fuzz.token_sort_ratio, score_cutoff=SAME, limit=5)
        hard = hard_tokens(wanted)
        for candidate, _, index in found:
            if candidate == wanted or hard_tokens(candidate) == hard:
                return int(index)
        return None

    def related_to(self, text: str) -> list[int]:
        """The indexes of all texts that ``text`` plausibly covers."""
        wanted = normalise(text)
        found = process.extract(wanted, self._normal, scorer=fuzz.token_set_ratio, score_cutoff=RELATED, limit=None)
        return sorted(int(index) for _, _, index in found)
