"""Arguments that are made when they are asked for; `test_runs` sees that they are what the stream says."""

from __future__ import annotations

import pytest

from inspector.errors import PickleError
from inspector.pickles.packed import MADE, Packed, Room
from inspector.pickles.runs import _Numbers
from inspector.pickles.values import Call, Global, PersistentId


def test_a_room_is_full_when_twice_what_is_made_does_not_fit() -> None:
    room = Room(100)
    room.used = 80
    room.take(10)
    assert (room.made, room.weight) == (10, 20)
    with pytest.raises(PickleError, match="more than 100 values") as caught:
        room.take(1)
    assert caught.value.remedy


def test_arguments_are_objects_of_their_own_and_are_counted() -> None:
    maker, node, sizes = Global("collections", "OrderedDict"), PersistentId(()), (2, 3)
    place, steps = _Numbers(7, sizes, 0, 1, 4), _Numbers(0, sizes, 0, 1, 3)
    room = Room(1000)
    packed = Packed([node], [place], [steps], [(True, maker)], room)
    first, second = (Call.of_run(Global("torch", "x"), packed, 0) for _ in range(2))
    assert first.told == (node, 7, sizes, sizes, True, None)
    assert room.made == 0
    assert isinstance(first.args, tuple)
    assert isinstance(second.args, tuple)
    assert room.made == 2 * (MADE + 2)
    assert first.args[:5] == second.args[:5] == (node, 7, sizes, sizes, True)
    objects = [*first.args[2:4], first.args[5], *second.args[2:4], second.args[5]]
    assert len({id(one) for one in (*objects, sizes)}) == 7
    assert isinstance(first.args[5], Call)
    assert (first.args[5].func, first.args[5].args) == (maker, ())
    assert first.args is first.told
