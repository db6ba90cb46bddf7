"""Views that cannot be: each is shown with its reason, and nothing is believed that torch would not."""

from __future__ import annotations

import json

import pytest

from inspector.containers.persistent_ids import StorageId
from inspector.model.checkpoint import Tensor
from inspector.model.tensors import views
from inspector.model.tensors.rebuild import describe_tensor
from inspector.model.tensors.views import (
    Known,
    NoTensorError,
    TensorFacts,
    contiguous,
    nbytes_of,
    shape_of,
    sizes_of,
    storage_of,
    stored_tensor,
    strided,
)
from inspector.pickles.values import Call, Global, PersistentId, StoredTensor, Value
from tests.builders.pickles import NONE, list_, number, op, text, tuple_
from tests.sweep import table
from tests.unit.model.making import by_hand, call, numbers, only, pairs, root_of, storage, view

FLOAT = op("BINFLOAT", b"\x40\x10\0\0\0\0\0\0")  # 4.0
BIG = 1 << 62


@table(
    ("geometry", "problem"),
    [
        ({"size": numbers(5)}, "it runs past its storage: 20 of 16 bytes"),
        ({"offset": number(1)}, "it runs past its storage: 20 of 16 bytes"),
        ({"size": numbers(2, 2), "stride": numbers(3, 1)}, "it runs past its storage: 20 of 16 bytes"),
        ({"size": numbers(2, 2)}, "it has 2 sizes but 1 strides"),
        ({"offset": number(-1)}, "its offset is negative"),
        ({"offset": number(1 << 70)}, "its offset is too large"),
        ({"offset": FLOAT}, "its offset is no whole number"),
        ({"offset": op("NEWTRUE")}, "its offset is no whole number"),
        ({"size": numbers(-4)}, "one of its sizes or strides is negative"),
        (
            {"size": numbers(1, -4), "stride": numbers(1, 1)},
            "one of its sizes or strides is negative",
        ),
        ({"stride": numbers(-1)}, "one of its sizes or strides is negative"),
        ({"size": tuple_(FLOAT)}, "one of its sizes or strides is no whole number"),
        ({"size": tuple_(op("NEWTRUE"))}, "one of its sizes or strides is no whole number"),
        ({"size": numbers(1 << 64)}, "one of its sizes or strides is too large"),
        ({"size": numbers(BIG, 4), "stride": numbers(0, 0)}, "it has more elements than 64 bits can count"),
        ({"size": numbers(*[1] * 1025), "stride": numbers(*[1] * 1025)}, "it has 1,025 dimensions"),
        ({"size": numbers(BIG), "stride": numbers(1 << 61)}, "it runs past its storage: "),
    ],
)
def test_impossible_views_say_why(geometry: dict[str, bytes], problem: str) -> None:
    tensor = only(by_hand(view(**geometry)))
    assert tensor.problem.startswith(problem)
    assert tensor.nbytes >= 0
    assert all(type(size) is int for size in (*tensor.shape, *(tensor.stride or ())))
    json.dumps(tensor)


@table(
    ("geometry", "nbytes"),
    [
        ({"size": numbers(BIG), "stride": numbers(0)}, 4 * BIG),  # torch accepts it
        ({"size": numbers(0), "offset": number(99)}, 0),
        ({"size": numbers(0, 1 << 60), "stride": numbers(1, 1)}, 0),
        ({"size": numbers(), "stride": numbers()}, 4),
        ({"size": numbers(1), "stride": numbers(1 << 60)}, 4),
        ({"size": numbers(2, 2), "stride": numbers()}, 16),
        ({"size": numbers(2, 2), "stride": NONE}, 16),
        ({"size": numbers(1, 4), "stride": numbers(-4, 1)}, 16),
        ({"size": tuple_(number(2), op("NEWTRUE")), "stride": numbers(1, 1)}, 8),
        ({"size": numbers(*[1] * 1024), "stride": numbers(*[1] * 1024)}, 4),
        ({"size": list_(number(4)), "stride": list_(number(1))}, 16),
        ({"size": call("torch.Size", numbers(2, 2)), "stride": numbers(2, 1)}, 16),
        ({"size": call("torch.Size"), "stride": numbers()}, 4),
    ],
)
def test_unusual_views_that_torch_takes(geometry: dict[str, bytes], nbytes: int) -> None:
    tensor = only(by_hand(view(**geometry)))
    assert (tensor.problem, tensor.nbytes) == (None, nbytes)


@pytest.mark.torch
def test_torch_agrees_on_what_is_possible() -> None:
    torch = pytest.importorskip("torch")
    data = torch.zeros(4).untyped_storage()
    for offset, size, stride in [(0, (BIG,), (0,)), (0, (1,), (1 << 60,)), (99, (0,), (1,))]:
        torch.empty(0).set_(data, offset, size, stride)
    with pytest.raises(RuntimeError):
        torch.empty(0).set_(data, 0, (2, 2), (1,))
    with pytest.raises((RuntimeError, TypeError)):
        torch.empty(0).set_(data, -1, (2,), (1,))
    with pytest.raises(TypeError):
        torch.empty(0).set_(data, 0, (4.0,), (1,))


def test_packed_types_take_less() -> None:
    def quantized(kind: str, numel: int, size: int) -> bytes:
        params = tuple_(text("per_tensor_affine"), FLOAT, number(0))
        arguments = (storage(kind=kind, numel=numel), number(2), numbers(size), numbers(1), params)
        return call("torch._utils._rebuild_qtensor", *arguments, op("NEWFALSE"), op("NONE"))

    checkpoint = by_hand(quantized("QUInt4x2Storage", 4, 6))
    assert only(checkpoint).problem is None
    assert checkpoint.storages[0].viewed_nbytes == 3
    assert only(by_hand(quantized("QUInt2x4Storage", 2, 6))).problem is None
    assert only(by_hand(quantized("QUInt4x2Storage", 4, 7))).problem is not None


def test_storage_of_impossible_size_counts_as_none() -> None:
    checkpoint = by_hand(pairs(a=view(storage(numel=(1 << 63) - 1)), b=number(1)), stored={})
    (row,) = checkpoint.storages
    assert (row.nbytes, row.missing) == (0, True)
    huge = storage("1", numel=1 << 62)
    assert only(by_hand(huge, stored={})).nbytes == 4 << 62


def test_facts_begin_as_the_fields_of_a_row_do() -> None:
    fields = ["storage_offset" if field == "offset" else field for field in TensorFacts._fields]
    assert fields[:9] == list(Tensor._fields[2:11])


def test_sizes_are_read_from_whatever_holds_them() -> None:
    assert sizes_of(root_of(numbers(1, 2))) == ((1, 2), None)
    assert shape_of(root_of(numbers(1, 2))) == ((1, 2), None)
    assert nbytes_of("float32", (2, 3)) == 24
    assert nbytes_of("float32", (1 << 62, 4)) == 0


def test_tensors_of_one_shape_are_laid_out_once_and_as_each_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(views, "_MOST_LAID", 2)
    shared, odd = (2, 3), (-1, 2)
    known = Known({"0": StorageId("0", "float32", 4, "none", 6, untyped=False, view=None)})
    cases = [
        (shape, dtype)
        for shape in (shared, (2, 3), (), (0, 5), (6,), odd, (1 << 62, 4), (3, 3), shared)
        for dtype in ("float32", "int8", "float32", "quint4x2")
    ]
    for shape, dtype in cases:
        facts = describe_tensor(StoredTensor("0", dtype, shape), known)
        assert facts == stored_alone(shape, dtype, known), (shape, dtype)
        assert len(views._LAID) <= 2
    first, again = (describe_tensor(StoredTensor("0", "float32", shared), known) for _ in range(2))
    assert first.stride is again.stride


def stored_alone(shape: tuple[int, ...], dtype: str, known: Known) -> TensorFacts:
    """What is said of a tensor whose strides are given, none of which is shared."""
    facts = describe_tensor(StoredTensor("0", dtype, shape, stride=views.contiguous(shape)), known)
    assert facts is not None
    return facts


def test_texts_of_problems_are_shared_and_few_are_kept() -> None:
    texts = [views.shared_text(f"problem {at % 3}") for at in range(9)]
    assert len({id(text) for text in texts}) == 3
    for at in range(1000):
        assert views.shared_text(f"another {at}") == f"another {at}"
    assert len(views._TEXTS) <= views._MOST_TEXTS


def known_storage(numel: int = 6, location: str = "cpu") -> StorageId:
    return StorageId("0", "float32", 4, location, numel, untyped=False, view=None)


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
    facts = strided(known_storage(), "float32", geometry, requires_grad=True)
    assert facts.problem is None
    assert facts.span == span
    assert facts.requires_grad


@table("geometry", [(), (0, (1,)), (0, 5, (1,)), (0, (1,), 5)])
def test_what_is_no_geometry(geometry: tuple[Value, ...]) -> None:
    with pytest.raises(NoTensorError):
        strided(known_storage(), "float32", geometry, requires_grad=False)


@pytest.mark.torch
@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (2, 0, 3), (0,), (4, 5, 6, 7)])
def test_missing_strides_are_those_of_a_contiguous_tensor(shape: tuple[int, ...]) -> None:
    torch = pytest.importorskip("torch")
    assert contiguous(shape) == torch.empty(shape).stride()


def pid(location: str = "cuda:0", numel: int = 6) -> PersistentId:
    return PersistentId(("storage", Global("torch", "FloatStorage"), "0", location, numel))


@table(
    ("own", "first", "location"),
    [
        (pid(), None, "cuda:0"),
        (pid(), known_storage(), "cpu"),
        (pid(), known_storage(numel=0), "cuda:0"),
        (pid(numel=0), known_storage(), "cuda:0"),
        (pid(), known_storage(location="meta"), "cuda:0"),
    ],
)
def test_which_id_torch_believes(own: PersistentId, first: StorageId | None, location: str) -> None:
    known = Known({} if first is None else {"0": first})
    assert storage_of(own, known).location == location


def test_stored_tensor_is_described_by_what_its_format_says() -> None:
    known = Known({"0": known_storage(numel=12)})
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
