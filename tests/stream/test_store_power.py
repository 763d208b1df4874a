"""After a power cut, all that was promised is there, and a resumed run ends as an undisturbed one."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream.store import Store
from stream.storeerrors import NotAStore
from tests.stream.crashing import Script, Unsynced, abandon, picture
from tests.stream.losing import Cut, Losing

pytestmark = pytest.mark.timeout(600)  # many small files; slow only where disks are

SCRIPT = Script()


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    return SCRIPT.picture(tmp_path_factory.mktemp("undisturbed") / "store")


def cut(place: Path, at: int | None, seed: int) -> tuple[Path, Script, Losing]:
    """Run the script in a directory until the power goes.

    :return: what the cut leaves, the script with its promises, the disk.
    """
    before, after = place / "before", place / "after"
    before.mkdir()
    disk = Losing(before, at)
    script = Script()
    store = None
    try:
        store = Store.open(before / "store", write=True, create=True, disk=disk)
        script.run(store, lambda: disk.calls)
        store.close()
    except Cut:
        if store is not None:
            abandon(store)
    disk.leave(after, seed)
    return after / "store", script, disk


def check(place: Path, at: int, seed: int, undisturbed: dict[str, bytes]) -> None:
    """Cut the power, look for all that was promised, and run on to the end."""
    left, script, _ = cut(place, at, seed)
    try:
        with Store.open(left, write=False) as store:
            versions = script.check(store)
            checkpoint = int(store.checkpoint() or 0)
    except NotAStore:
        versions, checkpoint = {}, 0
    for _, name, number in script.promised:
        if name == "checkpoint":
            assert checkpoint >= number
        else:
            assert versions[name] >= number
    with Store.open(left, write=True, create=True, disk=Unsynced()) as store:
        assert store.rejects.count >= 2 * checkpoint
        script.run(store)
    assert picture(left) == undisturbed


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Losing:
    """The disk of a run without a cut."""
    return cut(tmp_path_factory.mktemp("whole"), None, 0)[2]


@given(share=st.floats(0, 1), seed=st.integers(0, 2**32))
def test_what_was_promised_survives_a_power_cut(
    tmp_path_factory: pytest.TempPathFactory, undisturbed: dict[str, bytes], whole: Losing, share: float, seed: int
) -> None:
    check(tmp_path_factory.mktemp("power"), int(share * whole.calls), seed, undisturbed)


def test_a_cut_after_a_rename_or_in_the_middle_of_a_write(
    tmp_path_factory: pytest.TempPathFactory, undisturbed: dict[str, bytes], whole: Losing
) -> None:
    for at in whole.moments:
        for seed in range(8):
            check(tmp_path_factory.mktemp("rename"), at, seed, undisturbed)
