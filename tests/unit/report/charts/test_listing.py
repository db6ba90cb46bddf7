"""The map as a table: what is there adds up to what is shown."""

from __future__ import annotations

from inspector.records import replace
from inspector.report.charts import tables as module
from inspector.report.charts.tables import TITLES, table_of
from tests.unit.report.charts.maps import map_of, node_of, sized
from tests.unit.report.rows import checkpoint, storage, tensor

FILE = sized({"big.w": 10**9, "big.bias": 10**9, "tiny.0": 40, "tiny.1": 40, "x.bias": 80})


def test_the_rows_below_are_listed_the_largest_first() -> None:
    page = map_of(FILE)
    (line,) = table_of(page)
    assert len(line.texts) == len(TITLES)
    assert line.texts == ("model", "2.0 GB", "100.0%", "5", "cuda:0 1.0 GB, cpu 1.0 GB")
    assert (line.is_row, line.can_enter) == (True, True)
    inner = map_of(FILE, root=line.node)
    assert [line.texts[:4] for line in table_of(inner)] == [
        ("big", "2.0 GB", "100.0%", "2"),
        ("tiny", "80 B", "<0.1%", "2"),
        ("x", "80 B", "<0.1%", "1"),
    ]
    assert [line.can_enter for line in table_of(map_of(FILE, root=node_of(page.areas, "model", "x")))] == [
        False
    ]


def test_what_is_no_row_is_counted_all_the_same(monkeypatch) -> None:
    monkeypatch.setattr(module, "_MOST_LINES", 1)
    page = map_of(FILE, root=node_of(map_of(FILE).areas, "model"))
    lines = table_of(page)
    assert [line.texts for line in lines[1:]] == [("2 smaller rows", "160 B", "<0.1%", "3", "")]
    assert not lines[1].is_row
    loose = map_of(
        checkpoint(tensor("w", storage="0", nbytes=60), storage("0", nbytes=60), storage("1", nbytes=40))
    )
    assert [line.texts for line in table_of(loose)] == [
        ("w", "60 B", "60.0%", "1", "cpu"),
        ("in no tensor", "40 B", "40.0%", "", ""),
    ]
    own = table_of(replace(loose, root=node_of(loose.areas, "w")))
    assert [(line.texts, line.is_row) for line in own] == [(("w", "60 B", "100.0%", "1", ""), False)]
    assert table_of(map_of(checkpoint())) == ()
