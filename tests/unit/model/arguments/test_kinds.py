"""Types told from names and values, beside those that torch has on its list."""

from __future__ import annotations

import pytest

from inspector.model.arguments.kinds import UNKNOWN, is_storage_class, kind_of, kind_of_name, listed_name
from inspector.pickles.values import Blob, Call, Global, Set, Value
from inspector.safety.names import default_allow_list
from tests.hostile.palette import palette
from tests.sweep import table
from tests.unit.model.making import root_of


def test_every_listed_name_is_known() -> None:
    unknown = {name for name in default_allow_list().names if kind_of_name(name) == UNKNOWN}
    assert {name.rpartition(".")[2] for name in unknown} == {
        *("NestedTensor", "_rebuild_njt", "_FlatLayout", "_MeshLayout")  # classes that take what they like
    }


@pytest.mark.torch
def test_names_stand_for_what_torch_has_under_them() -> None:
    torch = pytest.importorskip("torch")
    from torch import _weights_only_unpickler as unpickler

    for name, value in unpickler._get_allowed_globals().items():
        kind = type(value).__name__
        if isinstance(value, type):
            kind = "type"
        elif callable(value):
            kind = "function"
        assert kind_of_name(name) == kind, name
    assert isinstance(torch.float32, torch.dtype)


@table("name", ["os.system", "torch.load", "torch.xTensor", "torch.cuda.x", "numpy.dtype"])
def test_other_names_are_unknown(name: str) -> None:
    assert kind_of_name(name) == UNKNOWN
    assert not is_storage_class(name)


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
