from __future__ import annotations

from typing import Any

from inspector.values.statistics import build_statistics

FOUND: dict[str, Any] = {
    "numel": 4,
    "finite": 3,
    "zeros": 1,
    "nan": 1,
    "posinf": 0,
    "neginf": 0,
    "first_nan": [0, 1],
    "first_posinf": None,
    "first_neginf": None,
    "min": 0.0,
    "max": 2.0,
    "mean": 1.0,
    "std": 1.0,
    "norm": 3.0,
    "unique": None,
    "edges": [0.0, 1.0, 3.0],
    "counts": [1, 2],
    "exponent": 0,
    "octaves": [1, 1],
    "dead_rows": 0,
    "of": "all",
}


def test_figures_of_real_numbers() -> None:
    found = build_statistics(FOUND, {"dtype": "float32", "scale": None})
    assert (found.low, found.high, found.first_nan, found.sparsity) == (0.0, 2.0, (0, 1), 0.25)
    assert (found.is_complex, found.is_dequantized, found.stored, found.only_stored) == (
        False,
        False,
        None,
        False,
    )
    assert build_statistics(FOUND | {"numel": 0}, {"dtype": "float32"}).sparsity is None


def test_figures_of_complex_and_quantized_numbers() -> None:
    more = {
        "min": None,
        "max": None,
        "min_abs": 1.0,
        "max_abs": 5.0,
        "mean": None,
        "complex_mean": [1.0, -1.0],
    }
    found = build_statistics(FOUND | more, {"dtype": "complex64", "part": "values"})
    assert (found.low, found.high, found.complex_mean, found.part) == (1.0, 5.0, (1.0, -1.0), "values")
    for how in ({"scale": 0.5}, {"axis": 0}):
        assert build_statistics(FOUND, {"dtype": "qint8", **how}).is_dequantized


def test_a_sparse_tensor_has_figures_of_what_is_stored() -> None:
    found = build_statistics(FOUND | {"stored": FOUND}, {"dtype": "float32"})
    assert found.stored is not None
    assert found.stored.numel == 4
    assert build_statistics(FOUND | {"of": "stored"}, {"dtype": "float32"}).only_stored
