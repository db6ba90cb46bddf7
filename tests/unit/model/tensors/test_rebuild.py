"""Rebuild calls of every generation, against what torch makes of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from inspector.containers.persistent_ids import parse_storage_id
from inspector.model.checkpoint import Encoding
from inspector.model.tensors.rebuild import describe_tensor, device_text
from inspector.model.tensors.views import Known
from inspector.pickles.values import Call, Dict, Global, PersistentId, Value
from tests.builders.pickles import name, number, op, text, tuple_
from tests.sweep import table
from tests.unit.model.making import (
    built,
    by_hand,
    by_path,
    call,
    loaded,
    numbers,
    only,
    pairs,
    root_of,
    saved,
    storage,
    view,
)

NO = op("NEWFALSE")
YES = op("NEWTRUE")


def sparse(layout: str, *parts: bytes) -> bytes:
    return call("torch._utils._rebuild_sparse_tensor", text(layout), tuple_(*parts))


# --- genuine tensors ----------------------------------------------------------------------------------------


def kinds() -> dict[str, Any]:
    torch = pytest.importorskip("torch")
    dense = torch.zeros(3, 4)
    dense[1, 2] = 5
    per_channel = torch.quantize_per_channel(dense, torch.ones(3), torch.zeros(3), 0, torch.qint8)
    parameter = torch.nn.Parameter(torch.zeros(2, 3))
    parameter.note = "kept"
    return {
        "plain": dense,
        "view": dense[1:, ::2],
        "stretched": torch.zeros(1).expand(1 << 40),
        "scalar": torch.tensor(1.5),
        "empty": torch.zeros(0, 3),
        "conjugate": torch.zeros(2, dtype=torch.complex64).conj(),
        "parameter": torch.nn.Parameter(torch.zeros(2)),
        "frozen": torch.nn.Parameter(torch.zeros(2), requires_grad=False),
        "parameter with attributes": parameter,
        "grad": torch.zeros(2, requires_grad=True),
        "float8": torch.zeros(4).to(torch.float8_e5m2),
        "uint16": torch.zeros(4, dtype=torch.uint16),
        "meta": torch.zeros(5, 2, device="meta"),
        "quantized": torch.quantize_per_tensor(dense, 0.1, 0, torch.quint8),
        "per channel": per_channel,
        "coo": dense.to_sparse(),
        "csr": dense.to_sparse_csr(),
        "csc": dense.to_sparse_csc(),
        "bsr": torch.zeros(4, 4).to_sparse_bsr((2, 2)),
        "bsc": torch.zeros(4, 4).to_sparse_bsc((2, 2)),
        "storage": torch.zeros(12).untyped_storage(),
    }


PARTS = {
    "per channel": ["scales", "zero_points"],
    "coo": ["indices", "values"],
    "csr": ["crow_indices", "col_indices", "values"],
    "csc": ["ccol_indices", "row_indices", "values"],
    "bsr": ["crow_indices", "col_indices", "values"],
    "bsc": ["ccol_indices", "row_indices", "values"],
}


@pytest.mark.torch
@pytest.mark.filterwarnings("ignore::UserWarning")  # torch has one for nearly each of these kinds
def test_every_kind_is_as_torch_loads_it(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    value = kinds()
    rows = by_path(saved(tmp_path, value))
    again = loaded(tmp_path, weights_only=False)
    for kind, tensor in again.items():
        row = rows[kind]
        assert row.problem is None, kind
        if kind == "storage":
            assert (row.layout, row.dtype, row.shape, row.nbytes) == ("storage", "uint8", (48,), 48)
            continue
        assert f"torch.{row.dtype}" == str(tensor.dtype), kind
        assert f"torch.{row.layout}" == str(tensor.layout), kind
        assert row.device == str(tensor.device)
        assert row.shape == tuple(tensor.shape), kind
        assert row.requires_grad == tensor.requires_grad, kind
        assert row.nbytes == tensor.numel() * tensor.element_size(), kind
        if tensor.layout == torch.strided:
            assert (row.stride, row.storage_offset) == (tensor.stride(), tensor.storage_offset()), kind
        else:
            assert (row.stride, row.storage_offset, row.storage) == (None, None, None)
        parts = [path.partition("/")[2] for path, part in rows.items() if path.startswith(f"{kind}/")]
        assert parts == PARTS.get(kind, []), kind
    assert rows["quantized"].storage is not None
    assert rows["meta"].storage is None


def test_wrapper_names_its_device_and_shows_its_state() -> None:
    wrapper = call(
        "torch._tensor._rebuild_from_type_v2",
        name("torch._utils._rebuild_wrapper_subclass"),
        name("torch.distributed.tensor.DTensor"),
        tuple_(
            name("torch.distributed.tensor.DTensor"),
            name("torch.bfloat16"),
            numbers(8, 2),
            numbers(2, 1),
            number(0),
            call("torch.serialization._get_layout", text("torch.strided")),
            call("torch.device", text("cuda"), number(1)),
            YES,
        ),
        pairs(_local_tensor=view()),
    )
    rows = by_path(by_hand(pairs(w=wrapper)))
    whole = rows["w"]
    assert (whole.device, whole.dtype, whole.shape, whole.nbytes) == ("cuda:1", "bfloat16", (8, 2), 32)
    assert (whole.stride, whole.storage_offset, whole.requires_grad) == ((2, 1), 0, True)
    assert (whole.layout, whole.storage) == ("strided", None)
    assert rows["w/._local_tensor"].part_of == 0


@table(("offset", "expected"), [(number(3), 3), (number(-1), None), (op("NONE"), None)])
def test_wrapper_without_a_sensible_offset_or_device(offset: bytes, expected: int | None) -> None:
    arguments = (name("a.B"), name("torch.float"), numbers(2), numbers(1), offset, op("NONE"), op("NONE"), NO)
    tensor = only(by_hand(call("torch._utils._rebuild_wrapper_subclass", *arguments)))
    assert (tensor.storage_offset, tensor.device, tensor.dtype) == (expected, "cpu", "float32")


def test_tensor_sent_to_its_device_keeps_its_storage() -> None:
    sent = call(
        "torch._utils._rebuild_device_tensor_from_cpu_tensor",
        view(),
        name("torch.float16"),
        text("xla:0"),
        YES,
    )
    tensor = only(by_hand(pairs(w=sent)))
    assert (tensor.device, tensor.dtype, tensor.storage, tensor.nbytes) == ("xla:0", "float16", "0", 8)
    assert (tensor.stride, tensor.storage_offset, tensor.requires_grad) == (None, None, True)


@pytest.mark.torch
def test_tensor_sent_as_a_numpy_array(tmp_path: Path) -> None:
    np = pytest.importorskip("numpy")
    torch = pytest.importorskip("torch")

    class Sent:
        def __reduce__(self) -> Any:
            function = torch._utils._rebuild_device_tensor_from_numpy
            return function, (np.zeros((2, 3), np.float32), torch.float32, "cpu", False)

    tensor = only(saved(tmp_path, [Sent()]))
    assert (tensor.device, tensor.shape, tensor.nbytes, tensor.problem) == ("cpu", (2, 3), 24, None)


@pytest.mark.parametrize("first", [{"device": "meta"}, {"numel": 0}])
def test_storages_without_an_address_are_not_remembered(first: dict[str, Any]) -> None:
    geometry = {"size": numbers(0)}
    rows = by_hand(
        pairs(
            a=view(storage("0", **first), **geometry),
            b=view(storage("0", device="cuda:1", kind="IntStorage"), **geometry),
        )
    )
    assert (rows.tensors[1].device, rows.tensors[1].dtype) == ("cuda:1", "int32")


def test_view_of_a_legacy_storage_is_a_storage_of_its_own() -> None:
    def seen(key: str, start: int) -> bytes:
        return tuple_(
            text("storage"), name("torch.FloatStorage"), text("r"), text("cpu"), number(8),
            tuple_(text(key), number(start), number(4)),
        ) + op("BINPERSID")  # fmt: skip

    rows = by_hand(pairs(a=view(seen("v1", 0)), b=view(seen("v2", 4))), form="legacy")
    assert [(row.storage, row.problem) for row in rows.tensors] == [("v1", None), ("v2", None)]


# --- old generations ----------------------------------------------------------------------------------------


def test_tensor_made_empty_and_then_set() -> None:
    state = tuple_(storage(), number(0), numbers(4), numbers(1))
    tensor = only(by_hand(built(call("torch.FloatTensor"), state)))
    assert (tensor.dtype, tensor.shape, tensor.storage) == ("float32", (4,), "0")


def test_old_sparse_tensor_is_called_with_its_parts() -> None:
    rows = by_path(
        by_hand(call("torch.sparse.FloatTensor", view(storage("0")), view(storage("1")), numbers(9)))
    )
    assert (rows[""].layout, rows[""].shape) == ("sparse_coo", (9,))
    assert set(rows) == {"", "indices", "values"}


def test_old_parameters() -> None:
    parameter = call("torch.nn.parameter.Parameter", view())
    assert only(by_hand(parameter)).requires_grad
    state = tuple_(view(), op("NONE"), op("NONE"), NO, NO)
    variable = built(call("torch.autograd.variable.Variable"), state)
    assert not only(by_hand(variable)).requires_grad


# --- what is no tensor --------------------------------------------------------------------------------------

PLAIN = (storage(), number(0), numbers(4), numbers(1), NO, op("NONE"))
MALFORMED = {
    "too few arguments": call("torch._utils._rebuild_tensor_v2", *PLAIN[:3]),
    "no gradient flag": call("torch._utils._rebuild_tensor_v2", *PLAIN[:4]),
    "no storage": call("torch._utils._rebuild_tensor_v2", text("x"), *PLAIN[1:]),
    "no storage's id": call("torch._utils._rebuild_tensor_v2", text("x") + op("BINPERSID"), *PLAIN[1:]),
    "sizes are no tuple": call(
        "torch._utils._rebuild_tensor_v2", storage(), number(0), number(4), *PLAIN[3:]
    ),
    "strides are no tuple": call("torch._utils._rebuild_tensor_v2", *PLAIN[:3], text("x"), *PLAIN[4:]),
    "unknown type": call("torch._utils._rebuild_tensor_v3", *PLAIN, name("torch.float7")),
    "type of another": call("torch._utils._rebuild_tensor_v3", *PLAIN, name("numpy.float32")),
    "no type": call("torch._utils._rebuild_tensor_v3", *PLAIN, text("float32")),
    "parameter of nothing": call("torch._utils._rebuild_parameter", text("x"), YES, op("NONE")),
    "parameter without arguments": call("torch.nn.parameter.Parameter"),
    "unknown layout": sparse("torch.mkldnn", view(), view(), numbers(9)),
    "parts are no tuple": call("torch._utils._rebuild_sparse_tensor", text("torch.sparse_coo"), number(1)),
    "values are no tensor": sparse("torch.sparse_coo", view(), text("x"), numbers(9)),
    "too few parts": sparse("torch.sparse_coo", view()),
    "no parts": sparse("torch.sparse_coo"),
    "nested without a buffer": call("torch._utils._rebuild_nested_tensor", number(1)),
    "jagged without values": call("torch.nested._rebuild_njt", pairs(offsets=view())),
    "jagged without arguments": call("torch.nested._rebuild_njt", text("x")),
    "sent nowhere": call(
        "torch._utils._rebuild_device_tensor_from_cpu_tensor", view(), name("torch.float"), number(1), NO
    ),
    "sent nothing": call(
        "torch._utils._rebuild_device_tensor_from_cpu_tensor", number(1), name("torch.float"), text("xla"), NO
    ),
    "of no type": call("torch._tensor._rebuild_from_type_v2", name("a.b"), name("c.D"), tuple_(), op("NONE")),
    "old tensor without state": call("torch.FloatTensor"),
    "old tensor with a strange state": built(call("torch.FloatTensor"), tuple_(number(1))),
    "arguments are no tuple": name("torch._utils._rebuild_tensor_v2") + number(1) + op("REDUCE"),
    "another's function": call("mine._rebuild_tensor_v2", *PLAIN),
    "another function of torch": call("torch.zeros", *PLAIN),
}


@table("what", MALFORMED)
def test_malformed_calls_are_shown_as_objects(what: str) -> None:
    checkpoint = by_hand(tuple_(MALFORMED[what], number(1)))
    assert not [row for row in checkpoint.tensors if row.path == "0"]
    assert [value for value in checkpoint.values if value.path == "1"]
    assert any(row.path.split("/")[0] == "0" for row in (*checkpoint.values, *checkpoint.tensors))


def test_what_is_nested_too_often_is_an_object() -> None:
    value: Value = root_of(view())
    for _ in range(8):
        value = Call(Global("torch._utils", "_rebuild_parameter"), (value, True, None), "reduce")
        assert describe_tensor(value) is not None
    value = Call(Global("torch._utils", "_rebuild_parameter"), (value, True, None), "reduce")
    assert describe_tensor(value) is None


# --- devices ------------------------------------------------------------------------------------------------


@table(
    ("made", "expected"),
    [
        (text("cuda:1"), "cuda:1"),
        (text("cu\u202eda"), "cu\\u202eda"),
        (call("torch.device", text("cuda"), number(1)), "cuda:1"),
        (call("torch.device", text("cuda:1")), "cuda:1"),
        (call("torch.device", text("cpu"), op("NONE")), "cpu"),
        (call("torch.device"), None),
        (call("torch.device", number(1)), None),
        (name("torch.device") + number(1) + op("REDUCE"), None),
        (call("mine.device", text("cuda")), None),
        (number(1), None),
    ],
)
def test_device_texts(made: bytes, expected: str | None) -> None:
    assert device_text(root_of(made)) == expected


# --- values made by hand ------------------------------------------------------------------------------------

FLOAT = Global("torch", "FloatStorage")
DTYPE = Global("torch", "float16")


def stored_id(key: str = "0", cls: Global = FLOAT, location: str = "cuda:0", numel: int = 6) -> PersistentId:
    return PersistentId(("storage", cls, key, location, numel))


def made(name: str, *args: Value, module: str = "torch._utils", state: Value = None) -> Call:
    value = Call(Global(module, name), args, "reduce")
    value.state = state
    return value


def tensor(
    key: str = "0", size: tuple[int, ...] = (2, 3), stride: tuple[int, ...] = (3, 1), **more: object
) -> Call:
    return made("_rebuild_tensor_v2", stored_id(key, **more), 0, size, stride, True, Dict([]))


def test_the_first_id_of_a_storage_counts() -> None:
    node = stored_id(location="cpu")
    first = parse_storage_id(node)
    assert first is not None
    facts = describe_tensor(tensor(), Known({"0": first}))
    assert facts.device == "cpu"
    other = describe_tensor(made("_rebuild_tensor", stored_id(), 0, (2,), (1,)), Known({"0": first}))
    assert other.device == "cpu"


def test_attributes_set_on_a_tensor_are_its_state() -> None:
    value = tensor()
    value.state = Dict([("a", 1)])
    facts = describe_tensor(value)
    assert facts.state is value.state


def test_quantized() -> None:
    scheme = Global("torch", "per_tensor_affine")
    qint8 = Global("torch", "QInt8Storage")
    whole = describe_tensor(
        made("_rebuild_qtensor", stored_id(cls=qint8), 0, (6,), (1,), (scheme, 0.1, 3), False, None)
    )
    assert (whole.dtype, whole.parts) == ("qint8", ())
    assert whole.encoding == Encoding(scale=0.1, zero_point=3)
    scales, zeros = tensor("1", (6,), (1,)), tensor("2", (6,), (1,))
    channels = describe_tensor(
        made("_rebuild_qtensor", stored_id(cls=qint8), 0, (6,), (1,), (scheme, scales, zeros, 0), False, None)
    )
    assert channels.parts == (("scales", scales), ("zero_points", zeros))
    assert channels.encoding == Encoding(axis=0)


def test_scales_that_are_not_understood_are_no_encoding() -> None:
    qint8 = Global("torch", "QInt8Storage")
    for qparams in (None, (), ("scheme", 1, 3), ("scheme", 0.1, 1 << 40), ("s", 1, 2, 1), ("s", 1, 2, True)):
        value = made("_rebuild_qtensor", stored_id(cls=qint8), 0, (6,), (1,), qparams, False, None)
        facts = describe_tensor(value)
        assert not facts.encoding.is_readable, qparams


def test_lazy_bits_are_read() -> None:
    """`torch._utils.get_tensor_metadata` writes them; another device may write what nobody knows."""
    known = {
        Dict([("conj", True)]): Encoding(conj=True),
        Dict([("neg", True), ("conj", True)]): Encoding(conj=True, neg=True),
        Dict([("npu_format", 29)]): Encoding(is_readable=False),
        Dict([("conj", 1)]): Encoding(is_readable=False),
        Dict([("conj", True), ("neg", True), ("more", True)]): Encoding(is_readable=False),
        Dict([]): None,
    }
    for metadata, expected in known.items():
        for location in ("cuda:0", "meta"):
            value = made(
                "_rebuild_tensor_v2", stored_id(location=location), 0, (3,), (1,), False, None, metadata
            )
            facts = describe_tensor(value)
            assert facts.encoding == expected
        byte = stored_id(cls=Global("torch.storage", "UntypedStorage"))
        newest = describe_tensor(
            made("_rebuild_tensor_v3", byte, 0, (3,), (1,), False, None, DTYPE, metadata)
        )
        assert newest.encoding == expected


def test_nested_and_jagged() -> None:
    parts = [tensor(key) for key in "0123"]
    facts = describe_tensor(made("_rebuild_nested_tensor", *parts))
    assert [name for name, _ in facts.parts] == ["buffer", "sizes", "strides", "offsets"]
    arguments = Dict([("values", parts[0]), ("offsets", parts[1]), ("ragged_idx", 1), (5, parts[2])])
    jagged = describe_tensor(made("_rebuild_njt", arguments))
    assert (jagged.layout, [name for name, _ in jagged.parts]) == ("jagged", ["values", "offsets"])


def test_elements_that_loading_would_cast_are_not_those_of_the_row() -> None:
    """torch_xla stores bfloat16 as float32, and says bfloat16."""
    float32 = Global("torch", "float32")
    cases = {
        "as it is": (tensor(location="cpu"), float32, None),
        "cast": (tensor(location="cpu"), DTYPE, Encoding(is_readable=False)),
        "turned": (tensor(size=(2, 3), stride=(1, 2)), float32, Encoding(is_readable=False)),
    }
    for title, (inner, dtype, encoding) in cases.items():
        facts = describe_tensor(made("_rebuild_xla_tensor", inner, dtype, "xla:0", False))
        assert facts.encoding == encoding, title


def test_meta() -> None:
    facts = describe_tensor(
        made("_rebuild_meta_tensor_no_storage", DTYPE, (1 << 40, 1 << 20), (1 << 20, 1), False)
    )
    assert (facts.device, facts.nbytes, facts.storage) == ("meta", 1 << 61, None)
