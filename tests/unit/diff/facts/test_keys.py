from __future__ import annotations

from inspector.diff.facts import are_same_ways, other_keys
from inspector.model.checkpoint import OddKey


def test_ways_are_the_same_by_type() -> None:
    assert are_same_ways(("a", 1), ("a", 1))
    assert not are_same_ways(("a", OddKey("None")), ("a", "None"))
    assert not are_same_ways(("a", 1), ("a",))


def test_the_first_other_keys_are_told() -> None:
    assert other_keys(("a", OddKey("None"), 1), ("a", "None", 2)) == ("None", "'None'")
    assert other_keys(("a", 1), ("a", "1")) == ("1", "'1'")
