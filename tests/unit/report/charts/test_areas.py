from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inspector.report.charts.areas import OTHERS, color_by, telling_property
from inspector.report.colors import NEUTRAL
from tests.unit.report.charts.maps import areas_of, node_of, sized
from tests.unit.report.rows import checkpoint, storage, tensor, value

TIED = checkpoint(
    tensor("model", "emb.weight", storage="0", nbytes=400, shape=(100,)),
    tensor("model", "head.weight", storage="0", nbytes=400, shape=(100,)),
    tensor("model", "head.slice", storage="0", nbytes=40, shape=(10,), role="buffer"),
    value("epoch"),
    storage("0", "cpu", 1000),
)


def test_a_shared_storage_belongs_to_the_first_tensor_that_views_it() -> None:
    areas = areas_of(TIED)
    assert areas.nbytes(0) == 1000  # what the file stores: not 840, which its tensors view, nor 440
    assert areas.nbytes(node_of(areas, "model", "emb")) == 1000
    assert areas.nbytes(node_of(areas, "model", "head")) == 0
    assert areas.tensors(0) == 1
    assert [areas.tree.nodes[node].name for node, _ in areas.below(node_of(areas, "model"))] == ["emb"]


def test_what_no_tensor_views_is_part_of_the_whole() -> None:
    areas = areas_of(checkpoint(tensor("a", storage="0"), storage("0"), storage("1", nbytes=5)))
    assert (areas.nbytes(0), areas.loose_nbytes) == (21, 5)
    assert areas.nbytes(node_of(areas, "a")) == 16


def test_parts_of_a_composite_and_its_own_bytes() -> None:
    file = checkpoint(
        tensor("q", storage="0", layout="strided"),
        tensor("q", "scales", storage="1", part_of=0, role="other"),
        tensor("s", layout="sparse_coo", stride=None),
        tensor("s", "values", storage="2", part_of=2),
        storage("0", nbytes=100),
        storage("1", nbytes=7),
        storage("2", nbytes=30),
    )
    areas = areas_of(file)
    q, s = node_of(areas, "q"), node_of(areas, "s")
    assert (areas.own_nbytes(q), areas.nbytes(q)) == (100, 107)
    assert (areas.own_nbytes(s), areas.nbytes(s)) == (0, 30)


def test_kinds_stand_in_order_and_have_their_colors() -> None:
    file = checkpoint(
        tensor("a", storage="0", device="cuda:1", role="optimizer"),
        tensor("b", storage="1", device="cuda:0", dtype="int8"),
        tensor("c", storage="2", device="cpu"),
        storage("0", "cuda:1", 5),
        storage("1", "cuda:0", 50),
        storage("2", "cpu", 500),
    )
    areas = areas_of(file)
    by = {name: color_by(areas, name) for name in ("device", "dtype", "role")}
    shown = {name: [(kind.label, kind.color, kind.nbytes) for kind in it.kinds] for name, it in by.items()}
    assert shown["device"] == [("cuda:0", 0, 50), ("cuda:1", 1, 5), ("cpu", NEUTRAL, 500)]
    assert shown["dtype"] == [("float32", 0, 505), ("int8", 1, 50)]
    assert shown["role"] == [("parameter", 0, 550), ("optimizer", 2, 5)]
    b = node_of(areas, "b")
    assert by["device"].parts(b, b + 1) == (50, 0, 0)
    assert by["device"].parts(0, areas.end(0)) == (50, 5, 500)


def test_kinds_beyond_what_can_be_told_apart_are_one() -> None:
    rows = []
    for number in range(50):
        rows += [tensor(str(number), storage=str(number), dtype=f"odd\n{number}")]
        rows += [storage(str(number), nbytes=100 - number)]
    coloring = color_by(areas_of(checkpoint(*rows)), "dtype")
    assert len(coloring.kinds) == 32
    assert coloring.kinds[0].label == r"odd\u000a0"
    last = coloring.kinds[-1]
    assert (last.label, last.value, last.color) == (OTHERS, None, NEUTRAL)
    assert sum(kind.nbytes for kind in coloring.kinds) == sum(range(51, 101))
    assert sum(coloring.parts(0, 60)) == sum(range(51, 101))


NAMES = st.lists(
    st.lists(st.sampled_from("abcd"), min_size=1, max_size=4).map(".".join), unique=True, max_size=20
)


@pytest.mark.wide
@settings(max_examples=60, deadline=None)
@given(NAMES, st.data())
def test_every_row_has_what_its_rows_have(names, data) -> None:
    names = [name for name in names if not any(other.startswith(f"{name}.") for other in names)]
    file = sized({name: data.draw(st.integers(0, 10**12)) for name in names})
    areas = areas_of(file)
    assert areas.nbytes(0) == sum(row.nbytes for row in file.storages)
    coloring = color_by(areas, "device")
    for node, row in enumerate(areas.tree.nodes):
        below = sum(nbytes for _, nbytes in areas.below(node))
        assert areas.nbytes(node) == areas.own_nbytes(node) + below
        assert sum(coloring.parts(node, areas.end(node))) == areas.nbytes(node)
        assert all(node < child < areas.end(node) for child in row.children)
        assert areas.tensors(node) == bool(areas.own_nbytes(node)) + sum(map(areas.tensors, row.children))


def test_a_map_is_colored_by_what_tells_its_bytes_apart() -> None:
    def telling(**other: object) -> str:
        rows = tensor("a", storage="0"), tensor("b", storage="1", **other)
        return telling_property(areas_of(checkpoint(*rows, storage("0"), storage("1"))))

    assert telling(device="cuda:0", role="optimizer") == "device"
    assert telling(role="optimizer", dtype="int8") == "role"
    assert telling(dtype="int8") == "dtype"
    assert telling() == "role"
