from __future__ import annotations

from inspector.diff.records import Pair, TensorChange


def test_the_same_numbers_in_other_bits_are_no_difference() -> None:
    assert not TensorChange(Pair(0, 0), ("bits",)).differs
    assert TensorChange(Pair(0, 0), ("device", "bits")).differs
