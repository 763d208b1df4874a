"""Prompt names are data: each gets a directory name that is harmless, its own on every file system, and readable.

A directory name has only ``a-z 0-9 _ - .`` and three marks, so neither case folding nor Unicode normalisation can make
two of them one: ``+x`` is a capital X, ``%2f`` is a byte of UTF-8, and ``=`` stands before the hash of a name whose
directory name would be too long, or alone for the empty name.
"""

from __future__ import annotations

import re
from hashlib import blake2b
from string import ascii_lowercase, ascii_uppercase, digits

LIMIT = 120
"""Longest directory name, in bytes; file systems allow 255, encrypted ones as few as 143."""

_KEPT = 80
_PLAIN = frozenset(ascii_lowercase + digits + "_-.")
_CAPITALS = frozenset(ascii_uppercase)
_EMPTY = "="
# Devices of Windows whatever the extension: a store that is copied there must not lose one prompt.
_DEVICE = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\.|$)")
_MARKS = re.compile(r"\+([a-z])|((?:%[0-9a-f]{2})+)|([a-z0-9_.-])")


def canonical(name: str) -> str:
    """A name as JSON hands it on: two surrogates that make up one character become that character."""
    if name.isascii():
        return name
    return name.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def directory_name(name: str) -> str:
    """The directory of a prompt; names that differ (after ``canonical``) get different ones."""
    name = canonical(name)
    marked = [_marked(char) for char in name]
    if name[-1:] == ".":  # Windows drops it
        marked[-1] = "%2e"
    if name[:1] == "." or _DEVICE.match("".join(marked)):  # hidden files, `.` and `..` too
        marked[0] = f"%{ord(name[0]):02x}"
    text = "".join(marked) or _EMPTY
    if len(text) <= LIMIT:
        return text
    return f"{text[:_KEPT]}={blake2b(name.encode('utf-8', 'surrogatepass'), digest_size=16).hexdigest()}"


def prompt_name(directory: str) -> str | None:
    """The prompt whose directory this is; None when the name does not tell (it was too long), or is none of ours."""
    if directory == _EMPTY:
        return ""
    parts: list[str] = []
    at = 0
    while at < len(directory):
        match = _MARKS.match(directory, at)
        if match is None:
            return None
        capital, escaped, plain = match.groups()
        if escaped:
            try:
                parts.append(bytes.fromhex(escaped.replace("%", "")).decode("utf-8", "surrogatepass"))
            except UnicodeDecodeError:
                return None
        else:
            parts.append(plain or capital.upper())
        at = match.end()
    name = "".join(parts)
    return name if directory_name(name) == directory else None


def is_shortened(directory: str) -> bool:
    """Whether a directory name holds a hash in place of the end of its prompt's name."""
    return re.search(r".=[0-9a-f]{32}$", directory) is not None


def _marked(char: str) -> str:
    if char in _PLAIN:
        return char
    if char in _CAPITALS:
        return f"+{char.lower()}"
    return "".join(f"%{byte:02x}" for byte in char.encode("utf-8", "surrogatepass"))
