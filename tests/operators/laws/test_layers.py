"""Layers: what they say is what a dict would, and an older one stays as it was."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from operators.layers import Layers

STEPS = st.lists(st.dictionaries(st.integers(0, 9), st.integers(), max_size=6), max_size=8)


@given(STEPS)
def test_the_newest_value_of_a_key_counts(steps: list[dict[int, int]]) -> None:
    layers: Layers[int, int] = Layers()
    known: dict[int, int] = {}
    for step in steps:
        before = dict(layers.items())
        updated = layers.update(dict(step))
        assert dict(layers.items()) == before
        layers, known = updated, known | step
        assert dict(layers.items()) == known
        assert sorted(layers.values()) == sorted(known.values())
        assert {key: layers.get(key) for key in range(10)} == {key: known.get(key) for key in range(10)}
        assert all(layers[key] == value for key, value in known.items())
    assert layers == Layers(known)
    assert hash(layers) == hash(Layers(known))
    assert (layers == Layers({**known, 10: 0})) is False
