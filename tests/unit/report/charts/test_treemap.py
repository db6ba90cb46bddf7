from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inspector.report.charts import treemap
from inspector.report.charts.modules import parents_of
from inspector.report.charts.treemap import Box, Cell, Picture, lay_out, squarify
from tests.unit.report.charts.maps import areas_of, node_of, sized
from tests.unit.report.rows import checkpoint, storage, tensor

ROOM = Box(0, 0, 600, 400)


def overlap(one: Box, other: Box) -> float:
    width = min(one.x + one.width, other.x + other.width) - max(one.x, other.x)
    height = min(one.y + one.height, other.y + other.height) - max(one.y, other.y)
    return max(width, 0) * max(height, 0)


@settings(max_examples=80, deadline=None)
@given(
    st.lists(st.integers(1, 10**15), min_size=1, max_size=40),
    st.floats(1, 5000),
    st.floats(1, 5000),
)
def test_areas_are_bytes_and_fill_the_room(sizes, width, height) -> None:
    room = Box(3.0, 5.0, width, height)
    sizes.sort(reverse=True)
    cells = list(squarify([Cell(number, "row", size, room) for number, size in enumerate(sizes)], room))
    scale = room.area / sum(sizes)
    assert [cell.nbytes for cell in cells] == sizes
    for cell in cells:
        assert cell.box.area == pytest.approx(cell.nbytes * scale, rel=1e-6, abs=1e-6 * room.area)
        assert cell.box.x >= room.x - 1e-6
        assert cell.box.x + cell.box.width <= room.x + room.width + 1e-6 * width
        assert cell.box.y + cell.box.height <= room.y + room.height + 1e-6 * height
    shared = sum(overlap(one.box, two.box) for one in cells for two in cells if one.node < two.node)
    assert shared <= 1e-6 * room.area


def test_cells_are_as_square_as_in_the_paper() -> None:
    cells = list(squarify([Cell(0, "row", size, ROOM) for size in (6, 6, 4, 3, 2, 2, 1)], ROOM))
    ratios = [max(cell.box.width / cell.box.height, cell.box.height / cell.box.width) for cell in cells]
    assert max(ratios) < 3  # slices would be up to 24 times as long as wide
    assert cells[0].box == Box(0, 0, 300, 200)
    assert cells[1].box == Box(0, 200, 300, 200)


def test_the_smaller_rows_alone_fill_the_room_in_proportion() -> None:
    sizes = {"big": 10**9} | {f"s{n}": (n + 1) * 1000 for n in range(30)} | {"x": 4}
    areas = areas_of(sized(sizes))
    root = node_of(areas, "model")
    whole = lay_out(areas, root, 600, 400)
    (rest,) = (cell for cell in whole.cells if cell.what == "rest")
    inner = lay_out(areas, root, 600, 400, rest.shown)
    assert sum(cell.nbytes for cell in inner.cells) == rest.nbytes
    assert {cell.what for cell in inner.cells} <= {"row", "rest"}
    assert len(inner.cells) > 20
    assert not {cell.node for cell in inner.cells if cell.what == "row"} & set(rest.shown)
    for cell in inner.cells:
        assert cell.box.area == pytest.approx(600 * 400 * cell.nbytes / rest.nbytes, rel=1e-6)
        assert cell.what == "row" or set(cell.shown) > set(rest.shown)
    tiny = lay_out(areas, root, 10, 10, rest.shown)
    assert [(cell.what, cell.nbytes, cell.shown) for cell in tiny.cells] == [
        ("rest", rest.nbytes, rest.shown)
    ]


NAMES = st.lists(
    st.lists(st.sampled_from("abcd"), min_size=1, max_size=4).map(".".join), unique=True, max_size=25
)


@settings(max_examples=60, deadline=None)
@given(NAMES, st.data())
def test_every_byte_is_in_one_cell_in_proportion(names, data) -> None:
    names = [name for name in names if not any(other.startswith(f"{name}.") for other in names)]
    sizes = st.one_of(st.integers(0, 100), st.integers(0, 10**12))
    areas = areas_of(sized({name: data.draw(sizes) for name in names}))
    picture = lay_out(areas, 0, 600, 400)
    assert sum(cell.nbytes for cell in picture.cells) == areas.nbytes(0)
    for cell in picture.cells:
        share = cell.nbytes / areas.nbytes(0)
        assert cell.box.area == pytest.approx(share * ROOM.area, rel=1e-6, abs=1e-3)
    for frame in picture.frames:
        inside = sum(overlap(cell.box, frame.box) for cell in picture.cells)
        assert frame.box.area == pytest.approx(inside, rel=1e-6, abs=1e-3)
    found = [cell.node for cell in picture.cells if cell.what == "row"]
    assert len(found) == len(set(found))


def test_what_is_too_small_is_one_cell_for_its_group() -> None:
    areas = areas_of(sized({"big.w": 10**9} | {f"small.{n}": 10 for n in range(1234)} | {"c": 4, "d": 8}))
    picture = lay_out(areas, node_of(areas, "model"), 600, 400)
    rest = [cell for cell in picture.cells if cell.what == "rest"]
    assert [(cell.nbytes, cell.shown) for cell in rest] == [(12352, (node_of(areas, "model", "big"),))]
    assert len(picture.cells) == 2


def test_one_small_row_keeps_its_name() -> None:
    areas = areas_of(sized({"big": 10**9, "small": 10}))
    cells = lay_out(areas, node_of(areas, "model"), 600, 400).cells
    assert {(cell.node, cell.what) for cell in cells} == {
        (node_of(areas, "model", "big"), "row"),
        (node_of(areas, "model", "small"), "row"),
    }


def test_own_and_loose_bytes_have_cells() -> None:
    file = checkpoint(
        tensor("q", storage="0"),
        tensor("q", "scales", storage="1", part_of=0),
        storage("0", nbytes=100),
        storage("1", nbytes=90),
        storage("2", nbytes=80),
    )
    areas = areas_of(file)
    picture = lay_out(areas, 0, 600, 400)
    q = node_of(areas, "q")
    found = {(cell.node, cell.what, cell.nbytes) for cell in picture.cells}
    assert found == {(q, "own", 100), (q + 1, "row", 90), (0, "loose", 80)}
    assert [(frame.node, frame.depth) for frame in picture.frames] == [(0, 0), (q, 1)]


def test_nothing_to_draw() -> None:
    areas = areas_of(checkpoint(tensor("m", device="meta", nbytes=10**9)))
    assert lay_out(areas, 0, 600, 400) == Picture(0, (), ())
    full = areas_of(sized({"a": 4}))
    assert lay_out(full, 0, 0, 400).cells == ()
    assert lay_out(full, 0, 600, 0).cells == ()


def test_a_million_rows_are_not_looked_at(monkeypatch) -> None:
    monkeypatch.setattr(treemap, "_MOST_VISITED", 40)
    areas = areas_of(sized({f"{group}.{n}": 1000 - group for group in range(9) for n in range(20)}))
    picture = lay_out(areas, node_of(areas, "model"), 600, 400)
    opened = [frame.node for frame in picture.frames]
    assert opened == [node_of(areas, "model"), node_of(areas, "model", "0")]  # the largest first
    assert sum(cell.nbytes for cell in picture.cells) == areas.nbytes(0)


GRID = Picture(
    0,
    tuple(
        Cell(10 + number, "row", 1, box)
        for number, box in enumerate(
            (Box(0, 0, 100, 100), Box(100, 0, 50, 50), Box(100, 50, 50, 50), Box(150, 0, 50, 100))
        )
    ),
    (),
)


def test_steps_go_to_the_neighbor() -> None:
    steps = {
        (0, "right"): 1,
        (1, "down"): 2,
        (2, "up"): 1,
        (1, "left"): 0,
        (2, "left"): 0,
        (1, "right"): 3,
        (3, "left"): 1,
        (0, "left"): 0,
        (0, "up"): 0,
        (0, "down"): 0,
    }
    assert {key: GRID.step(*key) for key in steps} == steps


def test_a_point_is_in_one_cell() -> None:
    assert [GRID.cell_at(x, y) for x, y in ((0, 0), (99, 99), (100, 50), (199, 99), (200, 0), (-1, 0))] == [
        0,
        0,
        2,
        3,
        None,
        None,
    ]


def test_the_place_of_a_row() -> None:
    areas = areas_of(sized({"big.w": 10**9, "big.v": 10**9} | {f"small.{n}": 10 for n in range(9)}))
    model = node_of(areas, "model")
    picture = lay_out(areas, model, 600, 400)

    def box_of(*names: str) -> Box | None:
        node = node_of(areas, *names)
        return picture.box_of(node, parents_of(areas.tree, node))

    whole = Box(0, 0, 600, 400)
    assert box_of("model") == whole
    assert box_of("model", "big") == next(frame.box for frame in picture.frames if frame.depth == 1)
    assert box_of("model", "big", "w") == next(
        cell.box
        for cell in picture.cells
        if cell.nbytes == 10**9 and cell.node == node_of(areas, "model", "big", "w")
    )
    small = next(cell.box for cell in picture.cells if cell.nbytes == 90)
    assert box_of("model", "small") == box_of("model", "small", "3") == small
    inner = lay_out(areas, node_of(areas, "model", "big"), 600, 400)
    assert inner.box_of(node_of(areas, "model", "small"), [model, 0]) is None
    several = areas_of(sized({"big.w": 10**9} | {f"s{n}.w": 10 for n in range(9)}))
    picture = lay_out(several, 0, 600, 400)
    leaf = node_of(several, "model", "s3", "w")
    rest = next(cell.box for cell in picture.cells if cell.what == "rest")
    assert picture.box_of(leaf, parents_of(several.tree, leaf)) == rest
