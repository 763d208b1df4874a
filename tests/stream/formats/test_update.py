"""Our own prompt update as a file."""

from __future__ import annotations

import json

import msgspec
import pytest

from operators.text import render
from operators.values import Bullet, Update
from stream.formats import FormatError, read, write

BULLETS = (Bullet("a-1", "A", "x", 1, 2, "0123", "tool|arg", True, True, 4),)


def test_it_is_the_message() -> None:
    update = msgspec.json.decode(write(BULLETS, "json", prompt="p", version=3), type=Update)
    assert update.bullets == BULLETS
    assert (update.prompt, update.version, update.text) == ("p", 3, render(BULLETS))


def test_an_update_keeps_its_other_fields() -> None:
    update = Update(
        "p", 8, 6, "window", True, render(BULLETS), BULLETS, lineage="9f", stats={"n": 1}, at="2026-01-02T03:04:05Z"
    )
    data = msgspec.json.encode(update)
    imported = read(data)
    # What an import does not take: identities are derived anew, pins and evidence are the other prompt's.
    assert imported.bullets == (Bullet("a-1", "A", "x", 1, 2, "", "tool|arg", True),)
    assert imported.warnings == ("1 bullets are pinned in that prompt; pins are not imported",)
    assert json.loads(write(BULLETS, "json", extra=imported.extra, prompt="p", version=8)) == json.loads(data)


def test_fields_of_another_type_are_refused() -> None:
    with pytest.raises(FormatError, match="base"):
        write(BULLETS, "json", extra={"base": "x"})


def test_unknown_fields_and_bad_bullets_do_not_stop_it() -> None:
    imported = read(
        b'{"prompt": "p", "new": 1, "bullets": [{"id": "a-1", "section": "A", "content": "x", "new": 2}, 7]}'
    )
    assert imported.bullets == (Bullet("a-1", "A", "x"),)
    assert [r.where for r in imported.refused] == ["bullets[1]"]
