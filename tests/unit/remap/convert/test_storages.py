from __future__ import annotations

import pytest

from inspector.containers.container import Container, StoredBytes
from inspector.errors import ExportError
from inspector.pickles.values import Call, PersistentId, Value
from inspector.records import replace
from inspector.remap.pickle_writer import StorageName, Writing, write_pickle
from inspector.remap.storages import Cut, Piece, Storages, Viewed, cut_out
from tests.builders import pickles
from tests.sweep import table
from tests.unit.remap.form_samples import mapping, tensor
from tests.unit.remap.samples import container_of, stream


@table(
    ("spans", "nbytes", "alignment", "ranges", "starts"),
    [
        ([(8, 16)], 100, 4, ((8, 16),), (0,)),
        ([(8, 16), (12, 20)], 100, 4, ((8, 20),), (0,)),
        ([(40, 44), (8, 16)], 100, 4, ((8, 16), (40, 44)), (0, 8)),
        ([(8, 16), (16, 20)], 100, 4, ((8, 20),), (0,)),
        ([(9, 10)], 100, 16, ((0, 16),), (0,)),
        ([(97, 99)], 100, 16, ((96, 100),), (0,)),
        ([(8, 8)], 100, 4, ((0, 0),), (0,)),
        ([], 100, 4, ((0, 0),), (0,)),
    ],
)
def test_what_is_viewed_is_kept_aligned(spans, nbytes, alignment, ranges, starts) -> None:
    assert cut_out(spans, nbytes, alignment) == Cut(ranges, starts)


def test_places_move_with_what_is_kept() -> None:
    cut = cut_out([(8, 16), (40, 44)], 100, 4)
    assert [cut.place(pos) for pos in (8, 12, 40)] == [0, 4, 8]
    assert cut_out([], 100, 4).place(0) == 0
    assert [cut.place(pos) for pos in (0, 8, 30, 100)] == [0, 0, 8, 12]  # where empty views may stand


def storages(container: Container, **how: object) -> Storages:
    return Storages(
        container, how.pop("location_of", lambda key, tag: tag), lambda key: f"the tensor of {key}", **how
    )


def pieces(
    root: bytes, container: Container | None = None, *, compact: bool = False, **how: object
) -> list[Piece]:
    container = container or container_of(stream(root))
    viewed = Viewed(container)
    write_pickle(container.stream.root, Writing(naming=viewed))
    named = storages(container, cuts=viewed.cuts() if compact else {}, **how)
    write_pickle(container.stream.root, Writing(naming=named))
    return list(named.pieces.values())


def test_storages_are_numbered_as_they_are_used() -> None:
    found = pieces(mapping({"a": tensor("9"), "b": tensor("3"), "c": tensor("9")}))
    assert [(piece.source, piece.name.key) for piece in found] == [("9", "0"), ("3", "1")]
    assert found[0] == Piece(
        "9", StorageName(("torch", "FloatStorage"), "0", "cpu", 4), ((0, 16),), True, "float32", 16
    )


@table(
    ("cls", "name", "numel"),
    [
        ("torch.cuda.HalfStorage", ("torch", "HalfStorage"), 4),
        ("torch.storage._UntypedStorage", ("torch.storage", "UntypedStorage"), 4),
        ("torch.QInt32Storage", ("torch", "QInt32Storage"), 4),
    ],
)
def test_classes_get_the_names_that_every_torch_knows(cls, name, numel) -> None:
    (piece,) = pieces(pickles.storage(cls=cls, numel=numel))
    assert (piece.name.cls, piece.name.numel) == (name, numel)


def test_locations_are_asked_for() -> None:
    asked = []
    (piece,) = pieces(tensor("5", device="cuda:1"), location_of=lambda *place: asked.append(place) or "cpu")
    assert (piece.name.location, asked) == ("cpu", [("5", "cuda:1")])


def test_cast_changes_class_and_size_of_one_type_alone() -> None:
    root = mapping({"a": tensor("0"), "b": tensor("1", cls="torch.DoubleStorage")})
    found = pieces(root, dtypes={"float32": "bfloat16"})
    assert [(piece.dtype, piece.name.cls[1], piece.nbytes) for piece in found] == [
        ("bfloat16", "BFloat16Storage", 8),
        ("float64", "DoubleStorage", 32),
    ]


def test_missing_bytes_are_named_by_their_tensor() -> None:
    container = replace(container_of(stream(tensor("0"))), stored={})
    with pytest.raises(ExportError, match="the bytes of a tensor are missing: the tensor of 0"):
        pieces(b"", container)
    (piece,) = pieces(b"", replace(container_of(stream(tensor("0", numel=0))), stored={}))
    assert piece.nbytes == 0


def test_other_persistent_ids_are_none_of_ours() -> None:
    node = PersistentId(("module", "cls"))
    container = container_of(stream(tensor()))
    for naming in (storages(container), Viewed(container)):
        assert naming.name_storage(node) is None
        assert naming.move_view(Call("f", (node, 0, (), ()), "reduce")) is None


# --- compact ------------------------------------------------------------------------------------------------


def view(geometry: str, **how: object) -> bytes:
    return tensor(numel=100, geometry=geometry, **how)


def offsets(root: bytes) -> list[Value]:
    """The offsets of all views in a compact form."""
    container = container_of(stream(root))
    viewed = Viewed(container)
    write_pickle(container.stream.root, Writing(naming=viewed))
    naming = storages(container, cuts=viewed.cuts())
    values = [value for _, value in container.stream.root.pairs]
    return [naming.move_view(value) for value in values]


def test_views_share_what_is_left() -> None:
    root = mapping({"a": view("10;4;1"), "b": view("12;4;1"), "c": view("90;2,2;4,1")})
    (piece,) = pieces(root, compact=True)
    assert (piece.ranges, piece.is_whole, piece.name.numel) == (((40, 64), (360, 384)), False, 12)
    assert offsets(root) == [0, 2, 6]


@table(
    "other",
    [
        pickles.storage(numel=100),  # all of it is wanted
        tensor(numel=100, geometry="0;100;1"),
        tensor(numel=100, geometry="99;4;1"),  # runs past the end: nobody knows what it wants
        tensor(numel=100, geometry="0;2;1,1"),
        pickles.call(
            "torch._utils._rebuild_tensor", pickles.storage(numel=100), b"K\x00", b"K\x02", b"K\x01"
        ),
    ],
)
def test_storages_that_are_wanted_whole_stay_whole(other) -> None:
    (piece,) = pieces(mapping({"a": view("10;4;1"), "b": other}), compact=True)
    assert piece.is_whole


def test_packed_types_are_not_cut() -> None:
    (piece,) = pieces(tensor(numel=8, geometry="0;2;1", cls="torch.QUInt4x2Storage"), compact=True)
    assert piece.is_whole


def test_views_of_other_types_than_their_storage() -> None:
    args = [b"K\x08", pickles.tuple_(b"K\x02"), pickles.tuple_(b"K\x01"), b"\x89", b"N"]
    storage = pickles.storage(cls="torch.storage.UntypedStorage", numel=100)
    root = pickles.call("torch._utils._rebuild_tensor_v3", storage, *args, pickles.name("torch.uint16"))
    (piece,) = pieces(mapping({"a": root}), compact=True)
    assert (piece.ranges, piece.name.numel) == (((16, 32),), 16)
    assert offsets(mapping({"a": root})) == [0]


def test_views_within_views_of_old_files_begin_in_the_whole() -> None:
    inner = pickles.legacy_storage(numel=100, view=("v", 20, 8))
    args = [b"K\x02", pickles.tuple_(b"K\x03"), pickles.tuple_(b"K\x01"), b"\x89", b"N"]
    root = mapping({"a": pickles.call("torch._utils._rebuild_tensor_v2", inner, *args)})
    container = container_of(stream(root))
    container = replace(container, stored={"0": StoredBytes(0, None, 400)})
    (call,) = (value for _, value in container.stream.root.pairs)
    assert storages(container).move_view(call) == 22
    (piece,) = pieces(b"", container, compact=True)
    assert piece.ranges == ((88, 100),)
