"""Rejects: each bad line once, whatever is in it, and however a run ended."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream.rejects import RejectRecord
from stream.store import Store
from stream.storeerrors import StoreDamaged, StoreReadOnly
from tests.stream.crashing import Unsynced, abandon, reject

records = st.builds(
    RejectRecord,
    file=st.text(st.characters(codec=None), max_size=20) | st.sampled_from(["a", "b"]),
    line=st.integers(1, 3),
    reason=st.text(st.characters(codec=None), max_size=20),
    raw=st.binary(max_size=20) | st.sampled_from([b"", b"x", b"\xed\xa0\x80", b"\xe2\x80\xa8", b"a\nb", b"\0"]),
)


def writer(root: Path) -> Store:
    return Store.open(root, write=True, create=True, disk=Unsynced())


def lines(root: Path) -> list[bytes]:
    return (root / "rejects.jsonl").read_bytes().splitlines()


@given(found=st.lists(records, max_size=30), flushes=st.sets(st.integers(0, 30)))
def test_each_once(tmp_path_factory: pytest.TempPathFactory, found: list[RejectRecord], flushes: set[int]) -> None:
    root = tmp_path_factory.mktemp("rejects") / "store"
    kept: dict[tuple[bytes, int, bytes], RejectRecord] = {}
    with writer(root) as store:
        for number, record in enumerate(found):
            # What JSON hands on: two surrogates that make up one character are that character.
            identity = record.file.encode("utf-16", "surrogatepass"), record.line, record.raw
            assert store.rejects.add(record) == (identity not in kept)
            kept.setdefault(identity, record)
            assert store.rejects.count == len(kept)
            if number in flushes:
                store.rejects.flush()
    with Store.open(root, write=False) as reader:
        read = list(reader.rejects.records())
        assert reader.rejects.count == len(kept)
    assert [(record.line, record.raw) for record in read] == [(record.line, record.raw) for record in kept.values()]
    for one, other in zip(read, kept.values(), strict=True):
        assert one.reason.encode("utf-16", "surrogatepass") == other.reason.encode("utf-16", "surrogatepass")
    with writer(root) as store:
        assert not any(store.rejects.add(record) for record in found)
        assert store.rejects.count == len(kept)


def test_what_a_record_looks_like(tmp_path: Path) -> None:
    root = tmp_path / "store"
    with writer(root) as store:
        store.rejects.add(RejectRecord(file="a.jsonl", line=7, reason="no JSON", raw="{é".encode()))
        store.rejects.add(RejectRecord(file="a\udcff.jsonl", line=8, reason="not UTF-8", raw=b"\xff"))
    first, second = map(json.loads, lines(root))
    digest = first.pop("digest")
    assert len(digest) == 32
    assert first == {"schema": 1, "file": "a.jsonl", "line": 7, "reason": "no JSON", "raw": "{é"}
    assert second["file"] == "a\udcff.jsonl"
    assert (second["raw"], second["encoding"]) == ("/w==", "base64")
    assert "é" in lines(root)[0].decode()


def test_many_are_written_before_they_fill_the_memory(tmp_path: Path) -> None:
    with writer(tmp_path / "store") as store:
        for number in range(3):
            store.rejects.add(RejectRecord(file="a", line=number, reason="long", raw=b"x" * 400_000))
        assert len(lines(tmp_path / "store")) == 3
        for number in range(1000):
            store.rejects.add(reject(number))
        assert len(lines(tmp_path / "store")) == 1003


def test_a_checkpoint_is_never_ahead_of_the_rejects(tmp_path: Path) -> None:
    store = writer(tmp_path / "store")
    store.rejects.add(reject(1))
    store.write_checkpoint(b"1")
    store.rejects.add(reject(2))
    abandon(store)
    with writer(tmp_path / "store") as again:
        assert again.rejects.count == 1
        assert not again.rejects.add(reject(1))
        assert again.rejects.add(reject(2))


@pytest.mark.parametrize("tail", [b'{"schema":1,"fi', b"\0" * 700, b"\0" * 50 + b"\n", b"{}\n", b'"x"\n{"a'])
def test_a_torn_tail_is_cut_off(tmp_path: Path, tail: bytes) -> None:
    root = tmp_path / "store"
    store = writer(root)
    for number in range(50):
        store.rejects.add(reject(number))
    store.rejects.flush()
    whole = (root / "rejects.jsonl").read_bytes()
    abandon(store)
    (root / "rejects.jsonl").write_bytes(whole + tail)
    if b"\n" not in tail:
        with Store.open(root, write=False) as reader:
            assert reader.rejects.count == 50
    with writer(root) as store:
        assert store.rejects.count == 50
        assert (root / "rejects.jsonl").read_bytes() == whole
        assert not store.rejects.add(reject(49))
        assert store.rejects.add(reject(50))


def test_a_bad_line_after_a_clean_end_is_damage(tmp_path: Path) -> None:
    root = tmp_path / "store"
    with writer(root) as store:
        store.rejects.add(reject(1))
    with (root / "rejects.jsonl").open("ab") as file:
        file.write(b"{}\n")
    with pytest.raises(StoreDamaged, match=r"rejects\.jsonl is damaged: the line at byte \d+"):
        writer(root)


@pytest.mark.parametrize("damage", ["missing", "zeros", "older", "another's"])
def test_the_index_is_built_anew(tmp_path: Path, damage: str) -> None:
    root, other = tmp_path / "store", tmp_path / "other"
    older = b""
    for place, first in ((root, 0), (other, 1000)):
        with writer(place) as store:
            for number in range(first, first + 40):
                store.rejects.add(reject(number))
            store.rejects.flush()
            older = (place / "rejects.idx").read_bytes() if place == root else older
            for number in range(first + 40, first + 100):
                store.rejects.add(reject(number))
    index = root / "rejects.idx"
    whole = index.read_bytes()
    if damage == "missing":
        index.unlink()
    else:
        another = (other / "rejects.idx").read_bytes()
        index.write_bytes({"zeros": bytes(len(whole)), "older": older, "another's": another}[damage])
    with writer(root) as store:
        assert store.rejects.count == 100
        assert not any(store.rejects.add(reject(number)) for number in range(100))
    assert index.read_bytes() == whole


def test_a_reader_adds_nothing(tmp_path: Path) -> None:
    writer(tmp_path / "store").close()
    with Store.open(tmp_path / "store", write=False) as store, pytest.raises(StoreReadOnly):
        store.rejects.add(reject(1))
