"""Rows in which nothing is; the figures are compared with torch's in tests/torch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from inspector.worker.values import views
from inspector.worker.values.statistics import Statistics
from tests.unit.worker.values.test_reading import Bytes, request


def found_of(data: bytes, asked: dict[str, Any]) -> dict[str, Any]:
    opened: Any = Bytes(**{"0": data, "i": np.array([[1, 1]]).tobytes()})
    statistics = Statistics(asked, opened)
    assert sum(statistics.steps()) > 0
    return statistics.result()


def dead(values: np.ndarray, dtype: str, **more: Any) -> int | None:
    found: int | None = found_of(values.tobytes(), request(dtype=dtype, shape=values.shape, **more))[
        "dead_rows"
    ]
    return found


def test_rows_of_zeros_are_dead(monkeypatch: pytest.MonkeyPatch) -> None:
    chance = np.random.default_rng(1)
    values = chance.integers(-1, 2, (50, 5)).astype(np.float32)
    values[[3, 4, 5, 49]] = 0
    values[7] = -0.0
    expected = int((values == 0).all(axis=1).sum())
    assert expected >= 5
    for piece_nbytes in (4 << 20, 44, 12):
        monkeypatch.setattr(views, "PIECE_NBYTES", piece_nbytes)
        assert dead(values, "float32") == expected
    assert dead(chance.normal(size=(50, 5)).astype(np.float32), "float32") == 0


def test_minus_zeros_of_types_that_are_codes_are_zeros() -> None:
    codes = np.array([[0x8000, 0], [0x3F80, 0x8000], [0x8000, 0x8000]], np.uint16)
    assert dead(codes, "bfloat16", itemsize=2) == 2


def test_rows_are_not_known_where_elements_are_in_another_order() -> None:
    values = np.zeros((4, 4), np.float32)
    assert dead(values, "float32", stride=[1, 4]) is None
    assert dead(values[0], "float32") is None
    assert dead(values[:1], "float32") is None


def test_doubled_places_leave_only_what_is_stored() -> None:
    values = np.array([1, 2], np.float32)
    indices = request("i", "int64", (1, 2))
    found = found_of(values.tobytes(), request(layout="sparse_coo", whole=[3], indices=indices))
    assert (found["of"], found["numel"], found["max"]) == ("stored", 2, 2.0)
