from __future__ import annotations

from inspector.records import replace
from inspector.report.charts.modules import (
    Crumb,
    ModuleMap,
    facts_of,
    labels_of,
    parents_of,
    parts_of,
    root_for,
)
from inspector.report.charts.treemap import Box, Cell, lay_out
from tests.unit.report.charts.maps import map_of, node_of, sized
from tests.unit.report.rows import checkpoint, storage, tensor

SIZES = {"big.w": 10**9, "big.bias": 10**9} | {f"tiny.{n}": 40 for n in range(7)} | {"x.bias": 80}
FILE = sized(SIZES)


def cell_of(page: ModuleMap, what: str) -> Cell:
    return next(cell for cell in lay_out(page.areas, page.root, 600, 400).cells if cell.what == what)


def test_the_way_to_what_is_shown() -> None:
    page = map_of(FILE)
    assert page.crumbs == (Crumb(0, "Whole file"),)
    assert page.headline == "2.0 GB in 10 tensors"
    model, big = node_of(page.areas, "model"), node_of(page.areas, "model", "big")
    page = map_of(FILE, root=big)
    assert page.crumbs == (Crumb(0, "Whole file"), Crumb(model, "model"), Crumb(big, "big"))
    assert page.headline == "2.0 GB in 2 tensors"
    assert parents_of(page.areas.tree, big) == [model, 0]


def test_the_map_that_shows_a_row() -> None:
    areas = map_of(FILE).areas
    model, big = node_of(areas, "model"), node_of(areas, "model", "big")
    tiny = node_of(areas, "model", "tiny")
    assert root_for(areas.tree, big, tiny) == model
    assert root_for(areas.tree, big, big + 1) == big
    assert root_for(areas.tree, big, big) == big
    assert root_for(areas.tree, big, 0) == 0
    assert root_for(areas.tree, big, 10**6) == big  # a row of a file that was shown before


def test_a_tensor_in_words() -> None:
    page = map_of(FILE)
    cell = cell_of(page, "row")
    assert labels_of(page, cell) == ("big.w", "w")
    assert facts_of(page, cell) == (
        "model/big.w",
        "1.0 GB (1,000,000,000 bytes), 50.0% of the file",
        "cuda:0",
        "float32, 250000000, parameter, cuda:0",
        "250,000,000 parameters",
    )
    inner = map_of(FILE, root=node_of(page.areas, "model", "big"))
    assert labels_of(inner, cell) == ("w",)
    assert facts_of(inner, cell)[1].endswith("50.0% of the file, 50.0% of what is shown")


def test_a_group_in_words() -> None:
    page = map_of(sized({"big.w": 600, "big.bias": 400, "x": 4}))
    big = node_of(page.areas, "model", "big")
    cell = Cell(big, "row", 1000, cell_of(page, "row").box)
    assert parts_of(page, cell) == (600, 400)
    assert facts_of(page, cell)[0] == "model/big"
    assert facts_of(page, cell)[2:] == ("cuda:0 600 B, cpu 400 B", "2 tensors", "250 parameters")


def test_smaller_rows_in_words() -> None:
    page = map_of(FILE)
    cell = cell_of(page, "rest")
    assert labels_of(page, cell) == ("8 smaller tensors", "8 smaller", "8")
    assert parts_of(page, cell) == (280, 80)
    assert facts_of(page, cell) == (
        "8 smaller tensors in model",
        "360 B (360 bytes), <0.1% of the file",
        "cuda:0 280 B, cpu 80 B",
    )


def test_a_slice_of_a_long_list_is_named() -> None:
    page = map_of(sized({f"w{n}": 4 for n in range(2500)}))
    model = node_of(page.areas, "model")
    bucket = page.areas.tree.nodes[model].children[1]
    cell = Cell(bucket, "row", 4000, Box(0, 0, 9, 9))
    assert facts_of(page, cell)[0] == "model: 1,000 \u2026 1,999   (w1000 \u2026)"


def test_bytes_of_a_composite_and_of_nobody_in_words() -> None:
    file = checkpoint(
        tensor("q", storage="0", shape=(1,), nbytes=40),
        tensor("q", "scales", storage="1", part_of=0),
        storage("0", nbytes=100),
        storage("1", nbytes=90),
        storage("2", nbytes=80),
    )
    page = map_of(file)
    scales = next(cell for cell in lay_out(page.areas, 0, 600, 400).cells if cell.what == "row")
    assert labels_of(page, scales) == ("q/scales", "scales")
    own, loose = cell_of(page, "own"), cell_of(page, "loose")
    assert (labels_of(page, own), parts_of(page, own)) == (("q (data)", "q"), (100,))
    assert facts_of(page, own)[0] == "q, without its parts"
    assert facts_of(page, own)[-2:] == ("1 parameter", "It shows 40 B of its storage of 100 B.")
    assert (labels_of(page, loose), parts_of(page, loose)) == (("in no tensor",), (0,))
    assert facts_of(page, loose) == (
        "Stored bytes that belong to no tensor",
        "80 B (80 bytes), 29.6% of the file",
    )
    assert page.notes == ("80 B are stored and belong to no tensor.",)


def test_many_kinds_are_cut() -> None:
    rows = []
    for number in range(6):
        rows += [tensor("m", f"{number}", storage=str(number), device=f"cuda:{number}")]
        rows += [storage(str(number), nbytes=10 - number)]
    page = map_of(checkpoint(*rows))
    whole = Cell(node_of(page.areas, "m"), "row", 45, cell_of(page, "row").box)
    assert facts_of(page, whole)[2] == "cuda:0 10 B, cuda:1 9 B, cuda:2 8 B, cuda:3 7 B, 2 more"
    root = replace(page, root=0)
    assert facts_of(root, whole._replace(node=0))[0] == "Whole file"


def test_what_has_no_area_is_said() -> None:
    one = checkpoint(
        tensor("a", storage="0"),
        tensor("b", storage="0"),
        tensor("c", storage="1"),
        tensor("m", device="meta"),
        tensor("x", stride=None, device="xla:0"),
        storage("0"),
        storage("1", nbytes=5000, missing=True),
    )
    assert map_of(one).notes == (
        "1 tensor shares a storage with an earlier one, where its bytes are counted.",
        "1 tensor is on the meta device, without data and so without an area.",
        "1 tensor is stored in the pickle itself, and without an area here.",
        "5.0 KB in 1 storage is missing from the file, and hatched.",
    )
    two = checkpoint(tensor("m", device="meta"), tensor("n", device="meta"))
    assert map_of(two).notes == ("2 tensors are on the meta device, without data and so without an area.",)
    assert map_of(two).headline == "0 B in 0 tensors"
    gone = checkpoint(storage("0", missing=True), storage("1", missing=True))
    assert map_of(gone).notes == ("32 B in 2 storages are missing from the file, and hatched.",)
