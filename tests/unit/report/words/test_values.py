from __future__ import annotations

from typing import Any

from inspector.report.words.values import (
    ODDITIES,
    chart_summary,
    format_index,
    format_number,
    format_share,
    scan_sentence,
    scanned_words,
    sparkline,
    statistics_lines,
)
from inspector.values.statistics import Oddity, Scan, Scanned, Statistics, build_statistics
from tests.unit.values.test_statistics import FOUND


def statistics(dtype: str = "float32", how: dict[str, Any] | None = None, **more: Any) -> Statistics:
    return build_statistics(FOUND | more, {"dtype": dtype, **(how or {})})


def test_every_figure_has_its_caption() -> None:
    assert dict(statistics_lines(statistics(dead_rows=2, unique=3))) == {
        "Values": "4",
        "NaN": "1, first at [0, 1]",
        "+Inf": "0",
        "-Inf": "0",
        "Zeros": "1 (25 %)",
        "Min": "0",
        "Max": "2",
        "Mean": "1",
        "Standard deviation": "1",
        "Norm": "3",
        "Different values": "3",
        "Rows of zeros": "2",
    }
    empty = dict(statistics_lines(statistics(numel=0, zeros=0, min=None, mean=None, first_nan=None)))
    assert (empty["Zeros"], empty["Min"], empty["Mean"]) == ("0", "-", "-")


def test_complex_quantized_and_sparse_ones_say_what_they_are() -> None:
    ends = {"min_abs": 1.0, "max_abs": 2.0, "mean": None}
    lines = dict(
        statistics_lines(
            statistics("complex64", complex_mean=[1.0, -2.0], posinf=1, first_posinf=[3], **ends)
        )
    )
    assert (lines["Mean"], lines["Max (of the magnitudes)"], lines["Infinite"]) == (
        "1 - 2i",
        "2",
        "1, first at [3]",
    )
    assert "-Inf" not in lines
    assert (
        dict(statistics_lines(statistics("complex64", complex_mean=[1.0, 2.0], **ends)))["Mean"] == "1 + 2i"
    )
    assert dict(statistics_lines(statistics("complex64", complex_mean=[None, 2.0], **ends)))["Mean"] == "-"
    quantized = dict(statistics_lines(statistics("qint8", {"scale": 0.5, "part": "values"})))
    assert (quantized["Note"], quantized["Of"]) == ("computed from its quantized elements", "values")
    sparse = dict(statistics_lines(statistics(stored=FOUND)))
    assert sparse["Stored elements"] == "4"
    assert "stored elements alone" in dict(statistics_lines(statistics(of="stored")))["Note"]


def test_shares_are_never_rounded_to_all_or_nothing() -> None:
    shares = {
        (0, 5): "0 %",
        (5, 5): "100 %",
        (1, 10**6): "under 0.01 %",
        (10**6 - 1, 10**6): "99.99 %",
        (1, 3): "33.3 %",
    }
    assert {pair: format_share(*pair) for pair in shares} == shares


def test_numbers_and_indices() -> None:
    assert [format_number(value) for value in (None, 1234567, 0.1234567, 1e-9)] == [
        "-",
        "1,234,567",
        "0.123457",
        "1e-09",
    ]
    assert format_index((0, 3)) == "[0, 3]"
    assert format_index(()) == "[]"


def test_a_histogram_is_a_line_and_a_sentence() -> None:
    assert sparkline([0, 1, 8, 100]) == " \u2581\u2581\u2588"
    assert sparkline([1] * 64, 32) == "\u2588" * 32
    assert sparkline([]) == ""
    assert (
        chart_summary(statistics())
        == "2 bins from 0 to 2; the fullest, from 1 to below 3, holds 2 of 3 values."
    )
    assert chart_summary(statistics(max=0.0)) == "Every finite value is 0."
    assert chart_summary(statistics(counts=[])) == "There are no finite values."


def test_a_scan_is_a_sentence_and_a_line_for_each_odd_tensor() -> None:
    found = statistics(posinf=1, first_posinf=[3, 0], neginf=1, first_neginf=[2, 1], dead_rows=1)
    tensors = [Scanned(row=row, statistics=found, oddities=(one,)) for row, one in enumerate(Oddity)]
    tensors += [Scanned(row=6, statistics=None, why="it was saved from the meta device")]
    assert scan_sentence(Scan(tensors=tuple(tensors), nbytes=9)) == (
        "6 tensors read: 1 with NaN, 1 with infinities, 1 with huge numbers, 1 all zeros, 1 constant, "
        "1 with rows of zeros; 1 could not be read."
    )
    assert scan_sentence(Scan(tensors=(), nbytes=0)) == "0 tensors read: nothing odd."
    assert [scanned_words(one) for one in tensors] == [
        "NaN: 1, first at [0, 1]",
        "infinite: 2, first at [2, 1]",
        "from 0 to 2",
        "is all zeros",
        "0 throughout",
        "1 row of zeros",
        "not read: it was saved from the meta device",
    ]
    assert set(ODDITIES) == set(Oddity)
