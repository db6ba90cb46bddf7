"""What callables take, beside what torch said when each was called 22,000 times."""

from __future__ import annotations

from collections import Counter

import pytest

from inspector.model.arguments import check as module
from inspector.model.arguments.check import Arguments, is_judged, is_plain
from inspector.model.tensors.rebuild import describe_tensor
from inspector.pickles.values import Call, Dict, Global, Set, Value
from tests.builders.pickles import NONE, number, op, tuple_
from tests.builders.pickles import call as pickled
from tests.hostile.making_arguments import call_in, recorded
from tests.hostile.palette import FALSE, OD, TRUE, made, stored
from tests.sweep import table
from tests.unit.model.making import root_of, view

NOTHING = Call(Global("collections", "OrderedDict"), (), "reduce")
# Tensors of CUDA can be made where there is CUDA, which torch had not when it was asked.
ON_A_DEVICE = {"torch.cuda.FloatTensor", "torch.cuda.sparse.FloatTensor"}


def taken(name: str, *args: Value) -> bool:
    return Arguments().may_take(name, Call(Global(*name.rsplit(".", 1)), args, "reduce"))


def test_answers_are_those_of_torch() -> None:
    # A third of them, each time the same; making the table anew compares all of them.
    answers = [(one, said) for one, said in recorded() if one.callable not in ON_A_DEVICE][::3]
    wrong: Counter[str] = Counter()
    better = []
    for one, said in answers:
        call = call_in(one)
        facts = describe_tensor(call)
        ours = Arguments().may_take(one.callable, call) and (facts is None or facts.problem is None)
        if ours != said:
            wrong[one.callable] += 1
            better += [f"{one.callable}: {one.what}"] * ours
    assert len(answers) > 7_000
    assert sum(said for _, said in answers) > 800
    assert wrong.total() <= 30, wrong  # offsets that are tensors, storages as lists of arguments
    assert {*better} <= {
        "torch.sparse.FloatTensor: right 1, 2 is (1, 2)",
        "torch.sparse.FloatTensor: right 1, 2 is [1, 2, 3, 300]",
        "torch.sparse.FloatTensor: right 1, 1 is matrix",
    }


def test_what_the_user_allows_may_be_anything() -> None:
    stranger = Call(Global("mine", "Array"), (), "reduce")
    assert taken("mine.Anything", 1, 2)
    assert taken("torch.Size", stranger)
    assert taken("torch._utils._rebuild_wrapper_subclass", Global("mine", "Tensor"), *[None] * 7)
    assert not taken("torch._utils._rebuild_wrapper_subclass", Global("mine", "Tensor"), *[None] * 6)
    assert taken("torch._utils._rebuild_device_tensor_from_numpy", stranger, None, "cpu", False)
    assert not taken("torch._utils._rebuild_device_tensor_from_numpy", NOTHING, None, "cpu", False)


def test_a_class_of_its_own_takes_a_state_in_two_parts() -> None:
    name = "torch._tensor._rebuild_from_type_v2"
    jagged = Global("torch.nested._internal.nested_tensor", "_rebuild_njt")
    cls, two = Global("m", "T"), (None, Dict([("_local", 1)]))
    tensor = Global("torch._utils", "_rebuild_tensor_v2")
    view_args = root_of(view()).args
    stranger = Call(Global("mine", "Arguments"), (), "reduce")
    for args, expected in (
        ((tensor, cls, view_args, two), True),
        ((tensor, cls, view_args, (None, 1)), False),
        ((tensor, cls, view_args, (None, None, None)), False),
        ((tensor, cls, list(view_args), two), False),
        ((jagged, cls, (Dict([("values", None)]),), two), True),
        ((jagged, cls, (Dict([(1, None)]),), two), False),
        ((jagged, cls, (1,), two), False),
        ((jagged, cls, (), two), False),
        ((Global("m", "rebuild"), cls, view_args, two), False),
        ((tensor, 1, view_args, two), False),
        ((jagged, cls, stranger, two), False),
        ((tensor, cls, stranger, two), False),
    ):
        assert taken(name, *args) == expected, args


def test_python_2_spells_builtins_otherwise() -> None:
    assert taken("__builtin__.set", [1])
    assert not taken("__builtin__.set", 1)


def test_arguments_that_are_no_tuple() -> None:
    assert Arguments().may_take(
        "collections.OrderedDict", Call(Global("collections", "OrderedDict"), [], "reduce")
    )
    assert Arguments().may_take("builtins.complex", Call(Global("builtins", "complex"), "", "reduce"))
    assert Arguments().may_take("torch.Size", Call(Global("torch", "Size"), Dict([]), "reduce"))
    assert not Arguments().may_take("torch.Size", Call(Global("torch", "Size"), 1, "reduce"))
    assert not Arguments().may_take("mine.Anything", Call(Global("mine", "Anything"), 1, "reduce"))


def test_functions_have_no_instances() -> None:
    for dotted, taken_ in (("_codecs.encode", False), ("collections.OrderedDict", True)):
        assert Arguments().may_take(dotted, Call(Global(*dotted.split(".")), ("a",), "newobj")) == taken_


def test_every_class_of_tensors_has_its_type() -> None:
    longs = root_of(view())
    assert taken("torch.FloatTensor", longs)
    assert not taken("torch.LongTensor", longs)
    assert taken("torch.Tensor", longs)
    assert taken("torch.cuda.FloatTensor", 3)


@pytest.mark.parametrize("count", [3, 100])
def test_a_crowd_is_looked_through_once(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[str] = []
    takes = module._takes
    monkeypatch.setattr(module, "_takes", lambda name, args: looks.append(name) or takes(name, args))
    crowd: list[Value] = [1] * count
    arguments, size = Arguments(), Global("torch", "Size")
    assert all(arguments.may_take("torch.Size", Call(size, (crowd,), "reduce")) for _ in range(5))
    assert len(looks) == (1 if count > 16 else 5)


@table(
    "args",
    [
        (Dict([(key, None) for key in range(40)]),),
        (Set(list(range(40)), frozen=False),),
        (Call(Global("builtins", "set"), ([*range(40)],), "reduce"),),
        tuple(range(40)),
        ("a" * 40,),
    ],
)
def test_crowds_of_every_kind_are_remembered(args: tuple[Value, ...]) -> None:
    arguments = Arguments()
    call = Call(Global("builtins", "set"), args, "reduce")
    found = arguments.may_take("builtins.set", call)
    assert arguments.may_take("builtins.set", call) == found == (len(args) == 1)
    assert len(arguments._known) == 1


def test_which_calls_are_looked_at() -> None:
    assert is_judged("torch.Size")
    assert not is_judged("numpy.dtype")
    plain = root_of(view())
    assert isinstance(plain, Call)
    assert is_plain(plain, "float32")
    assert not is_plain(NOTHING, "float32")


_STORED, _VIEW = stored("s-float"), (number(0), tuple_(number(4)), tuple_(number(1)))
_PLAIN = pickled("torch._utils._rebuild_tensor_v2", _STORED, *_VIEW, FALSE, OD)


@table(
    ("made", "dtype", "is_quick"),
    [
        (pickled("torch._utils._rebuild_tensor", _STORED, *_VIEW), "float32", True),
        (pickled("torch._utils._rebuild_tensor", _STORED, NONE, *_VIEW[1:]), "float32", False),
        (pickled("torch._utils._rebuild_tensor_v2", _STORED, *_VIEW, TRUE, OD), "float32", True),
        (pickled("torch._utils._rebuild_tensor_v2", _STORED, *_VIEW, TRUE, OD), "int64", False),
        (pickled("torch._utils._rebuild_tensor_v2", _STORED, *_VIEW, NONE, OD), "float32", False),
        (pickled("torch._utils._rebuild_tensor_v2", _STORED, *_VIEW, FALSE, OD, NONE), "float32", False),
        (
            pickled("torch._utils._rebuild_tensor_v2", _STORED, *_VIEW, FALSE, OD) + NONE + op("BUILD"),
            "",
            True,
        ),
        (
            pickled("torch._utils._rebuild_tensor_v2", _STORED, *_VIEW, FALSE, OD) + TRUE + op("BUILD"),
            "",
            False,
        ),
        (pickled("torch._utils._rebuild_tensor_v3", _STORED, *_VIEW, FALSE, OD, NONE), "uint16", True),
        (pickled("torch._utils._rebuild_tensor_v3", _STORED, *_VIEW, TRUE, OD, NONE), "float32", False),
        (pickled("torch._utils._rebuild_parameter", made("s-float"), TRUE, OD), "float32", True),
        (pickled("torch._utils._rebuild_parameter", made("s-long"), TRUE, OD), "int64", False),
        (pickled("torch._utils._rebuild_parameter", NONE, TRUE, OD), "float32", False),
        (pickled("torch._utils._rebuild_qtensor", NONE), "float32", False),
    ],
)
def test_nearly_every_tensor_is_taken_without_a_look(made: bytes, dtype: str, is_quick: bool) -> None:
    call = root_of(made)
    assert isinstance(call, Call)
    assert is_plain(call, dtype) == is_quick


def test_quantized_tensors_have_no_meta() -> None:
    name = "torch._utils._rebuild_meta_tensor_no_storage"
    assert taken(name, Global("torch", "float32"), (2,), (1,), False)
    assert not taken(name, Global("torch", "qint8"), (2,), (1,), False)
