"""Statistics against counting and exact fractions; the figures of files are compared in tests/torch."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from inspector.errors import ValuesError
from inspector.values import views
from inspector.values.arrays import Coded
from inspector.values.decoding import codes_of
from inspector.values.views import Piece
from inspector.worker.values.statistics import (
    LinearBins,
    Moments,
    Octaves,
    Statistics,
    Stored,
    Sums,
    place_of,
    stored_of,
    summary_for,
    unravelled,
)
from tests.unit.values.test_arrays import Bytes, request

MOST = np.finfo(np.float64).max.item()


def counted(values: np.ndarray, edges: list[float]) -> list[int]:
    ordered = np.sort(values)
    places = [int(np.searchsorted(ordered, ordered.dtype.type(edge))) for edge in edges[:-1]]
    return [after - before for before, after in zip(places, [*places[1:], len(ordered)], strict=True)]


def wrong_of(blocks: list[np.ndarray], *, whole: bool) -> str:
    bins = LinearBins(whole=whole)
    for block in blocks:
        bins.add(block, block.min().item(), block.max().item())
    edges, counts = bins.result(1)
    values = np.concatenate(blocks)
    if counts != counted(values, edges) or sum(counts) != len(values):
        return f"{counts} instead of {counted(values, edges)} between {edges[0]} and {edges[-1]}"
    if len(counts) > 128 or not edges[0] <= values.min() <= values.max() <= edges[-1]:
        return f"{len(counts)} bins from {edges[0]} to {edges[-1]} for {values.min()} to {values.max()}"
    return "" if len(counts) > 9 or len(np.unique(values)) < 100 else f"only {len(counts)} bins"


def test_counts_are_those_of_the_final_edges() -> None:
    chance = np.random.default_rng(1)
    normal = chance.normal(size=(6, 500))
    cases = {
        "growing": [normal[number] * 10.0**number for number in range(6)],
        "shrinking": [normal[number] * 10.0**-number for number in range(6)],
        "moving": [normal[number] + 3 * number for number in range(6)],
        "one value first": [np.zeros(9), np.zeros(4), normal[0] * 1e-9, np.full(3, 2e-9)],
        "one value after": [normal[0], np.full(5, 1e6), np.full(5, -1e9)],
        "far from zero": [1e15 + np.arange(200.0), 1e15 + np.arange(400.0)],
        "far, then zero": [1e300 + np.arange(5) * 1e285, np.zeros(3), normal[1]],
        "ends": [np.array([MOST, -MOST, 0.0]), np.array([1.0, -1.0])],
        "denormal": [np.arange(-200, 300) * 5e-324, np.arange(900) * 5e-324],
        "denormal, then large": [np.arange(5) * 5e-324, np.array([MOST])],
        "on edges": [np.arange(-64.0, 64.0), np.arange(-256.0, 256.0) / 4],
    }
    whole = {
        "growing": [chance.integers(-(10**number), 10**number, 400) for number in range(1, 18, 3)],
        "ends": [np.array([-(1 << 63), (1 << 63) - 1, 0]), np.array([5, 7])],
        "far": [(1 << 62) + chance.integers(0, 900, 400), np.array([-(1 << 62)])],
        "unsigned": [np.array([0, 3], np.uint64), np.array([(1 << 64) - 1, 1 << 63], np.uint64)],
        "few": [np.array([1, 2, 2, 9])],
    }
    wrong = {name: wrong_of(blocks, whole=False) for name, blocks in cases.items()}
    wrong |= {f"whole {name}": wrong_of(blocks, whole=True) for name, blocks in whole.items()}
    assert {name: text for name, text in wrong.items() if text} == {}


def test_one_value_has_one_bin() -> None:
    for value, whole in ((0.0, False), (-2.5, False), (MOST, False), (5e-324, False), (7, True)):
        bins = LinearBins(whole=whole)
        bins.add(np.full(4, value), value, value)
        (low, high), counts = bins.result(3)
        assert low == value
        assert high > value
        assert counts == [12]
    assert LinearBins(whole=True).result(1).edges == []


def octaves_of(values: np.ndarray) -> dict[int, int]:
    found = Octaves()
    (found.add_integers if values.dtype.kind in "iu" else found.add_floats)(values)
    first, counts = found.result(1)
    return {first + number: count for number, count in enumerate(counts) if count}


def test_octaves_are_exact_at_their_ends() -> None:
    assert octaves_of(np.array([0.0, -0.0])) == {}
    assert octaves_of(np.array([1.0, -1.5, 2.0, 1.9999999999999998])) == {0: 3, 1: 1}
    assert octaves_of(np.array([1e-45, 2.0**-127, 2.0**-126, 0.0], np.float32)) == {-149: 1, -127: 1, -126: 1}
    assert octaves_of(np.array([5e-324, MOST])) == {-1074: 1, 1023: 1}
    assert octaves_of(np.array([(1 << 63) - 1, -(1 << 63), 3, 0])) == {62: 1, 63: 1, 1: 1}
    assert octaves_of(np.array([(1 << 64) - 1, (1 << 53) + 1], np.uint64)) == {63: 1, 53: 1}


def exact(values: list[float] | list[int]) -> Sums:
    numbers = [Fraction(value) for value in values]
    mean = sum(numbers) / len(numbers)
    squares = sum(number * number for number in numbers)
    deviations = sum((number - mean) ** 2 for number in numbers)
    return Sums(float(mean), root(deviations / (len(numbers) - 1)), root(squares))


def root(value: Fraction) -> float | None:
    """The square root, though the fraction be larger or smaller than any float."""
    shift = (value.numerator.bit_length() - value.denominator.bit_length()) // 2 if value else 0
    scaled = math.sqrt(value / Fraction(4) ** shift)
    try:
        return math.ldexp(scaled, shift)
    except OverflowError:
        return None


def test_sums_of_floats_hold_at_both_ends_of_their_range() -> None:
    chance = np.random.default_rng(3)
    cases = {
        "plain": [chance.normal(size=50), chance.normal(size=70) + 5],
        "far": [1e6 + chance.normal(size=50), 1e6 + chance.normal(size=50)],
        "large": [chance.normal(size=50) * 1e300, chance.normal(size=50)],
        "large later": [chance.normal(size=50), chance.normal(size=50) * 1e305],
        "tiny": [chance.normal(size=50) * 1e-310, chance.normal(size=9) * 1e-315],
        "tiny, then plain": [chance.normal(size=50) * 1e-200, chance.normal(size=9)],
        "zeros first": [np.zeros(5), chance.normal(size=9) * 1e-300],
        "beyond": [np.array([1.7e308, -1.7e308])],
    }
    wrong = []
    for name, blocks in cases.items():
        moments = Moments()
        for block in blocks:
            moments.add_floats(block, float(np.abs(block).max()))
        expected = exact(np.concatenate(blocks).tolist())
        for field, one, other in zip(Sums._fields, moments.result(1), expected, strict=True):
            close = one == other if None in {one, other} else one == pytest.approx(other, rel=1e-10)
            wrong += [] if close else [f"{name}: {field} is {one}, not {other}"]
    assert not wrong


def test_sums_of_integers_are_exact() -> None:
    blocks = [np.array([-(1 << 63), (1 << 63) - 1]), np.array([(1 << 62) + 1, 3]), np.array([7])]
    moments = Moments()
    for block in blocks:
        moments.add_integers(block, int(block.min()))
    assert moments.result(1) == pytest.approx(exact(np.concatenate(blocks).tolist()), rel=1e-14)
    far = Moments()
    for start in (0, 10):
        far.add_integers(np.arange(start, start + 10) + 10**18, 10**18 + start)
    assert far.result(1).std == pytest.approx(exact(list(range(20))).std, rel=1e-14)
    unsigned = Moments()
    unsigned.add_integers(np.array([(1 << 64) - 1, (1 << 64) - 3], np.uint64), (1 << 64) - 3)
    assert unsigned.result(1).mean == float((1 << 64) - 2)


def test_repeated_and_missing_numbers_count() -> None:
    moments = Moments()
    assert moments.result(1) == Sums(None, None, None)
    moments.add_floats(np.array([1.0, 4.0]), 4.0)
    assert moments.result(3) == pytest.approx(exact([1, 4] * 3))
    moments.add_zeros(4)
    assert moments.result(1) == pytest.approx(exact([1, 4, 0, 0, 0, 0]))
    few = Moments()
    few.add_counts([1.5, -2.0], [2, 3])
    assert few.result(1) == pytest.approx(exact([1.5, 1.5, -2.0, -2.0, -2.0]))
    one = Moments()
    one.add_counts([1 << 62], [1])
    assert one.result(1) == Sums(float(1 << 62), None, float(1 << 62))


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
