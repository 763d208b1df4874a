"""Say what something is that no reader knows, in words for people and without its content."""

from __future__ import annotations

_FIELDS, _FIELD = 8, 40
_SNIFFED = 8_192

_KINDS = (
    (b"\x89PNG", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"GIF8", "a GIF image"),
    (b"%PDF", "a PDF"),
    (b"PK\x03\x04", "a zip archive"),
    (b"SQLite format 3", "a SQLite database"),
    (b"PAR1", "a Parquet file"),
    (b"ARROW1", "an Arrow file"),
    (b"Obj\x01", "an Avro file"),
    (b"BZh", "packed with bzip2: unpack it first"),
    (b"\xfd7zXZ", "packed with xz: unpack it first"),
    (b"\xff\xfe", "text in UTF-16: convert it to UTF-8 first"),
    (b"\xfe\xff", "text in UTF-16: convert it to UTF-8 first"),
)


def binary(head: bytes) -> str:
    """What a file is whose first bytes cannot be text in UTF-8; empty for one that may be."""
    for magic, what in _KINDS:
        if head.startswith(magic):
            return what
    # JSON has no NUL, but a machine that went down while it wrote JSON may have left some.
    return "not text" if b"\0" in head[:_SNIFFED] and head.lstrip()[:1] not in (b"{", b"[") else ""


def shape(value: object) -> str:
    """What a JSON value is: an object by its fields."""
    if isinstance(value, dict):
        fields = [_plain(str(field)) for field in list(value)[:_FIELDS]]
        more = ", …" if len(value) > _FIELDS else ""
        return f"an object with the fields {', '.join(fields)}{more}" if fields else "an empty object"
    if isinstance(value, list):
        return f"a list that begins with {shape(value[0])}" if value else "an empty list"
    return "text" if isinstance(value, str) else "null" if value is None else "a number or a truth value"


def _plain(field: str) -> str:
    """A field's name, for a terminal: names are data and may hold anything."""
    name = "".join(char if char.isprintable() else "\ufffd" for char in field[:_FIELD])
    return name + "…" if len(field) > _FIELD else name
