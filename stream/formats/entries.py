"""One JSON object to one bullet: the field names and mistakes that the JSON formats share."""

from __future__ import annotations

from typing import Any

from operators.text import MOST
from operators.values import Bullet
from stream.formats.imported import Refused, excerpt

FALLBACK_SECTION = "OTHERS"
_ID_KEYS = ("id", "bullet_id", "skill_id")


class Entries:
    """Bullets, refusals and warnings of one document, gathered in its order."""

    def __init__(self) -> None:
        self.bullets: list[Bullet] = []
        self.refused: list[Refused] = []
        self.warnings: list[str] = []

    def refuse(self, where: str, reason: str, raw: Any) -> None:
        """Keep an entry that is no bullet, with the reason."""
        self.refused.append(Refused(where, reason, excerpt(raw)))

    def add(self, where: str, entry: Any, *, section: str = "") -> None:
        """Take an object with ``content``, and perhaps an id, a section and counts, or refuse it.

        :param section: where an entry that names none belongs.
        """
        if not isinstance(entry, dict):
            self.refuse(where, "not an object", entry)
            return
        content = entry_content(entry)
        if not content.strip():
            self.refuse(where, "no text in `content`", entry)
            return
        named = entry.get("section")
        if isinstance(named, str) and named.strip():
            section = named
        elif not section:
            section = FALLBACK_SECTION
            self.warnings.append(f"{where}: no section, so it was put under {FALLBACK_SECTION}")
        counts = entry.get("metadata") if isinstance(entry.get("metadata"), dict) else entry
        key = entry.get("key")
        self.bullets.append(
            Bullet(
                id=entry_id(entry),
                section=section,
                content=content,
                helpful=self.count(where, counts, "helpful"),
                harmful=self.count(where, counts, "harmful"),
                key=key if isinstance(key, str) else "",
                raw=entry.get("raw") is True,
            )
        )

    def count(self, where: str, entry: Any, name: str) -> int:
        """A count of votes; what is none is 0, with a warning."""
        value = entry.get(name)
        if value is None:
            return 0
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < MOST:
            return value
        self.warnings.append(f"{where}: {name} is {excerpt(value)}, which is no count; it was read as 0")
        return 0


def entry_id(entry: dict[str, Any]) -> str:
    """The id of an entry under any of its names; empty where it has none."""
    for name in _ID_KEYS:
        value = entry.get(name)
        if isinstance(value, str) and value:
            return value
    return ""


def entry_content(entry: dict[str, Any]) -> str:
    """The text of an entry: ``content``, or in Kayba's schema 2 the issue and, on the lines after it, the insight."""
    content = entry.get("content")
    if isinstance(content, str):
        return content
    issue, insight = entry.get("issue"), entry.get("insight")
    parts = [part for part in (issue, insight) if isinstance(part, str) and part.strip()]
    return "\n".join(dict.fromkeys(parts))
