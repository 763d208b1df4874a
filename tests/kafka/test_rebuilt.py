"""Updates rebuilt of entries: those of a store's log give its version files again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from operators.wire import encode
from stream.kafka.messages import encode_delta, made_of
from stream.kafka.rebuilt import Chain, VersionsMissing, decode_head, needed
from stream.states import entries
from stream.store import Store
from tests.stream.logs import Log
from tests.stream.running import tracecomb

LOG = Log(count=1_000, prompts=1, named=tuple(f"err-{number:05}" for number in range(1, 6)), bare=True)
PROMPT = "shop/0"
SOURCE = "agent-traces/0"


@pytest.fixture(scope="module", params=[False, True], ids=["plain", "counters"])
def at(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with 100 windows, so with folds and snapshots, an import and a rollback; not to be changed."""
    folder = tmp_path_factory.mktemp("rebuilt")
    config = folder / "c.toml"
    config.write_text(f"[text]\ncounters = {json.dumps(request.param)}\n")
    log = LOG.write(folder / "log.jsonl")
    first, book = folder / "first.jsonl", folder / "book.md"
    first.write_bytes(b"".join(log.read_bytes().splitlines(keepends=True)[:300]))
    book.write_text("- Ask before you refund\n")
    for command in (
        f"replay {first} --batch-size 10",
        f"import {book} --prompt {PROMPT}",
        f"rollback {PROMPT} --to 7",
        f"replay {log} --batch-size 10",
    ):
        tracecomb(*command.split(), "--at", folder / "store", "--config", config).succeeded()
    return folder / "store"


@pytest.fixture
def values(at: Path) -> list[bytes]:
    """The entries of its versions as they would stand in prompt-deltas, each trace at an offset of its own."""
    found, offset = [], 0
    with Store.open(at, write=False) as store:
        for entry in entries(store.prompt(PROMPT)):
            offsets = range(offset, offset + len(entry.traces)) if entry.kind == "window" else range(0)
            offset += len(offsets)
            found.append(encode_delta(made_of(entry, SOURCE, offsets)))
    return found


def published(at: Path, version: int) -> dict[str, Any]:
    """What the store has of a version, but for what it says of places."""
    path = at / "prompts" / "shop%2f0" / "versions" / f"{version:08}.json"
    return placeless(json.loads(path.read_bytes()))


def placeless(update: dict[str, Any]) -> dict[str, Any]:
    update["learned"].pop("offsets", None)
    update.pop("lineage")
    return update


def test_every_version(at: Path, values: list[bytes]) -> None:
    assert len(values) == 102
    chain = Chain(PROMPT, "mine")
    for version, value in enumerate(values, 1):
        assert chain.add(value).version == chain.version == version
        update = chain.update()
        assert update.lineage == "mine"
        assert placeless(json.loads(encode(update))) == published(at, version)
        before = version if version <= 30 else version - 2  # the import and the rollback have no traces
        window = {SOURCE: [((before - 1) * 10, before * 10 - 1)]}
        assert update.learned.offsets == ({} if version in (31, 32) else window)


def test_from_the_last_entry_that_needs_none_before(at: Path, values: list[bytes]) -> None:
    heads = [decode_head(value) for value in values]
    begins = [head.version for head in heads if head.begins]
    assert begins[:2] == [1, 32]  # the rollback
    assert 50 in begins
    for version in (1, 31, 32, 33, 49, 50, 51, 101, 102):
        kept: list[bytes] = []
        for at_once in range(0, version, 7):  # as records come in: some at a time
            stretch = slice(at_once, min(at_once + 7, version))
            kept = needed(kept, zip(heads[stretch], values[stretch], strict=True))
        assert decode_head(kept[0]).version == max(each for each in begins if each <= version)
        chain = Chain(PROMPT, "")
        for value in kept:
            chain.add(value)
        assert placeless(json.loads(encode(chain.update()))) == published(at, version)


def test_a_gap_is_seen(values: list[bytes]) -> None:
    chain = Chain(PROMPT, "")
    chain.add(values[0])
    with pytest.raises(VersionsMissing, match="version 3 of 'shop/0' comes after version 1"):
        chain.add(values[2])
    with pytest.raises(VersionsMissing, match="version 1 of 'shop/0' comes after version 1"):
        chain.add(values[0])
    with pytest.raises(VersionsMissing, match="version 2 of 'shop/0' comes after version 0"):
        Chain(PROMPT, "").add(values[1])


def test_what_is_no_version() -> None:
    for record in (b'{"kind":"answer","version":3}', b'{"kind":"fates"}', b'{"else":1}'):
        assert not decode_head(record).is_version
    head = decode_head(b'{"version":2,"kind":"import","snapshot":null}')
    assert (head.is_version, head.begins) == (True, False)
