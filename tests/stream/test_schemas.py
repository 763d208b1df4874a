"""The schema documents that ship are those of the types, and say what the design says."""

import json

import pytest

from stream.schemas import NAMES, derive, published


@pytest.mark.parametrize("name", NAMES)
def test_the_shipped_schema_is_the_types_own(name: str) -> None:
    assert published(name) == derive(name), "run python -m stream.schemas, and tell in the CHANGELOG what changed"


def test_only_what_a_reader_cannot_do_without_is_required() -> None:
    trace = json.loads(published("trace"))
    assert trace["$defs"]["Trace"].get("required", []) == []
    update = json.loads(published("update"))["$defs"]["Update"]
    assert {"prompt", "version", "base", "kind", "changed", "text", "bullets"} <= set(update["required"])
