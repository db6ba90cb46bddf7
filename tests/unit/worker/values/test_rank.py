"""Ranks of matrices whose ranks are known."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from inspector.errors import ValuesError
from inspector.worker.values import rank
from inspector.worker.values.rank import ranks
from tests.unit.worker.values.test_reading import Bytes, request


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
        monkeypatch.setattr(rank, "_MOST_WHOLE", whole)
        monkeypatch.setattr(rank, "_BAND", band)
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
    monkeypatch.setattr(rank, "MOST_SIDE", 3)
    with pytest.raises(ValuesError, match="too long"):
        ranked(values)
