"""Slices as NumPy takes them."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np
import pytest

from inspector.errors import ValuesError
from inspector.worker.values import slices
from inspector.worker.values.slices import Plane, cells, picture, ranks, saved_rows
from tests.unit.values.test_arrays import Bytes, request

VALUES = np.arange(2 * 3 * 4 * 5, dtype=np.float32).reshape(2, 3, 4, 5)


def plane(
    values: np.ndarray = VALUES, row: int | None = 1, column: int | None = 3, index: Any = None, **more: Any
) -> Plane:
    opened: Any = Bytes(
        **{"0": values.tobytes(), "s": np.array([0.5, 2.0]).tobytes(), "z": np.array([1, 2]).tobytes()}
    )
    dtype = more.pop("dtype", str(values.dtype))
    asked = request(dtype=dtype, shape=values.shape, itemsize=values.itemsize) | more
    return Plane(asked, opened, {"row": row, "column": column, "index": index or [0] * values.ndim})


def test_any_two_dimensions_are_a_plane() -> None:
    everything = range(99)
    cases = {
        (1, 3, (1, 0, 2, 0)): VALUES[1, :, 2, :],
        (3, 0, (0, 1, 2, 0)): VALUES[:, 1, 2, :].T,
        (None, 2, (1, 2, 0, 3)): VALUES[1, 2, :, 3][None],
        (0, None, (0, 1, 1, 1)): VALUES[:, 1, 1, 1][:, None],
        (None, None, (1, 1, 1, 1)): VALUES[1:, 1, 1, 1:2][:, 0][None],
    }
    for (row, column, index), expected in cases.items():
        found = plane(row=row, column=column, index=list(index))
        assert found.shape == expected.shape
        assert cells(found, everything, everything, 0) == [
            [str(value) for value in line] for line in expected
        ]
    assert cells(plane(), range(1, 2), range(2, 4), 1) == [["2e+01", "2e+01"]]


def test_slices_that_are_not_there_are_refused() -> None:
    for more in ({"index": [2, 0, 0, 0]}, {"index": [0, 0, -1, 0]}, {"row": 3}):
        with pytest.raises(ValuesError, match="no such slice"):
            plane(**more)
    with pytest.raises(ValuesError, match="sparse"):
        plane(layout="sparse_coo")
    with pytest.raises(ValuesError, match="share bytes"):
        plane(dtype="quint4x2")
    large = plane(np.zeros((100, 100), np.uint8), 0, 1)
    with pytest.raises(ValuesError, match="cells"):
        cells(large, range(100), range(100), 0)


def drawn(values: np.ndarray, most: tuple[int, int], **more: Any) -> tuple[dict[str, Any], np.ndarray]:
    found = picture(plane(values, 0, 1, **more), most)
    shape = found["rows"], found["columns"]
    return found, np.frombuffer(base64.b64decode(found["cells"]), np.float32).reshape(shape)


def test_a_cell_is_the_element_that_is_farthest_from_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    values = np.random.default_rng(1).normal(size=(7, 10)).astype(np.float32)
    values[6, 9], values[3, 4], values[0, 0] = np.nan, -99, np.inf
    for band in (1 << 20, 10):
        monkeypatch.setattr(slices, "_MOST_BAND", band)
        found, shown = drawn(values, (3, 5))
        assert (found["steps"], shown.shape) == ([3, 2], (3, 5))
        assert (shown[1, 2], shown[0, 0]) == (-99, np.inf)
        assert np.isnan(shown[2, 4])
        assert shown[0, 1] == max(values[:3, 2:4].ravel(), key=abs)
    levels = np.frombuffer(base64.b64decode(found["levels"]), np.uint8).reshape(3, 5)
    assert (levels[2, 4], levels[0, 0], levels[1, 2]) == (255, 254, 0)


def test_a_few_large_numbers_do_not_hide_the_others() -> None:
    values = np.full((100, 100), 0.5, np.float32)
    values[0, 0], values[1, 1] = 1e6, 0
    found, _ = drawn(values, (100, 100))
    levels = np.frombuffer(base64.b64decode(found["levels"]), np.uint8).reshape(100, 100)
    assert (found["limit"], levels[0, 0], levels[5, 5], levels[1, 1]) == (0.5, 254, 254, 127)
    assert found["is_clipped"]
    zeros = drawn(np.zeros((2, 2), np.float32), (4, 4))[0]
    assert (zeros["limit"], zeros["is_clipped"]) == (0.0, False)


def test_what_is_too_large_is_shown_from_its_beginning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slices, "_MOST_PICTURE", 60)
    found, shown = drawn(np.arange(20 * 20, dtype=np.int64).reshape(20, 20), (4, 5))
    assert (found["shape"], found["seen"]) == ([20, 20], [4, 15])
    assert shown[3, 4] == 3 * 20 + 14


def test_elements_are_shown_as_what_they_stand_for() -> None:
    kinds = {
        "complex": (np.array([[3 + 4j, -1j]], np.complex64), {}, ["3.0+4.0j", "-0.0-1.0j"]),
        "conjugated": (np.array([[3 + 4j, 1j]], np.complex64), {"conj": True}, ["3.0-4.0j", "0.0-1.0j"]),
        "negated": (np.array([[3.0, -1]], np.float32), {"neg": True}, ["-3.0", "1.0"]),
        "bool": (np.array([[True, False]]), {}, ["True", "False"]),
        "quantized": (
            np.array([[4, 6]], np.uint8),
            {"dtype": "quint8", "scale": 0.5, "zero_point": 2},
            ["1.0", "2.0"],
        ),
    }
    for name, (values, more, texts) in kinds.items():
        assert cells(plane(values, 0, 1, **more), range(9), range(9), 0) == [texts], name
    assert drawn(np.array([[3 + 4j]], np.complex64), (4, 4))[1].tolist() == [[5.0]]


def test_channels_have_their_scales() -> None:
    codes = np.array([[[3, 4], [5, 6]], [[7, 8], [9, 10]]], np.uint8)
    scales, zeros = request("s", "float64"), request("z", "int64")
    whole = (codes.astype(np.float64) - np.array([1, 2])[:, None, None]) * np.array([0.5, 2.0])[:, None, None]
    for axis, row, column, index in ((0, 0, 1, 1), (0, 1, 0, 1), (0, 1, 2, 1)):
        more = {"dtype": "quint8", "axis": axis, "scales": scales, "zero_points": zeros}
        found = cells(plane(codes, row, column, [index] * 3, **more), range(9), range(9), 0)
        rest = ({0, 1, 2} - {row, column}).pop()
        expected = np.take(whole, index, rest)
        expected = expected if row < column else expected.T
        assert found == [[str(np.float32(value)) for value in line] for line in expected]
    with pytest.raises(ValuesError, match="for each channel"):
        list(saved_rows(request(axis=0), Bytes()))  # type: ignore[arg-type]


def test_all_rows_are_saved_in_their_order() -> None:
    opened: Any = Bytes(**{"0": VALUES.tobytes()})
    turned = request(shape=(5, 24)) | {"stride": [1, 5]}
    (head, _), *blocks = saved_rows(turned, opened)
    assert head == {"descr": "<f4", "shape": [5, 24]}
    found = np.frombuffer(b"".join(block for _, block in blocks), np.float32).reshape(5, 24)
    assert np.array_equal(found, VALUES.reshape(24, 5).T)
    assert len(list(saved_rows(request(shape=(0, 3)), opened))) == 1
    half: Any = Bytes(**{"0": b"\x80\x3f" * 3})
    (head, _), (_, block) = saved_rows(request(dtype="bfloat16", shape=(3,), itemsize=2), half)
    assert (head["descr"], np.frombuffer(block, np.float32).tolist()) == ("<f4", [1, 1, 1])


def ranked(values: np.ndarray, **more: Any) -> dict[str, Any]:
    opened: Any = Bytes(**{"0": values.tobytes()})
    asked = request(dtype=str(values.dtype), shape=values.shape, itemsize=values.itemsize) | more
    *_, last = ranks(asked, opened)
    found: dict[str, Any] = last["found"]
    return found


def test_ranks_are_those_of_the_singular_values(monkeypatch: pytest.MonkeyPatch) -> None:
    chance = np.random.default_rng(1)
    low = (chance.normal(size=(40, 3)) @ chance.normal(size=(3, 60))).astype(np.float64)
    cases = [low, low.T.copy(), chance.normal(size=(30, 4, 5)), chance.normal(size=(9, 7)) + 1j]
    for whole, band in ((1 << 20, 1 << 20), (0, 100)):
        monkeypatch.setattr(slices, "_MOST_WHOLE", whole)
        monkeypatch.setattr(slices, "_BAND", band)
        for values in cases:
            singular = np.linalg.svd(values.reshape(len(values), -1), compute_uv=False)
            shares = singular[singular > 1e-12] / singular.sum()
            found = ranked(values)
            assert found["effective"] == pytest.approx(np.exp(-(shares * np.log(shares)).sum()), rel=1e-4)
            assert found["stable"] == pytest.approx((singular**2).sum() / singular[0] ** 2)
            assert found["largest"] == pytest.approx(singular[0])
            assert found["most"] == len(singular)
    assert ranked(np.eye(5))["effective"] == pytest.approx(5)
    assert ranked(np.zeros((3, 4)))["effective"] == 0


def test_what_has_no_rank_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    values = np.ones((4, 4))
    with pytest.raises(ValuesError, match="only a matrix"):
        ranked(values[0])
    with pytest.raises(ValuesError, match="only a matrix"):
        ranked(values, layout="sparse_coo")
    with pytest.raises(ValuesError, match="cannot be taken"):
        ranked(np.ones((2, 3, 4)), stride=[1, 2, 6])
    values[1, 1] = np.nan
    with pytest.raises(ValuesError, match="NaN"):
        ranked(values)
    monkeypatch.setattr(slices, "MOST_SIDE", 3)
    with pytest.raises(ValuesError, match="too long"):
        ranked(values)
