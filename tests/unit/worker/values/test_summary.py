"""What is counted of elements; the figures themselves are compared with torch's in tests/torch."""

from __future__ import annotations

import numpy as np
import pytest

from inspector.errors import ValuesError
from inspector.worker.decoding import codes_of
from inspector.worker.values.summary import Coded, Summary, summary_for
from inspector.worker.values.views import Piece


def piece(values: np.ndarray, first: int = 0) -> Piece:
    return Piece(values, values, first, (1,))


def test_places_are_the_first_of_all_pieces() -> None:
    counted = summary_for("float32")
    counted.add(piece(np.array([1, np.nan, np.inf], np.float32), 10))
    counted.add(piece(np.array([np.nan, -np.inf], np.float32), 3))
    found = counted.document(1)
    assert [found[name] for name in ("nan", "posinf", "neginf", "finite")] == [2, 1, 1, 1]
    assert [found[f"first_{name}"] for name in ("nan", "posinf", "neginf")] == [3, 12, 4]


def test_minus_zero_is_a_zero_and_no_other_value() -> None:
    counted = summary_for("bfloat16")
    counted.add(piece(codes_of(b"\x00\x80\x00\x00\x80\x3f", "bfloat16")))
    found = counted.document(1)
    assert (found["zeros"], found["min"], found["max"], found["unique"]) == (2, 0.0, 1.0, None)


def test_different_integers_are_counted_up_to_a_bound() -> None:
    cases = {
        "few": (np.array([3, 3, -9]), 2),
        "far apart": (np.array([3, 1 << 60, 3]), 2),
        "many": (np.arange(70_000), None),
        "unsigned": (np.array([(1 << 64) - 1, 0], np.uint64), 2),
    }
    for name, (values, expected) in cases.items():
        counted = summary_for("uint64" if values.dtype == np.uint64 else "int64")
        counted.add(piece(values))
        counted.add(piece(values[:2]))
        assert counted.document(1)["unique"] == expected, name
    small = summary_for("int8")
    small.add(piece(np.array([3, 3, -9], np.int8)))
    assert small.document(1)["unique"] == 2


def test_zeros_that_are_nowhere_stored_can_be_added() -> None:
    kinds = ("float32", "float16", "int64", "int8", "complex64", "bool")
    for dtype in kinds:
        counted = summary_for(dtype)
        counted.add(piece(codes_of(np.array([2, 4]).astype(_native(dtype)).tobytes(), dtype)))
        before = counted.document(1)
        counted.add_zeros(2)
        found = counted.document(1)
        assert (before["finite"], found["finite"], found["zeros"]) == (2, 4, 2), dtype
        assert sum(found["counts"]) == 4, dtype
        assert found["norm"] == before["norm"], dtype
        if dtype not in {"complex64", "bool"}:
            assert found["std"] == pytest.approx(np.std([2, 4, 0, 0], ddof=1)), dtype


def _native(dtype: str) -> str:
    return "bool" if dtype == "bool" else dtype


def test_an_odd_number_of_bytes_is_counted_like_an_even_one() -> None:
    for count in (0, 1, 6, 7):
        counted = summary_for("uint8")
        counted.add(piece(np.arange(count, dtype=np.uint8)))
        found = counted.document(1)
        assert (found["finite"], found["max"]) == (count, count - 1 if count else None)


def test_integers_that_torch_never_negates_are_refused() -> None:
    for dtype in ("int64", "bool", "uint8"):
        with pytest.raises(ValuesError, match="negated"):
            summary_for(dtype, neg=True)
    counted = summary_for("float16", neg=True)
    counted.add(piece(np.array([1, 2], np.float16)))
    assert counted.document(1)["min"] == -2


def test_codes_stand_for_numbers() -> None:
    for dtype in ("quint8", "qint32"):
        counted = summary_for(dtype, Coded(0.5, 2))
        counted.add(piece(codes_of(bytes([4, 0, 0, 0]), dtype)))
        found = counted.document(1)
        assert (found["max"], found["unique"]) == (1.0, None)


def test_the_base_counts_nothing() -> None:
    for call in (
        lambda: Summary().add(piece(np.zeros(1))),
        lambda: Summary().sums(1),
        lambda: Summary().add_zeros(1),
    ):
        with pytest.raises(NotImplementedError):
            call()
    assert Summary().unique() is None
