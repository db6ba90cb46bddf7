from __future__ import annotations

import pytest

from inspector.errors import ExportError
from inspector.pickles.values import Blob, Call, Dict, Global, PersistentId
from inspector.remap.pickle_writer import Edits, NoStorages, Writing, filled_pairs, is_usual, view_of
from tests.sweep import table

NODE = PersistentId(("storage",))
VIEW = Global("torch._utils", "_rebuild_tensor_v2")


@table(
    ("call", "expected"),
    [
        (Call(VIEW, (NODE, 0, (), ()), "reduce"), NODE),
        (Call(Global("torch._utils", "_rebuild_qtensor"), (NODE, 3, (), ()), "reduce"), NODE),
        (Call(VIEW, (NODE, 0, ()), "reduce"), None),
        (Call(VIEW, ("storage", 0, (), ()), "reduce"), None),
        (Call(VIEW, (NODE, "0", (), ()), "reduce"), None),
        (Call(VIEW, [NODE, 0, (), ()], "reduce"), None),
        (Call(Global("mine", "_rebuild_tensor_v2"), (NODE, 0, (), ()), "reduce"), None),
        (Call(Global("torch._utils", "_rebuild_parameter"), (NODE, 0, (), ()), "reduce"), None),
        (Call("_rebuild_tensor_v2", (NODE, 0, (), ()), "reduce"), None),
    ],
)
def test_views_are_calls_of_torch_with_a_storage(call, expected) -> None:
    assert view_of(call) is expected


HOOKS = Call(Global("collections", "OrderedDict"), (), "reduce")
STORAGE = PersistentId(("storage", Global("torch", "FloatStorage"), "0", "cpu", 4))


def hooks(**how: object) -> Call:
    made = Call(HOOKS.func, (), "reduce")
    for name, value in how.items():
        setattr(made, name, value)
    return made


@table(
    ("arguments", "expected"),
    [
        ((STORAGE, 0, (2, 2), (2, 1), False, HOOKS), True),
        ((STORAGE, 0, (), (), True, HOOKS), True),
        ((STORAGE, 0, (), (), False, HOOKS, Dict([])), False),
        ((STORAGE, 0, (), (), None, HOOKS), False),
        ((STORAGE, 0, (), (), False, None), False),
        ((STORAGE, 0, (), (), False, hooks(state=1)), False),
        ((STORAGE, 0, (), (), False, hooks(pairs=[(1, 1)])), False),
        ((STORAGE, 0, (), (), False, hooks(args=(1,))), False),
        ((STORAGE, 0, (), (), False, hooks(func=None)), False),
        ((NODE, 0, (), (), False, HOOKS), False),
        ((STORAGE, 0, [2], (1,), False, HOOKS), False),
        ((STORAGE, 0, (2.0,), (1,), False, HOOKS), False),
    ],
)
def test_usual_views_are_told_from_others(arguments, expected) -> None:
    assert is_usual(arguments) is expected


def test_nothing_is_edited_unless_told() -> None:
    owner = Dict([("a", 1)])
    assert Edits().entries(owner, owner.pairs) is owner.pairs
    assert NoStorages().name_storage(NODE) is None
    assert NoStorages().move_view(Call(VIEW, (NODE, 0, (), ()), "reduce")) is None


ORDERED = Global("collections", "OrderedDict")


@table(
    ("func", "args", "kind", "expected"),
    [
        (ORDERED, (), "reduce", ((), [("b", 2)])),
        (ORDERED, ([["a", 1], ("c", 3)],), "reduce", ((), [("a", 1), ("c", 3), ("b", 2)])),
        (ORDERED, (Dict([("a", 1)]),), "reduce", ((), [("a", 1), ("b", 2)])),
        (ORDERED, ([["a", 1, 1]],), "reduce", (([["a", 1, 1]],), [("b", 2)])),
        (ORDERED, ("ab",), "reduce", (("ab",), [("b", 2)])),
        (ORDERED, ([["a", 1]],), "newobj", (([["a", 1]],), [("b", 2)])),
        (ORDERED, None, "reduce", (None, [("b", 2)])),
        (Global("collections", "Counter"), ([["a", 1]],), "reduce", (([["a", 1]],), [("b", 2)])),
    ],
)
def test_what_fills_an_ordered_dictionary_is_pairs_wherever_it_is_written(func, args, kind, expected) -> None:
    made = Call(func, args, kind)
    made.pairs = [("b", 2)]
    assert filled_pairs(made) == expected


def test_bytes_that_stayed_in_the_file_are_not_made_up() -> None:
    how = Writing(naming=NoStorages(), edits=Edits(), data=b"abcdef")
    assert how.bytes_of(Blob("bytes", 1, 3)) == b"bcd"
    with pytest.raises(ExportError, match="a value of 30 bytes, which is no tensor, is too large"):
        how.bytes_of(Blob("bytes", 1, 30))
