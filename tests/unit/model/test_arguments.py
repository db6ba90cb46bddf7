"""What listed names make and take, beside torch's list and what torch said to 22,000 calls."""

from __future__ import annotations

import pytest

from inspector.model.arguments import UNKNOWN, is_plain, kind_of, kind_of_name, listed_name, may_take
from inspector.model.checkpoint import Verb
from inspector.model.programs.uses import may_set
from inspector.model.tensors.rebuild import describe_tensor
from inspector.pickles.values import Blob, Call, Dict, Global, Set, Value
from inspector.safety.names import default_allow_list
from tests.builders.pickles import MARK, NONE, name, number, op, tuple_
from tests.builders.pickles import call as pickled
from tests.hostile.making_arguments import call_in, recorded
from tests.hostile.palette import FALSE, OD, TRUE, made, palette, stored
from tests.sweep import table
from tests.unit.model.making import by_hand, root_of, view

ON_A_DEVICE = {"torch.cuda.FloatTensor", "torch.cuda.sparse.FloatTensor"}  # torch had none when it was asked
STRANGER = Call(Global("mine", "Thing"), (), "reduce")
FROM_TYPE = "torch._tensor._rebuild_from_type_v2"


def taken(name: str, *args: Value) -> bool:
    return may_take(name, Call(Global(*name.rsplit(".", 1)), args, "reduce"))


def test_nothing_counts_as_taken_that_torch_refuses() -> None:
    answers = [(one, said) for one, said in recorded() if one.callable not in ON_A_DEVICE]
    ours, better = 0, []
    for one, said in answers:
        call = call_in(one)
        facts = describe_tensor(call)
        is_taken = may_take(one.callable, call) and (facts is None or facts.problem is None)
        ours += is_taken
        better += [f"{one.callable}: {one.what}"] * (is_taken and not said)
    assert better == []
    assert len(answers) > 20_000
    assert ours > 1_000


@table(
    ("name", "args"),
    [
        *(("_codecs.encode", ("\xe9", "latin1")), ("_codecs.encode", (Blob("text", 0, 9000), "latin1"))),
        *(("builtins.bytearray", ()), ("builtins.bytearray", ("a", "latin-1"))),
        *(("builtins.bytearray", (Blob("bytes", 0, 9000),)), ("builtins.complex", (1.0, 2.0))),
        *(("builtins.set", ([],)), ("__builtin__.set", ([1, ("a", None), STRANGER],))),
        *(("builtins.set", ([Set([1], frozen=True)],)), ("collections.Counter", (Dict([("a", 1)]),))),
        *(("collections.OrderedDict", ()), ("collections.OrderedDict", ([["a", 1]],))),
        *(("torch.Size", ((2, 3),)), ("torch.device", ("cuda", 1)), ("torch.device", ("cuda:1",))),
        ("torch.serialization._get_layout", ("torch.jagged",)),
        *(("mine.Anything", (1, 2)), ("torch.LongTensor", ()), ("torch.nn.parameter.Parameter", ())),
        (
            "torch._utils._rebuild_wrapper_subclass",
            (*(Global("m", "T"), Global("torch", "int8"), (2,), (1,), 0), *[STRANGER] * 2, False),
        ),
        ("torch._utils._rebuild_device_tensor_from_numpy", (STRANGER, Global("torch", "int8"), "cpu", False)),
        ("torch._utils._rebuild_meta_tensor_no_storage", (Global("torch", "int8"), (2,), (1,), False)),
    ],
)
def test_what_is_written_is_taken(name: str, args: tuple[Value, ...]) -> None:
    assert taken(name, *args)


@table(
    ("name", "args"),
    [
        *(("_codecs.encode", ("\u20ac", "latin1")), ("_codecs.encode", ("a", "hex"))),
        *(("builtins.bytearray", (1 << 62,)), ("builtins.complex", ("1j",)), ("builtins.set", ([[]],))),
        *(("builtins.set", ([(1, [])],)), ("builtins.set", ([((1,),)],)), ("builtins.set", ("ab",))),
        *(("collections.OrderedDict", ([("a",)],)), ("collections.OrderedDict", ([([], 1)],))),
        *(("torch.Size", ((2.0,),)), ("torch.Size", ((1 << 63,),)), ("torch.Size", ((1,) * 1000,))),
        *(("torch.device", ("nope",)), ("torch.device", ("cuda:01",)), ("torch.device", ("cuda:0", 1))),
        *(("torch.device", ("cuda", -1)), ("torch.device", (1,)), ("torch.device", (Blob("text", 0, 9),))),
        *(("torch.serialization._get_layout", ("torch.sparse",)), ("torch.float32", ())),
        ("torch._utils._rebuild_wrapper_subclass", (Global("mine", "Tensor"), *[None] * 7)),
        ("torch._utils._rebuild_meta_tensor_no_storage", (Global("torch", "qint8"), (2,), (1,), False)),
    ],
)
def test_what_nobody_writes_is_not(name: str, args: tuple[Value, ...]) -> None:
    assert not taken(name, *args)


def test_arguments_that_are_no_tuple() -> None:
    for args, name_ in (([], "collections.OrderedDict"), (1, "torch.Size"), (1, "mine.Anything")):
        assert not may_take(name_, Call(Global(*name_.rsplit(".", 1)), args, "reduce"))


def test_functions_have_no_instances() -> None:
    for dotted, args, is_taken in (("_codecs.encode", ("a", "latin1"), False), ("torch.Size", ((2,),), True)):
        assert may_take(dotted, Call(Global(*dotted.split(".")), args, "newobj")) == is_taken


def test_a_class_of_its_own_takes_a_state_in_two_parts() -> None:
    jagged = Global("torch.nested._internal.nested_tensor", "_rebuild_njt")
    cls, two = Global("m", "T"), (None, Dict([("_local", 1)]))
    tensor = Global("torch._utils", "_rebuild_tensor_v2")
    view_args = root_of(view()).args
    for args, expected in (
        ((tensor, cls, view_args, two), True),
        ((tensor, cls, view_args, (None, 1)), False),
        ((tensor, cls, view_args, (None, None, None)), False),
        ((tensor, cls, view_args, Dict([(1, 1)])), False),
        ((tensor, cls, list(view_args), two), False),
        ((jagged, cls, (Dict([("values", None)]),), two), True),
        ((jagged, cls, (Dict([(1, None)]),), two), False),
        ((jagged, cls, (Dict([(str(key), None) for key in range(99)]),), two), False),
        ((jagged, cls, (1,), two), False),
        ((jagged, cls, (), two), False),
        ((Global("m", "rebuild"), cls, view_args, two), False),
        ((tensor, 1, view_args, two), False),
        ((jagged, cls, STRANGER, two), False),
        ((tensor, cls, STRANGER, two), False),
    ):
        assert taken(FROM_TYPE, *args) == expected, args


def test_a_class_of_its_own_in_another_without_end_is_not_taken() -> None:
    deep = 3_000
    push = (MARK + name(FROM_TYPE) + name("torch.Tensor")) * deep + tuple_()
    push += (op("EMPTY_DICT") + op("TUPLE")) * deep
    assert by_hand(name(FROM_TYPE) + push + op("REDUCE")).needs.uses == ((FROM_TYPE, Verb.MISCALL),)


def test_a_quantizer_may_come_from_anywhere() -> None:
    scheme, storage = Global("torch", "per_channel_affine"), root_of(stored("s-qint"))
    name_, ends = "torch._utils._rebuild_qtensor", (False, None)
    for params, expected in (
        ((scheme, STRANGER, [0] * 4, 0), True),
        ((scheme, 5, [0] * 4, 0), False),
        ((scheme, [1] * 4, [0] * 4, 1), False),
        ((scheme, [1] * 4), False),
        ((Global("torch", "per_tensor_symmetric"), 0.5, 0), False),
        ((), False),
    ):
        assert taken(name_, storage, 0, (4,), (1,), params, *ends) == expected, params
    floats = root_of(stored("s-float"))
    assert not taken(name_, floats, 0, (4,), (1,), (scheme, STRANGER, [0] * 4, 0), *ends)


@table(
    ("kind", "state", "is_set"),
    [
        *(("?", 5, True), ("Size", STRANGER, True), ("bytes", Dict([]), False), ("set", None, False)),
        *(("OrderedDict", Dict([("a", 1)]), True), ("OrderedDict", Dict([(1, 1)]), False)),
        *(("OrderedDict", None, False), ("OrderedDict", [("a", 1)], False), ("Counter", Dict([]), False)),
        *(("Tensor", None, False), ("Tensor", (STRANGER,), False), ("Tensor", (STRANGER, 0), False)),
        ("Tensor", (STRANGER, 0, (4,), (1,)), True),
        ("Tensor", (STRANGER, 0, (4.0,), (1,)), False),
        *(("Parameter", (True, None, None), True), ("Parameter", (1, 2, 3), False)),
        *(("Parameter", (True, None), False), ("Parameter", None, False)),
        ("Parameter", (STRANGER, None, None, False, None), True),
        ("Parameter", (1, None, None, False, None), False),
    ],
)
def test_states_that_are_set(kind: str, state: Value, is_set: bool) -> None:
    assert may_set(kind, state) == is_set


def test_every_listed_name_is_known() -> None:
    unknown = {name for name in default_allow_list().names if kind_of_name(name) == UNKNOWN}
    assert {name.rpartition(".")[2] for name in unknown} == {
        *("NestedTensor", "_rebuild_njt", "_FlatLayout", "_MeshLayout")  # classes that take what they like
    }


@pytest.mark.torch
def test_names_stand_for_what_torch_has_under_them() -> None:
    torch = pytest.importorskip("torch")
    from torch import _weights_only_unpickler as unpickler

    for dotted, value in unpickler._get_allowed_globals().items():
        kind = type(value).__name__
        if isinstance(value, type):
            kind = "type"
        elif callable(value):
            kind = "function"
        assert kind_of_name(dotted) == kind, dotted
    assert isinstance(torch.float32, torch.dtype)


@table("name", ["os.system", "torch.load", "torch.xTensor", "torch.cuda.x", "numpy.dtype"])
def test_other_names_are_unknown(name: str) -> None:
    assert kind_of_name(name) == UNKNOWN


@table(
    ("color", "kind"),
    [
        *(
            ("None", "None"),
            ("True", "bool"),
            ("4", "int"),
            ("2.0", "float"),
            ("'cpu'", "str"),
            ("b''", "bytes"),
        ),
        *(("()", "tuple"), ("[]", "list"), ("{}", "dict"), ("set", "set"), ("OrderedDict", "OrderedDict")),
        *(("Counter", "Counter"), ("bytearray", "bytearray"), ("complex", "complex"), ("Size", "Size")),
        *(("device", "device"), ("layout", "layout"), ("float32", "dtype"), ("storage", "TypedStorage")),
        *(("tensor", "Tensor"), ("parameter", "Parameter"), ("FloatStorage", "StorageType")),
        *(("torch.Tensor", "type"), ("encode", "function"), ("per_tensor_affine", "qscheme")),
    ],
)
def test_kinds_of_values(color: str, kind: str) -> None:
    assert kind_of(root_of(palette()[color])) == kind


def test_kinds_of_what_only_others_make() -> None:
    rebuild = Global("torch._tensor", "_rebuild_from_type_v2")
    parameter: Value = Global("torch.nn.parameter", "Parameter")
    assert kind_of(Call(rebuild, (None, parameter, (), None), "reduce")) == "Parameter"
    assert kind_of(Call(rebuild, (None, Global("mine", "T"), (), None), "reduce")) == UNKNOWN
    assert kind_of(Call(rebuild, (), "reduce")) == UNKNOWN
    assert kind_of(Call(rebuild, None, "reduce")) == UNKNOWN
    assert kind_of(Call(Global("mine", "T"), (), "reduce")) == UNKNOWN
    assert kind_of(Call(None, (), "reduce")) == UNKNOWN
    assert kind_of(Blob("buffer", 0, 9)) == "bytearray"
    assert kind_of(Set([], frozen=True)) == "set"


def test_names_are_torchs() -> None:
    assert listed_name(Global("__builtin__", "set")) == "builtins.set"
    assert listed_name("builtins.set") == ""


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
