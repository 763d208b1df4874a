"""Which playbook formats there are, which one a file is in, and reading and writing them by name."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from operators.values import Bullet
from stream.formats import ace, appworld, markdown, skillbook, update
from stream.formats.decode import decode, parse_json
from stream.formats.imported import FormatError, Imported
from stream.formats.regions import BEGIN

FORMATS = ("ace", "ace-json", "appworld", "json", "markdown", "skillbook", "text")
"""Names of the formats; each can be read and written. ``text`` is what agents get, ``json`` our prompt update."""

_JSON = ("ace-json", "json", "skillbook")
_MARKER = re.compile(f"^{re.escape(BEGIN)}[ \t\r]*$", re.MULTILINE)
_WITH_COUNTERS = re.compile(
    r"^[ \t]*(?:[-*][ \t]+)?\[[^\]\n]+\][ \t]*helpful=[0-9]+[ \t]*harmful=[0-9]+[ \t]*::", re.MULTILINE
)
_WITH_ID = re.compile(r"^[ \t]*(?:[-*][ \t]+)?\[(?:␛[^\]\n]*|[^\W\d][^\]\s]*-[0-9]+)\](?:[ \t\r]|$)", re.MULTILINE)
_LIST_ITEM = re.compile(r"^[ \t]{0,3}(?:[-*+]|[0-9]{1,9}[.)])[ \t]+[^\[\s]", re.MULTILINE)
_MARKDOWN = re.compile(r"^[ \t]{0,3}(?:#{1,6}[ \t]|[-*+] |[0-9]{1,9}[.)] )", re.MULTILINE)


def read(data: bytes, name_hint: str | None = None, format: str | None = None) -> Imported:
    """Read a playbook file, whole or not at all.

    :param name_hint: the file's name, which decides where the content could be two formats.
    :param format: one of :data:`FORMATS`; else the content decides.
    :raises FormatError: the bytes are no playbook of that format, or of any.
    """
    text, warnings = decode(data)
    document: Any = None
    if format is None:
        format, document, more = _detect(text, name_hint)
    elif _known(format) in _JSON:
        document, more = parse_json(text)
        if format == "json":
            format = _json_format(document)
    else:
        more = []
    imported = _read(text, document, format)
    repeated = Counter(bullet.id for bullet in imported.bullets if bullet.id)
    more += [
        f"the id {name} is used {times} times: the first keeps it, the others get fresh ids"
        for name, times in repeated.items()
        if times > 1
    ]
    return replace(imported, warnings=(*warnings, *more, *imported.warnings))


def write(
    bullets: Sequence[Bullet],
    format: str,
    *,
    extra: dict[str, Any] | None = None,
    prompt: str = "",
    version: int = 0,
    previous: bytes | None = None,
) -> bytes:
    """Write bullets in a format, in canonical order.

    :param extra: what reading gave in :attr:`Imported.extra` for the same format.
    :param prompt: the prompt's name, and ``version`` its version; only ``json`` has a place for them.
    :param previous: the file that is being replaced. ``markdown`` writes into it and ``skillbook`` keeps what it holds
        besides the bullets, rather than what ``extra`` does; the others do not look at it.
    :raises FormatError: the format is unknown, or ``previous`` or ``extra`` is not of it.
    """
    extra = extra or {}
    match _known(format):
        case "ace":
            return ace.write_text(bullets, extra)
        case "ace-json":
            return ace.write_json(bullets, extra)
        case "json":
            return update.write(bullets, extra, prompt=prompt, version=version)
        case "markdown":
            return markdown.write(bullets, previous)
        case "skillbook":
            return skillbook.write(bullets, _in_file(previous) or extra)
        case _:
            return appworld.write(bullets, extra)


def _in_file(previous: bytes | None) -> dict[str, Any]:
    if previous is None or not previous.strip():
        return {}
    try:
        return read(previous, format="skillbook").extra
    except FormatError as error:
        raise FormatError(f"the file to write into: {error}; write to another file") from None


def detect(data: bytes, name_hint: str | None = None) -> str:
    """Name the format of a file by its content.

    :raises FormatError: it is in none.
    """
    return _detect(decode(data)[0], name_hint)[0]


def _known(format: str) -> str:
    if format not in FORMATS:
        raise FormatError(f"no format {format!r}; there are {', '.join(FORMATS)}")
    return format


def _read(text: str, document: Any, format: str) -> Imported:
    match format:
        case "ace":
            return ace.read_text(text)
        case "ace-json":
            return ace.read_json(document)
        case "json":
            return update.read(document)
        case "markdown":
            return markdown.read(text)
        case "skillbook":
            return skillbook.read(document)
        case _:
            return appworld.read(text, name=format)


def _detect(text: str, name_hint: str | None) -> tuple[str, Any, list[str]]:
    """The format, and for JSON the document with the warnings of parsing it."""
    if _MARKER.search(text):
        return "markdown", None, []
    if _WITH_COUNTERS.search(text):
        return "ace", None, []
    with_id = len(_WITH_ID.findall(text))
    # A person's list may cite [RFC-2119]; a playbook's bullets have ids throughout.
    if with_id and with_id >= len(_LIST_ITEM.findall(text)):
        return "appworld", None, []
    if text.lstrip().startswith(("{", "[")):
        document, warnings = parse_json(text)
        return _json_format(document), document, warnings
    hint = (name_hint or "").lower()
    if hint.endswith((".md", ".markdown")) or _MARKDOWN.search(text):
        # Headers alone are ACE's empty playbook in a .txt, and a document without lists in a .md.
        is_ace = hint.endswith(".txt") and all(line.startswith("##") for line in text.splitlines() if line.strip())
        return ("ace" if is_ace else "markdown"), None, []
    raise FormatError(
        "no playbook in it: neither JSON, nor bullets like `[err-00001] …`, nor Markdown headings and lists;"
        f" name its format with --format ({', '.join(FORMATS)})"
    )


def _json_format(document: Any) -> str:
    if not isinstance(document, dict):
        return "ace-json"
    if isinstance(document.get("skills"), dict) or isinstance(document.get("bullets"), dict):
        return "skillbook"
    if isinstance(document.get("bullets"), list) and "prompt" in document:
        return "json"
    if {"operations", "bullets", "bullet_tags", "playbook"} & set(document):
        return "ace-json"
    raise FormatError(
        "the JSON is no playbook: no `skills`, `bullets` or `operations` in it; a trace log goes to `tracecomb replay`"
    )
