"""Garbage is looked for less often, and still found."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator

import pytest

from stream.kafka.garbage import collect_seldom


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)
    gc.unfreeze()


class _Node:
    def __init__(self) -> None:
        self.other: object = self


def test_collections_come_less_often_and_leave_out_what_stood_before() -> None:
    before = gc.get_threshold()
    collect_seldom()
    assert gc.isenabled()
    assert all(now >= was for now, was in zip(gc.get_threshold(), before, strict=True))
    assert gc.get_freeze_count() > 0


def test_a_cycle_is_still_found() -> None:
    collect_seldom()
    lost = weakref.ref(_Node())
    kept: list[list[int]] = []
    for _ in range(10 * gc.get_threshold()[0]):
        if lost() is None:
            break
        kept.append([])
    assert lost() is None
