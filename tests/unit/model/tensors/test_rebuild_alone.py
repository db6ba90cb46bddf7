"""Every rebuild function of torch, by the arguments that it is written with."""

from __future__ import annotations

import pytest

from inspector.containers.persistent_ids import NO_DEVICE, StorageId
from inspector.model.checkpoint import Encoding
from inspector.model.tensors.rebuild import describe_tensor, device_text, looks_like_tensor
from inspector.model.tensors.views import Known
from inspector.pickles.values import Call, Dict, Global, PersistentId, StoredTensor, Value
from tests.sweep import table

FLOAT, LONG = Global("torch", "FloatStorage"), Global("torch", "LongStorage")
DTYPE = Global("torch", "float16")
DEVICE = Call(Global("torch", "device"), ("cuda", 1), "reduce")


def storage(key: str = "0", cls: Global = FLOAT, location: str = "cuda:0", numel: int = 6) -> PersistentId:
    return PersistentId(("storage", cls, key, location, numel))


def call(name: str, *args: Value, module: str = "torch._utils", state: Value = None) -> Call:
    made = Call(Global(module, name), args, "reduce")
    made.state = state
    return made


def tensor(
    key: str = "0", size: tuple[int, ...] = (2, 3), stride: tuple[int, ...] = (3, 1), **more: object
) -> Call:
    return call("_rebuild_tensor_v2", storage(key, **more), 0, size, stride, True, Dict([]))


def test_plain() -> None:
    facts = describe_tensor(tensor())
    assert facts is not None
    assert (facts.device, facts.dtype, facts.shape, facts.stride) == ("cuda:0", "float32", (2, 3), (3, 1))
    assert (facts.offset, facts.nbytes, facts.span, facts.requires_grad) == (0, 24, (0, 24), True)
    assert facts.storage is not None
    assert facts.storage.key == "0"


def test_the_first_id_of_a_storage_counts() -> None:
    node = storage(location="cpu")
    from inspector.containers.persistent_ids import parse_storage_id

    first = parse_storage_id(node)
    assert first is not None
    facts = describe_tensor(tensor(), Known({"0": first}))
    assert facts is not None
    assert facts.device == "cpu"
    other = describe_tensor(call("_rebuild_tensor", storage(), 0, (2,), (1,)), Known({"0": first}))
    assert other is not None
    assert other.device == "cpu"


def test_oldest_and_newest() -> None:
    oldest = describe_tensor(call("_rebuild_tensor", storage(), 2, (4,), (1,)))
    assert oldest is not None
    assert (oldest.offset, oldest.span) == (2, (8, 24))
    newest = describe_tensor(
        call(
            "_rebuild_tensor_v3",
            storage(cls=Global("torch.storage", "UntypedStorage")),
            0,
            (3,),
            (1,),
            False,
            None,
            DTYPE,
        )
    )
    assert newest is not None
    assert (newest.dtype, newest.nbytes) == ("float16", 6)


def test_parameters() -> None:
    for made in (
        call("_rebuild_parameter", tensor(), False, None),
        call("_rebuild_parameter_with_state", tensor(), False, None, Dict([("a", 1)])),
    ):
        facts = describe_tensor(made)
        assert facts is not None
        assert facts.is_parameter
        assert not facts.requires_grad


def test_attributes_set_on_a_tensor_are_its_state() -> None:
    made = tensor()
    made.state = Dict([("a", 1)])
    facts = describe_tensor(made)
    assert facts is not None
    assert facts.state is made.state


def test_quantized() -> None:
    scheme = Global("torch", "per_tensor_affine")
    qint8 = Global("torch", "QInt8Storage")
    whole = describe_tensor(
        call("_rebuild_qtensor", storage(cls=qint8), 0, (6,), (1,), (scheme, 0.1, 3), False, None)
    )
    assert whole is not None
    assert (whole.dtype, whole.parts) == ("qint8", ())
    assert whole.encoding == Encoding(scale=0.1, zero_point=3)
    scales, zeros = tensor("1", (6,), (1,)), tensor("2", (6,), (1,))
    channels = describe_tensor(
        call("_rebuild_qtensor", storage(cls=qint8), 0, (6,), (1,), (scheme, scales, zeros, 0), False, None)
    )
    assert channels is not None
    assert channels.parts == (("scales", scales), ("zero_points", zeros))
    assert channels.encoding == Encoding(axis=0)


def test_scales_that_are_not_understood_are_no_encoding() -> None:
    qint8 = Global("torch", "QInt8Storage")
    for qparams in (None, (), ("scheme", 1, 3), ("scheme", 0.1, 1 << 40), ("s", 1, 2, 1), ("s", 1, 2, True)):
        made = call("_rebuild_qtensor", storage(cls=qint8), 0, (6,), (1,), qparams, False, None)
        facts = describe_tensor(made)
        assert facts is not None
        assert facts.encoding is not None
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
            made = call(
                "_rebuild_tensor_v2", storage(location=location), 0, (3,), (1,), False, None, metadata
            )
            facts = describe_tensor(made)
            assert facts is not None
            assert facts.encoding == expected
        byte = storage(cls=Global("torch.storage", "UntypedStorage"))
        newest = describe_tensor(
            call("_rebuild_tensor_v3", byte, 0, (3,), (1,), False, None, DTYPE, metadata)
        )
        assert newest is not None
        assert newest.encoding == expected


@table(
    ("layout", "names"),
    [
        ("torch.sparse_coo", ["indices", "values"]),
        ("torch.sparse_csr", ["crow_indices", "col_indices", "values"]),
        ("torch.sparse_bsc", ["ccol_indices", "row_indices", "values"]),
    ],
)
def test_sparse(layout: str, names: list[str]) -> None:
    parts = [tensor("1", (1, 2), (2, 1)) for _ in names[:-1]]
    said = call("_get_layout", layout, module="torch.serialization")
    facts = describe_tensor(call("_rebuild_sparse_tensor", said, (*parts, tensor(), (4, 4))))
    assert facts is not None
    assert [name for name, _ in facts.parts] == names
    assert (facts.layout, facts.shape, facts.device) == (layout.removeprefix("torch."), (4, 4), "cuda:0")
    assert (facts.storage, facts.stride, facts.nbytes) == (None, None, 64)


def test_nested_and_jagged() -> None:
    parts = [tensor(key) for key in "0123"]
    facts = describe_tensor(call("_rebuild_nested_tensor", *parts))
    assert facts is not None
    assert [name for name, _ in facts.parts] == ["buffer", "sizes", "strides", "offsets"]
    arguments = Dict([("values", parts[0]), ("offsets", parts[1]), ("ragged_idx", 1), (5, parts[2])])
    jagged = describe_tensor(call("_rebuild_njt", arguments))
    assert jagged is not None
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
        facts = describe_tensor(call("_rebuild_xla_tensor", inner, dtype, "xla:0", False))
        assert facts is not None
        assert facts.encoding == encoding, title


def test_sent_to_a_device_while_loading() -> None:
    facts = describe_tensor(call("_rebuild_xla_tensor", tensor(location="cpu"), DTYPE, "xla:0", False))
    assert facts is not None
    assert (facts.device, facts.dtype, facts.stride, facts.offset, facts.nbytes) == (
        "xla:0",
        "float16",
        None,
        None,
        12,
    )
    array = call("_reconstruct", None, (0,), b"b", module="numpy.core.multiarray")
    array.state = (1, (2, 2), call("dtype", "f4", module="numpy"), False, b"")
    loaded = describe_tensor(call("_rebuild_device_tensor_from_numpy", array, DTYPE, "maia:0", True))
    assert loaded is not None
    assert (loaded.device, loaded.shape, loaded.storage) == ("maia:0", (2, 2), None)


def test_meta() -> None:
    facts = describe_tensor(
        call("_rebuild_meta_tensor_no_storage", DTYPE, (1 << 40, 1 << 20), (1 << 20, 1), False)
    )
    assert facts is not None
    assert (facts.device, facts.nbytes, facts.storage) == ("meta", 1 << 61, None)


def test_wrapper() -> None:
    arguments = (
        Global("m", "Wrapper"),
        DTYPE,
        (2,),
        (1,),
        0,
        call("_get_layout", "torch.strided"),
        DEVICE,
        True,
    )
    facts = describe_tensor(call("_rebuild_wrapper_subclass", *arguments))
    assert facts is not None
    assert (facts.device, facts.layout, facts.requires_grad, facts.offset) == ("cuda:1", "strided", True, 0)
    odd = (*arguments[:4], "?", 5, 6, True)
    facts = describe_tensor(call("_rebuild_wrapper_subclass", *odd))
    assert facts is not None
    assert (facts.device, facts.layout, facts.offset) == ("cpu", "strided", None)


def test_of_a_type() -> None:
    inner = tensor()
    made = call(
        "_rebuild_from_type_v2",
        inner.func,
        Global("m", "T"),
        inner.args,
        Dict([("a", 1)]),
        module="torch._tensor",
    )
    facts = describe_tensor(made)
    assert facts is not None
    assert facts.shape == (2, 3)
    assert isinstance(facts.state, Dict)


def test_tensors_of_the_first_torch() -> None:
    state = (storage(), 0, (6,), (1,))
    facts = describe_tensor(call("FloatTensor", module="torch", state=state))
    assert facts is not None
    assert facts.shape == (6,)
    sparse = describe_tensor(call("FloatTensor", tensor("1"), tensor(), (4, 4), module="torch.sparse"))
    assert sparse is not None
    assert sparse.layout == "sparse_coo"
    assert describe_tensor(call("FloatTensor", module="torch")) is None
    for made in (
        call("Parameter", tensor(), module="torch.nn.parameter"),
        call("Variable", module="torch.autograd.variable", state=(tensor(), None, None, True, False)),
    ):
        old = describe_tensor(made)
        assert old is not None
        assert old.is_parameter
        assert old.requires_grad


def test_bare_storage() -> None:
    facts = describe_tensor(storage())
    assert facts is not None
    assert (facts.layout, facts.shape, facts.stride, facts.nbytes) == ("storage", (6,), None, 24)


@table(
    "value",
    [
        5,
        PersistentId("x"),
        Call(None, (), "reduce"),
        Call(Global("torch._utils", "_rebuild_tensor_v2"), None, "reduce"),
        Call(Global("m", "_rebuild_tensor_v2"), tensor().args, "reduce"),
        call("_rebuild_tensor_v2"),
        call("_rebuild_tensor_v2", 5, 0, (1,), (1,), False, None),
        call("_rebuild_tensor_v2", storage(), 0, 5, (1,), False, None),
        call("_rebuild_tensor_v3", storage(), 0, (1,), (1,), False, None, Global("torch", "float33")),
        call("_rebuild_parameter", 5, True, None),
        call("_rebuild_sparse_tensor", "torch.sparse_other", ()),
        call("_rebuild_sparse_tensor", "torch.sparse_coo", []),
        call("_rebuild_njt", 5),
        call("_rebuild_njt", Dict([("offsets", tensor())])),
        call("_rebuild_xla_tensor", tensor(), DTYPE, 5, False),
        call("something_else", module="torch"),
        call("Parameter", module="torch.nn.parameter"),
    ],
)
def test_what_is_none(value: Value) -> None:
    assert describe_tensor(value) is None


@pytest.mark.wide
def test_nesting_without_end_is_no_tensor() -> None:
    made = tensor()
    for _ in range(100_000):
        made = call("_rebuild_parameter", made, True, None)
    assert describe_tensor(made) is None


def test_a_quick_look() -> None:
    assert looks_like_tensor(tensor())
    assert looks_like_tensor(PersistentId("x"))
    assert not looks_like_tensor(call("_rebuild_tensor_v2", module="m"))
    assert not looks_like_tensor(Call(None, (), "reduce"))
    assert not looks_like_tensor(5)


@table(
    ("value", "text"),
    [
        ("cuda:1", "cuda:1"),
        (DEVICE, "cuda:1"),
        (call("device", "mps", module="torch"), "mps"),
        (call("device", "cuda", "x", module="torch"), "cuda"),
        (call("device", module="torch"), None),
        (call("device", 5, module="torch"), None),
        (Call(Global("torch", "device"), None, "reduce"), None),
        (5, None),
    ],
)
def test_device(value: Value, text: str | None) -> None:
    assert device_text(value) == text


def test_stored_tensor_is_one_without_a_call() -> None:
    known = Known({"0": StorageId("0", "float32", 4, NO_DEVICE, 6, False, None)})
    stored = StoredTensor("0", "float32", (2, 3))
    facts = describe_tensor(stored, known)
    assert (facts.device, facts.shape, facts.stride) == ("none", (2, 3), (3, 1))
    assert looks_like_tensor(stored)
    assert describe_tensor(stored) is None  # of a storage that nobody knows
