from __future__ import annotations

import csv
import io

from inspector.report.charts.bars import Bar, Chart, Segment, device_chart
from inspector.report.charts.tables import charts_csv, map_csv
from inspector.report.charts.treemap import lay_out
from tests.unit.report.charts.maps import map_of, sized
from tests.unit.report.rows import checkpoint, storage, tensor


def read(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_the_numbers_are_those_of_the_bars() -> None:
    file = checkpoint(storage("0", "cuda:0", 3000), storage("1", "cpu", 1000))
    room = Bar(
        label="cuda:0",
        segments=(Segment(label="cuda:0", color=0, nbytes=30),),
        text="",
        capacity_nbytes=20,
    )
    charts = (device_chart(file, {"0": "cpu"}, {}), Chart(title="Room, of a card", bars=(room,)))
    rows = read(charts_csv(charts))
    assert [(row["bar"], row["part"], row["bytes"], row["share_of_bar"]) for row in rows] == [
        ("As saved", "cuda:0", "3000", "0.750000"),
        ("As saved", "cpu", "1000", "0.250000"),
        ("After the map", "cpu", "4000", "1.000000"),
        ("cuda:0", "cuda:0", "30", "1.000000"),
    ]
    assert [(row["chart"], row["capacity_bytes"], row["bytes_too_much"]) for row in rows[2:]] == [
        ("Memory by device", "", ""),
        ("Room, of a card", "20", "10"),
    ]
    empty = Bar(label="b", segments=(Segment(label="p", color=0, nbytes=0),), text="")
    assert read(charts_csv([Chart(title="", bars=(empty,))]))[0]["share_of_bar"] == "0"


def test_the_numbers_are_those_of_the_cells() -> None:
    page = map_of(
        sized({"big.w": 6000, "big.bias": 2000, "q": 1000} | {f"tiny.{n}": 4 for n in range(5)} | {"t": 4})
    )
    cells = lay_out(page.areas, 0, 300, 200).cells
    rows = read(map_csv(page, cells))
    assert [int(row["bytes"]) for row in rows] == [cell.nbytes for cell in cells]
    assert sum(int(row["bytes"]) for row in rows) == 9024
    assert sum(int(row["tensors"]) for row in rows) == 9
    for row in rows:
        assert int(row["device:cuda:0"]) + int(row["device:cpu"]) == int(row["bytes"])
    assert {row["path"]: row["what"] for row in rows}["model/big.w"] == "row"


def test_what_belongs_to_parts_and_to_nobody() -> None:
    file = checkpoint(
        tensor("q", storage="0"),
        tensor("q", "scales", storage="1", part_of=0),
        storage("0", nbytes=100),
        storage("1", nbytes=90),
        storage("2", nbytes=80),
    )
    page = map_of(file)
    rows = read(map_csv(page, lay_out(page.areas, 0, 300, 200).cells))
    assert {(row["what"], row["tensors"], row["bytes"]) for row in rows} == {
        ("own", "1", "100"),
        ("row", "1", "90"),
        ("loose", "0", "80"),
    }


def test_no_name_becomes_a_formula() -> None:
    for name in ("=HYPERLINK(1)", "+a", "-a", "@x"):
        page = map_of(
            checkpoint(tensor(name, storage="0"), tensor("b", storage="1"), storage("0"), storage("1"))
        )
        paths = {row["path"] for row in read(map_csv(page, lay_out(page.areas, 0, 300, 200).cells))}
        assert paths == {f"'{name}", "b"}
