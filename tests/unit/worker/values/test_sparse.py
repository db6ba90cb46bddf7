"""Where stored elements belong."""

from __future__ import annotations

from typing import Any

import numpy as np

from inspector.worker.values.sparse import Stored, place_of, stored_of, unravelled
from tests.unit.worker.values.test_reading import Bytes, request


def stored(indices: np.ndarray) -> Stored:
    opened: Any = Bytes(i=indices.astype(np.int64).tobytes())
    parts = request("i", "int64", indices.shape)
    return stored_of({"layout": "sparse_coo", "indices": parts, "whole": [4, 5]}, opened)


def test_places_that_are_named_twice_are_found() -> None:
    cases = {
        "once": (np.array([[0, 1], [1, 0]]), True),
        "twice": (np.array([[0, 0], [1, 1]]), False),
        "none": (np.zeros((2, 0)), True),
        "without dimensions, one": (np.zeros((0, 1)), True),
        "without dimensions, two": (np.zeros((0, 2)), False),
        "no table": (np.zeros(3), None),
        "outside": (np.array([[4], [0]]), None),
        "before": (np.array([[0], [-1]]), None),
        "of more dimensions": (np.zeros((3, 1)), None),
    }
    assert {name: stored(indices).is_once for name, (indices, _) in cases.items()} == {
        name: expected for name, (_, expected) in cases.items()
    }
    assert stored_of({"layout": "sparse_csr"}, None).is_once  # type: ignore[arg-type]


def test_an_element_is_found_in_the_whole() -> None:
    places = stored(np.array([[3, 0], [2, 1]]))
    assert place_of(places, [4, 5], [2], 1) == [0, 1]
    assert place_of(places, [4, 5, 6], [2, 6], 7) == [0, 1, 1]
    assert place_of(places, [4, 5, 6, 7], [2, 6], 7) is None
    assert place_of(places, [4, 5], [2], None) is None
    assert place_of(Stored(is_once=True, indices=None), [4, 5], [2], 1) is None
    assert unravelled(23, [2, 3, 4]) == [1, 2, 3]
    assert unravelled(0, []) == []
