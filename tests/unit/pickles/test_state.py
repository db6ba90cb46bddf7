from __future__ import annotations

import pytest

from inspector.limits import Limits
from inspector.pickles.oddities import OddityKind
from inspector.pickles.state import MOST_ODDITIES, BrokenStreamError, State


@pytest.fixture
def state() -> State:
    return State(Limits())


def test_missing_mark_changes_nothing(state: State) -> None:
    state.stack = [1]
    with pytest.raises(IndexError):
        state.pop_mark()
    assert state.stack == [1]
    assert state.created == 0


def test_memo_is_a_list_while_slots_come_in_order(state: State) -> None:
    for slot, value in enumerate("abc"):
        state.remember(slot, value)
    state.remember(1, "again")
    assert state.memo == ["a", "again", "c"]


def test_memo_becomes_a_dict_at_the_first_gap(state: State) -> None:
    state.remember(0, "a")
    state.remember(7, "b")
    state.remember(1, "c")
    state.remember(0, "d")
    assert state.memo == {0: "d", 7: "b", 1: "c"}


def test_weight_counts_small_things_as_less(state: State) -> None:
    state.created, state.literals = 10, 7
    for slot in range(16):
        state.remember(slot, None)
    assert state.weight == 10 + 3 + 2
    state.remember(100, None)
    assert state.weight == 10 + 3 + 17


def test_pairs_and_texts_are_refused_before_they_are_made() -> None:
    state = State(Limits(values=10))
    state.add_pairs(10)
    state.add_text(16 * 20)
    with pytest.raises(BrokenStreamError, match="the pickle makes more than 10 values"):
        state.add_pairs(1)
    with pytest.raises(BrokenStreamError, match="the pickle makes more than 10 values"):
        state.add_text(1)


def test_globals_are_counted_by_name(state: State) -> None:
    first = state.use_global("torch", "device")
    assert state.use_global("torch", "device") is first
    assert state.use_global("torch.device", "") is not first
    assert [(node.dotted, node.count) for node in state.globals.values()] == [
        ("torch.device", 2),
        ("torch.device.", 1),
    ]
    assert state.created == 6


def test_names_are_bounded() -> None:
    state = State(Limits(names=2))
    for name in "abab":
        state.use_global("m", name)
    with pytest.raises(BrokenStreamError, match="the pickle imports more than 2 names"):
        state.use_global("m", "c")


def test_oddities_end_before_they_fill_the_memory(state: State) -> None:
    for offset in range(1, MOST_ODDITIES + 100):
        state.note(OddityKind.TEXT_INT, offset)
    assert len(state.oddities) == MOST_ODDITIES
    assert state.oddities[0].offset == 0
