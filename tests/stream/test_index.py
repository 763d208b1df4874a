"""The index of ids: finds what was put in, in bytes that depend on the set alone, and knows when it is not right."""

from __future__ import annotations

import os
import random
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream.atomic import Disk
from stream.index import IdIndex, IndexPool, key

# Keys whose first bytes collide make long runs of slots, also at the end of the table.
keys = st.one_of(
    st.binary(min_size=16, max_size=16).filter(any),
    st.builds(
        lambda first, rest: first * 8 + rest, st.sampled_from([b"\xff", b"\x80"]), st.binary(min_size=8, max_size=8)
    ),
)
pairs = st.tuples(keys, st.binary(min_size=8, max_size=8))
HEADER, ENTRY = 96, 24


def make(path: Path, batches: list[list[tuple[bytes, bytes]]]) -> IdIndex:
    path.unlink(missing_ok=True)
    index = IdIndex.create(Disk(), path)
    for batch in batches:
        index.insert(batch, 7, b"a" * 16)
    return index


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("index")


@given(batches=st.lists(st.lists(pairs, max_size=60), max_size=6), others=st.lists(keys, max_size=20))
def test_like_a_dict(place: Path, batches: list[list[tuple[bytes, bytes]]], others: list[bytes]) -> None:
    index = make(place / "dict", batches)
    model: dict[bytes, bytes] = {}
    for batch in batches:
        for wanted, digest in batch:
            model.setdefault(wanted, digest)
    asked = [*others, *model]
    assert index.find(asked) == [model.get(wanted) for wanted in asked]
    assert index.count == len(model)
    assert index.sound()
    index.close()
    again = IdIndex.open(Disk(), place / "dict")
    assert again is not None
    assert again.sound()
    assert again.find(asked) == [model.get(wanted) for wanted in asked]
    again.close()


@given(found=st.dictionaries(keys, st.binary(min_size=8, max_size=8), max_size=150), seed=st.integers())
def test_the_bytes_depend_on_the_set_alone(place: Path, found: dict[bytes, bytes], seed: int) -> None:
    make(place / "one", [list(found.items())]).close()
    shuffled = list(found.items())
    random.Random(seed).shuffle(shuffled)
    repeated = [[pair, pair] for pair in shuffled] + [shuffled]
    make(place / "two", repeated).close()
    assert (place / "one").read_bytes() == (place / "two").read_bytes()


@given(found=st.sets(keys, min_size=1, max_size=80), at=st.floats(0, 1, exclude_max=True), bit=st.integers(0, 7))
def test_a_changed_bit_anywhere_shows(place: Path, found: set[bytes], at: float, bit: int) -> None:
    path = place / "bit"
    make(path, [[(wanted, bytes(8)) for wanted in found]]).close()
    damaged = bytearray(path.read_bytes())
    where = int(at * len(damaged))
    damaged[where] ^= 1 << bit
    path.write_bytes(damaged)
    index = IdIndex.open(Disk(), path)
    padding = 80 <= where < HEADER
    assert padding or index is None or not index.sound()
    if index is not None:
        index.close()


@pytest.mark.parametrize("change", ["cut", "zeros", "longer", "empty", "foreign", "other format"])
def test_a_damaged_file_shows(tmp_path: Path, change: str) -> None:
    path = tmp_path / "index"
    make(path, [[(key(str(n)), bytes(8)) for n in range(500)]]).close()
    data = path.read_bytes()
    changed = {
        "cut": data[: len(data) // 2],
        "zeros": data[:4096] + bytes(4096) + data[8192:],
        "longer": data + b"x",
        "empty": b"",
        "foreign": b"SQLite format 3\0" + data[16:],
        "other format": data[:8] + b"\2" + data[9:],
    }[change]
    path.write_bytes(changed)
    index = IdIndex.open(Disk(), path)
    assert index is None or not index.sound()
    if index is not None:
        index.close()


def test_there_is_none(tmp_path: Path) -> None:
    assert IdIndex.open(Disk(), tmp_path / "index") is None
    assert not (tmp_path / "index").exists()


def test_any_string_has_a_key() -> None:
    strings = ["", "a", "A", "\ud800", "\udc00", "\0", "\u00e9", "e\u0301", "x" * 10**6]
    assert len({key(text) for text in strings}) == len(strings)
    assert {len(key(text)) for text in strings} == {16}


@pytest.mark.parametrize("count", [0, 1, 32, 33, 1000])
def test_the_table_is_at_most_half_full(tmp_path: Path, count: int) -> None:
    make(tmp_path / "index", [[(key(str(n)), bytes(8)) for n in range(count)]]).close()
    slots = (os.path.getsize(tmp_path / "index") - HEADER) // ENTRY
    assert 2 * count <= slots <= max(64, 4 * count) + 4


def test_memory_does_not_grow_with_the_ids(tmp_path: Path) -> None:
    index = IdIndex.create(Disk(), tmp_path / "index")
    tracemalloc.start()
    try:
        for number in range(20):
            index.insert([(key(f"{number}-{n}"), bytes(8)) for n in range(500)], number, bytes(16))
        early = tracemalloc.get_traced_memory()[0]
        for number in range(20, 40):
            index.insert([(key(f"{number}-{n}"), bytes(8)) for n in range(500)], number, bytes(16))
        late, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert late < early + 20_000
    assert peak < 2_000_000  # a chunk while growing
    assert index.count == 20_000
    index.close()


def test_a_pool_keeps_few_files_open(tmp_path: Path) -> None:
    pool = IndexPool(limit=3)
    made = {number: make(tmp_path / str(number), [[(key("a"), bytes(8))]]) for number in range(10)}
    for number, index in made.items():
        pool.put(tmp_path / str(number), index)
        if number > 1:
            assert pool.get(tmp_path / "0") is made[0]  # used again and again, so it stays
    assert [number for number in made if pool.get(tmp_path / str(number))] == [0, 8, 9]
    with pytest.raises(OSError, match="Bad file descriptor"):
        made[5].sound()
    pool.close()
    assert pool.get(tmp_path / "9") is None
    with pytest.raises(OSError, match="Bad file descriptor"):
        made[9].sound()
