from __future__ import annotations

from inspector.diff.pairing import Left, pair_names, unique_names, without


def test_equal_names_are_pairs_in_the_order_of_the_first() -> None:
    a, b = ["x", "y", "z"], ["z", "q", "x"]
    assert pair_names(a, b, Left([0, 1, 2], [0, 1, 2])) == ([(0, 2), (2, 0)], Left([1], [1]))
    assert pair_names(a, b, Left([0], [0])) == ([], Left([0], [0]))


def test_of_a_name_that_stands_twice_the_last_is_paired_first() -> None:
    assert pair_names(["w", "w", "w"], ["w", "w"], Left([0, 1, 2], [0, 1])) == (
        [(1, 0), (2, 1)],
        Left([0], []),
    )
    assert pair_names(["w"], ["w", "w"], Left([0], [0, 1])) == ([(0, 1)], Left([], [0]))


def test_a_name_that_two_rows_have_belongs_to_neither() -> None:
    assert unique_names(["a", "b", "a", "a"], [0, 1, 2, 3]) == {"b": 1}
    assert unique_names(["a", "b", "a"], [1, 2]) == {"b": 1, "a": 2}
    rows = [1, 2, 3]
    assert without(rows, []) is rows
    assert without(rows, [2]) == [1, 3]
