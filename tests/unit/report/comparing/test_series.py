from __future__ import annotations

import json

import pytest

from inspector.diff.series import Point, Series, SeriesRow
from inspector.report.comparing.series import counters_of, format_series, modules_of, series_document

SERIES = Series(
    ("1.pt", "2.pt"),
    (
        SeriesRow("m/l.w", 4, (Point(3.0, None, None), Point(6.0, 3.0, 3.0))),
        SeriesRow("m/l.v", 4, (Point(4.0, None, None), Point(8.0, 4.0, 4.0, 1))),
        SeriesRow("x", 1, (Point(0.0, None, None), None)),
    ),
)


def test_modules_are_their_tensors_as_one_vector() -> None:
    whole, module, lone = modules_of(SERIES)
    assert whole.points == (Point(5.0, None, None), None)
    assert (module.name, module.points) == ("m/l", (Point(5.0, None, None), Point(10.0, 5.0, 5.0, 1)))
    assert (lone.name, lone.points) == ("x", (Point(0.0, None, None), None))
    assert modules_of(Series(("1", "2"), ()))[0].points == (None, None)


def test_the_table_has_a_line_for_each_module_and_a_column_for_each_file() -> None:
    lines = format_series(SERIES).splitlines()
    assert lines[:3] == ["2 checkpoints", "  1  1.pt", "  2  2.pt"]
    norms = {line.split()[0]: line.split()[-2:] for line in lines[6:9]}
    assert norms == {"all": ["5", "\u2013"], "m/l": ["5", "10*"], "x": ["0", "\u2013"]}
    assert lines[-1] == "* without the elements that are NaN or infinite in a file"
    assert "*" not in format_series(SERIES._replace(rows=SERIES.rows[:1]))


def test_counters_of_steps_have_lines_of_their_own() -> None:
    step = Point(100.0, None, None), Point(200.0, 100.0, 100.0)
    other = Point(7.0, None, None), None
    rows = [("o/0/step", step), ("o/1/step", step), ("bn.step", other)]
    counters = (SeriesRow(path, 1, points, is_counter=True) for path, points in rows)
    series = SERIES._replace(rows=(*SERIES.rows, *counters))
    assert modules_of(series) == modules_of(SERIES)
    assert [line.name for line in counters_of(series)] == ["o/0/step and 1 more", "bn.step"]
    lines = format_series(series).splitlines()
    start = lines.index("Counters and scores")
    assert [line.split()[-2:] for line in lines[start + 2 : start + 4]] == [["100", "200"], ["7", "\u2013"]]
    assert [row["path"] for row in series_document(series)["tensors"] if row["counter"]] == [
        row[0] for row in rows
    ]


def test_the_document_has_every_tensor() -> None:
    found = series_document(SERIES)
    json.dumps(found, allow_nan=False)
    assert found["series"] == ["1.pt", "2.pt"]
    assert found["tensors"][1] == {
        "path": "m/l.v",
        "numel": 4,
        "counter": False,
        "norm": [4.0, 8.0],
        "to_previous": [None, 4.0],
        "to_first": [None, 4.0],
        "skipped": [0, 1],
        "skipped_to_previous": [0, 0],
    }
    assert [row["path"] for row in found["modules"]] == ["m/l", "x"]
    assert found["total"]["norm"] == pytest.approx([5.0, None])


def test_files_have_their_numbers_and_what_is_not_read_its_reason() -> None:
    series = SERIES._replace(numbers=(5.0, None), unit="epoch", problems=((1, "cut off"),))
    lines = format_series(series).splitlines()
    assert lines[:5] == [
        "2 checkpoints",
        "  5  1.pt",
        "  \u2013  2.pt",
        "     not read: cut off",
        "Numbered by epoch.",
    ]
    assert lines[lines.index("Norm") + 1].split() == ["5", "\u2013"]
    found = series_document(series)
    assert (found["numbers"], found["numbered_by"]) == ([5.0, None], "epoch")
    assert found["unread"] == [{"path": "2.pt", "message": "cut off"}]
    assert series_document(SERIES)["numbered_by"] is None
