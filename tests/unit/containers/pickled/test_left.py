from __future__ import annotations

from inspector.containers.pickled import folded, is_filled
from inspector.limits import Limits
from inspector.pickles.state import State
from inspector.pickles.values import Call, Dict, Global


def test_what_is_complete_is_kept_in_its_container() -> None:
    state = State(Limits())
    assert folded(state) is None
    root = Dict([])
    state.marked, state.stack = [[root]], ["a", 1, "b", Global("m", "f")]
    assert folded(state) is root
    assert root.pairs == [("a", 1)]


def test_nothing_is_left_of_what_was_only_begun() -> None:
    assert not any(map(is_filled, (None, 1, [], Dict([]), Call(Global("m", "f"), (), "reduce"))))
    assert is_filled([1])
    assert is_filled(Dict([("a", 1)]))
