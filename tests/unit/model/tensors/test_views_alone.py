"""Views that cannot be: every number in them may be a lie."""

from __future__ import annotations

import pytest

from inspector.containers.persistent_ids import StorageId
from inspector.model.tensors.views import (
    Known,
    NoTensorError,
    bare_storage,
    contiguous,
    dtype_of,
    is_call_to,
    nbytes_of,
    shape_of,
    sizes_of,
    storage_of,
    stored_tensor,
    strided,
)
from inspector.pickles.values import Call, Global, PersistentId, StoredTensor, Value
from tests.sweep import table

HUGE = 1 << 64


def storage(dtype: str = "float32", itemsize: int = 4, numel: int = 6, location: str = "cpu") -> StorageId:
    return StorageId("0", dtype, itemsize, location, numel, False, None)


def problem(offset: Value, size: Value, stride: Value, **more: object) -> str | None:
    where = storage(**more)
    return strided(where, where.dtype, (offset, size, stride), requires_grad=False).problem


@table(
    ("geometry", "span"),
    [
        ((0, (6,), (1,)), (0, 24)),
        ((2, (2, 2), (2, 1)), (8, 24)),
        ((0, (3,), (2,)), (0, 20)),
        ((5, (), ()), (20, 24)),
        ((6, (0,), (1,)), (24, 24)),
        ((0, (1 << 40,), (0,)), (0, 4)),
        ((0, [6], [1]), (0, 24)),
        ((0, Call(Global("torch", "Size"), ((6,),), "reduce"), (1,)), (0, 24)),
        ((0, [0, 5], [5, 1]), (0, 0)),
    ],
)
def test_views_that_can_be(geometry: tuple[Value, ...], span: tuple[int, int]) -> None:
    facts = strided(storage(), "float32", geometry, requires_grad=True)
    assert facts.problem is None
    assert facts.span == span
    assert facts.requires_grad


@table(
    ("geometry", "words"),
    [
        ((0, (7,), (1,)), "runs past its storage: 28 of 24 bytes"),
        ((-1, (1,), (1,)), "offset is negative"),
        (("0", (1,), (1,)), "offset is no whole number"),
        ((True, (1,), (1,)), "offset is no whole number"),
        ((HUGE, (1,), (1,)), "offset is too large"),
        ((0, (2, 3), (1,)), "2 sizes but 1 strides"),
        ((0, (-1,), (1,)), "sizes or strides is negative"),
        ((0, (1.0,), (1,)), "sizes or strides is no whole number"),
        ((0, (2,), (-1,)), "sizes or strides is negative"),
        ((0, (HUGE,), (0,)), "sizes or strides is too large"),
        ((0, (1 << 40, 1 << 40), (0, 0)), "more elements than 64 bits can count"),
        ((0, (1,) * 1025, (1,) * 1025), "has 1,025 dimensions"),
    ],
)
def test_views_that_cannot_be(geometry: tuple[Value, Value, Value], words: str) -> None:
    assert words in str(problem(*geometry))


def test_packed_types_hold_several_elements_in_a_byte() -> None:
    assert problem(0, (12,), (1,), dtype="quint4x2", itemsize=1) is None
    assert "runs past" in str(problem(0, (13,), (1,), dtype="quint4x2", itemsize=1))


@table("geometry", [(), (0, (1,)), (0, 5, (1,)), (0, (1,), 5)])
def test_what_is_no_geometry(geometry: tuple[Value, ...]) -> None:
    with pytest.raises(NoTensorError):
        strided(storage(), "float32", geometry, requires_grad=False)


@pytest.mark.torch
@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (2, 0, 3), (0,), (4, 5, 6, 7)])
def test_missing_strides_are_those_of_a_contiguous_tensor(shape: tuple[int, ...]) -> None:
    torch = pytest.importorskip("torch")
    assert contiguous(shape) == torch.empty(shape).stride()


def test_bare_storage_of_no_elements() -> None:
    facts = bare_storage(storage(numel=0))
    assert (facts.shape, facts.nbytes, facts.problem) == ((0,), 0, None)


def pid(location: str = "cuda:0", numel: int = 6) -> PersistentId:
    return PersistentId(("storage", Global("torch", "FloatStorage"), "0", location, numel))


@table(
    ("own", "first", "location"),
    [
        (pid(), None, "cuda:0"),
        (pid(), storage(), "cpu"),
        (pid(), storage(numel=0), "cuda:0"),
        (pid(numel=0), storage(), "cuda:0"),
        (pid(), storage(location="meta"), "cuda:0"),
    ],
)
def test_which_id_torch_believes(own: PersistentId, first: StorageId | None, location: str) -> None:
    known = Known({} if first is None else {"0": first})
    assert storage_of(own, known).location == location


@table("value", [5, PersistentId("x"), PersistentId(("module", 1, 2, 3))])
def test_what_is_no_storage(value: Value) -> None:
    with pytest.raises(NoTensorError):
        storage_of(value, Known({}))


def test_sizes() -> None:
    size = Call(Global("torch", "Size"), ([2, 3],), "reduce")
    assert sizes_of(size) == ((2, 3), None)
    assert sizes_of(Call(Global("torch", "Size"), (), "reduce")) == ((), None)
    assert shape_of((2, 3)) == ((2, 3), None)
    assert nbytes_of("float32", (2, 3)) == 24
    assert nbytes_of("float32", (1 << 40, 1 << 40)) == 0


def test_dtype() -> None:
    assert dtype_of(Global("torch", "float16")) == "float16"
    for value in (Global("numpy", "float16"), Global("torch", "nothing"), "float16"):
        with pytest.raises(NoTensorError):
            dtype_of(value)


def test_call() -> None:
    assert is_call_to(Call(Global("torch", "device"), (), "reduce"), "torch", "device")
    assert not is_call_to(Call(Global("torch", "Size"), (), "reduce"), "torch", "device")
    assert not is_call_to(Call(Global("other", "device"), (), "reduce"), "torch", "device")
    assert not is_call_to(Call(None, (), "reduce"), "torch", "device")
    assert not is_call_to(5, "torch", "device")


def test_stored_tensor_is_described_by_what_its_format_says() -> None:
    known = Known({"0": storage(numel=12)})
    plain = stored_tensor(StoredTensor("0", "float32", (2, 3), offset=6), known)
    assert (plain.stride, plain.offset, plain.span, plain.nbytes) == ((3, 1), 6, (24, 48), 24)
    turned = StoredTensor("0", "int16", (2, 3), (1, 2), layout="odd", requires_grad=True)
    facts = stored_tensor(turned, known)
    assert (facts.dtype, facts.stride, facts.layout, facts.requires_grad) == ("int16", (1, 2), "odd", True)
    assert stored_tensor(StoredTensor("0", "float32", (13,)), known).problem is not None
    with pytest.raises(NoTensorError):
        stored_tensor(StoredTensor("1", "float32", (1,)), known)


def test_steps_of_endless_shapes_stay_small_numbers() -> None:
    assert max(contiguous((1 << 62,) * 1000)) == 1 << 63
