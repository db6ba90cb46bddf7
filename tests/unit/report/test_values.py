from __future__ import annotations

import json

import pytest

from inspector.errors import PlanError
from inspector.report.values import (
    choose_tensors,
    scan_document,
    scan_text,
    statistics_document,
    statistics_text,
)
from inspector.values.statistics import Oddity, Scan, Scanned
from tests.unit.report.rows import value
from tests.unit.report.words.test_values import statistics
from tests.unit.values.rows import checkpoint, stored, tensor
from tests.unit.values.test_statistics import FOUND

OPENED = checkpoint(tensor("m", "a.b"), tensor("m", "a*"), tensor("o", "a.b"), value("epoch"), stored())


def test_paths_patterns_and_groups_choose_tensors() -> None:
    cases = {
        ("m/a.b",): [0],
        ("m/a*",): [1],
        ("m/*",): [0, 1],
        ("m",): [0, 1],
        ("**",): [0, 1, 2],
        ("o/a.b", "m/a.b"): [0, 2],
    }
    assert {patterns: choose_tensors(OPENED, patterns) for patterns in cases} == cases


def test_what_chooses_nothing_says_what_may_have_been_meant() -> None:
    with pytest.raises(PlanError, match=r"did you mean m/a\.b"):
        choose_tensors(OPENED, ["m/a.c"])
    with pytest.raises(PlanError, match="a value and no tensor"):
        choose_tensors(OPENED, ["epoch"])
    with pytest.raises(PlanError) as caught:
        choose_tensors(OPENED, ["zzzzzz\x1b"])
    assert "\x1b" not in str(caught.value)
    assert "did you mean" not in str(caught.value)


def test_the_document_is_that_of_the_contract() -> None:
    found = statistics_document(OPENED, 0, statistics())
    assert (found["schema"], found["tensor"], found["dtype"], found["shape"]) == (
        1,
        "m/a.b",
        "float32",
        [2, 3],
    )
    assert (found["min"], found["max"], found["first_nan"], found["first_posinf"]) == (0.0, 2.0, [0, 1], None)
    assert found["histogram"] == {"edges": [0.0, 1.0, 3.0], "counts": [1, 2]}
    assert found["magnitudes"] == {"exponent": 0, "counts": [1, 1]}
    json.dumps(found, allow_nan=False)


def test_what_is_special_adds_keys() -> None:
    ends = {"min_abs": 1.0, "max_abs": 2.0, "mean": None, "complex_mean": [1.0, None]}
    found = statistics_document(OPENED, 0, statistics("complex64", **ends))
    assert (found["min"], found["max_abs"], found["complex_mean"]) == (None, 2.0, [1.0, None])
    found = statistics_document(OPENED, 0, statistics("qint8", {"axis": 0, "part": "values"}))
    assert (found["dequantized"], found["of"]) == (True, "values")
    found = statistics_document(OPENED, 0, statistics(of="stored"))
    assert found["of"] == "stored"
    assert statistics_document(OPENED, 0, statistics(stored=FOUND))["stored"]["numel"] == 4


def test_a_scan_lists_what_is_odd_and_what_was_not_read() -> None:
    tensors = (
        Scanned(row=0, statistics=statistics(), oddities=(Oddity.NAN,), spark=(1, 8)),
        Scanned(row=1, statistics=None, why="no bytes"),
        Scanned(row=2, statistics=statistics()),
    )
    scan = Scan(tensors=tensors, nbytes=48)
    found = scan_document(OPENED, scan, ())
    assert (found["scanned"], found["nbytes"]) == (2, 48)
    assert found["odd"] == [{"path": "m/a.b", "what": ["nan"]}]
    assert found["unread"] == [{"path": "m/a*", "why": "no bytes"}]
    assert [one["path"] for one in found["tensors"]] == ["m/a.b", "o/a.b"]
    lines = scan_text(OPENED, scan).splitlines()
    assert lines[1:3] == ["  m/a.b  NaN: 1, first at [0, 1]", "  m/a*  not read: no bytes"]
    assert len(lines) == 4


def test_text_has_a_line_for_each_figure() -> None:
    text = statistics_text(OPENED.tensors[0], statistics())
    assert text.splitlines()[0] == "m/a.b  float32  2 \u00d7 3"
    assert text.splitlines()[-1].endswith("|\u2584\u2588|")
    assert "Histogram" not in statistics_text(OPENED.tensors[0], statistics(counts=[]))
