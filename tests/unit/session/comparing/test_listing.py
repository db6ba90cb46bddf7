"""The figures of rows and groups against NumPy, and the order and slices of what is listed."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from inspector.diff.compare import Measuring
from inspector.diff.records import Pair
from inspector.progress import Progress
from inspector.records import replace
from inspector.report import tree
from inspector.report.comparing.rows import DiffRow
from inspector.session.comparing import listing as module
from inspector.session.comparing.compose import CompareState, arrange, prepare, with_figures
from inspector.session.comparing.listing import (
    FIGURES,
    Figures,
    Order,
    figure_share,
    figure_text,
    joined,
    side_texts,
)
from tests.builders.states import T, save_zip


def measured(tmp_path: Path, a: Any, b: Any) -> CompareState:
    measuring = Measuring(*(save_zip(tmp_path / f"{name}.pt", one) for name, one in (("a", a), ("b", b))))
    compared = prepare(measuring.compare(Progress()))
    measuring.measure(compared.pairs, Progress())
    measuring.close()
    return with_figures(CompareState(a="a", b="b", compared=compared), measuring.found)


def figures_by_name(state: CompareState) -> dict[str, Figures | None]:
    """The figures of each node by its path of names."""
    assert state.compared is not None
    shape, names = state.compared.shape, [""]
    for node in range(1, len(shape.names)):
        names.append(f"{names[shape.parents[node]]}/{shape.names[node]}")
    return dict(zip(names, state.figures, strict=True))


def texts(figures: Figures | None) -> tuple[str, ...]:
    return tuple(figure_text(figures, column) for column in FIGURES)


def test_a_group_is_one_vector_of_its_weights(tmp_path: Path) -> None:
    random = np.random.default_rng(2)
    a = {f"m.{layer}.{name}": random.normal(size=9).astype(np.float32) for layer in "01" for name in "wv"}
    b = {name: one + random.normal(size=9).astype(np.float32) / 9 for name, one in a.items()}
    b["m.1.w"] = a["m.1.w"]  # an equal one counts as well
    steps = {"m.0.num_batches_tracked": (1, 900), "m.0.i": (5, 7)}
    files = [
        {name: T(list(one)) for name, one in state.items()}
        | {name: T(np.array([pair[side]]).tobytes(), (), "int64") for name, pair in steps.items()}
        for side, state in enumerate((a, b))
    ]
    found = figures_by_name(measured(tmp_path, *files))
    for group, names in (("/m", list(a)), ("/m/0", ["m.0.w", "m.0.v"]), ("/m/1", ["m.1.w", "m.1.v"])):
        x, y = (np.concatenate([state[name].astype(float) for name in names]) for state in (a, b))
        figures = found[group]
        assert figures is not None
        counters = 0 if group == "/m/1" else len(steps)
        assert (figures.apart, figures.skipped) == (counters, 0)
        assert figures.relative == pytest.approx(np.linalg.norm(x - y) / np.linalg.norm(x), rel=1e-12)
        assert figures.cosine == pytest.approx(x @ y / np.linalg.norm(x) / np.linalg.norm(y), rel=1e-12)
        assert figures.largest == pytest.approx(np.abs(x - y).max(), rel=1e-12)
    assert texts(found["/m/0/num_batches_tracked"]) == ("899", "1.000000", "899")
    assert texts(found["/m/0"])[0].endswith("*")  # a zero without it would say that nothing differs
    assert found[""] is not None  # all of it
    assert found[""].relative == found["/m"].relative  # type: ignore[union-attr]  # it is there


def test_nothing_and_no_number_are_said_as_such(tmp_path: Path) -> None:
    nan, inf = math.nan, math.inf
    pairs: dict[str, tuple[list[float], list[float], tuple[str, ...]]] = {
        "equal": ([1.0, 2.0], [1.0, 2.0], ("0", "1.000000", "0")),
        "zeros": ([0.0, 0.0], [0.0, 0.0], ("0", "\u2013", "0")),
        "was0": ([0.0, 0.0], [3.0, 4.0], ("\u221e", "\u2013", "4")),
        "turned": ([1.0, 0.0], [0.0, 1.0], ("1.414", "0.000000", "1")),
        "opposite": ([1.0, 2.0], [-1.0, -2.0], ("2", "-1.000000", "4")),
        "some": ([1.0, nan, 2.0], [1.0, 1.0, inf], ("0*", "1.000000*", "0*")),
        "none": ([nan, nan], [1.0, 2.0], ("NaN", "", "")),
        "short": ([1.0], [1.0, 2.0], ("", "", "")),
        "tiny": ([1.0, 0.0], [1.0, 1e-5], ("1e-05", "1\u22125e-11", "1e-05")),
    }
    state = measured(
        tmp_path,
        {name: T(one) for name, (one, _, _) in pairs.items()},
        {name: T(other) for name, (_, other, _) in pairs.items()},
    )
    found = figures_by_name(state)
    assert {name: texts(found[f"/{name}"]) for name in pairs} == {
        name: said for name, (_, _, said) in pairs.items()
    }
    whole = found[""]
    assert whole is not None
    assert (whole.apart, whole.skipped) == (2, 2)  # `short` and `none`; what is left out of `some`
    assert texts(whole)[0].endswith("*")


def test_codes_have_no_lengths(tmp_path: Path) -> None:
    quantizer = ("per_tensor", 0.1, 0)
    codes = b"\x01\x02", b"\x03\x04"
    one, other = (T(data, (2,), "qint8", kind="qtensor", more=quantizer) for data in codes)
    found = figures_by_name(measured(tmp_path, {"q": one}, {"q": other}))
    assert texts(found["/q"]) == ("", "", "")


def test_vectors_of_any_size_are_added_up() -> None:
    large = Figures(1e300, 1e300, 1e300, 0.5, 1e300)
    assert joined([large, large], 0).relative == pytest.approx(1.0)
    assert joined([large, large], 0).cosine == pytest.approx(0.5)
    zero = Figures(0.0, 0.0, 0.0, None, 0.0)
    assert joined([zero, zero], 1) == Figures(0.0, 0.0, 0.0, None, 0.0, 0, 1)


def test_bars_are_in_proportion_to_the_largest() -> None:
    one = Figures(2.0, 2.0, 1.0, 0.0, 3.0)
    assert figure_share(one, "relative", 2.0) == 0.25
    assert figure_share(one, "cosine", 1.0) == 0.5
    assert figure_share(one, "largest", 1.0) == 1.0  # a count of steps moves farther than any weight
    assert figure_share(Figures(0.0, 1.0, 1.0, None, 1.0), "relative", 2.0) == 1.0
    assert (
        figure_share(None, "relative", 2.0) == figure_share(one._replace(cosine=None), "cosine", 1.0) == 0.0
    )


def test_rows_are_sorted_within_their_groups_and_groups_by_their_own(tmp_path: Path) -> None:
    a = {"m.a.w": T([1.0]), "m.a.v": T([1.0]), "m.b.w": T([1.0]), "m.b.gone": T([1.0])}
    state = measured(tmp_path, a, {"m.a.w": T([1.1]), "m.a.v": T([1.2]), "m.b.w": T([3.0])})
    assert state.compared is not None

    def order(column: module.CompareColumn, *, descending: bool) -> list[str]:
        listing = arrange(replace(state, order=Order(column, descending)))
        shape = state.compared.shape if state.compared else None
        assert shape is not None
        found, waiting = [], [0]
        while waiting:
            node = waiting.pop()
            waiting += reversed(listing.below.get(node, ()))
            found.append(shape.names[node])
        return found[1:]

    assert order("name", descending=False) == ["m", "a", "w", "v", "b", "w", "gone"]
    assert order("name", descending=True) == ["m", "b", "gone", "w", "a", "v", "w"]
    assert order("relative", descending=True) == ["m", "b", "w", "gone", "a", "v", "w"]
    assert order("relative", descending=False) == ["m", "a", "w", "v", "b", "w", "gone"]
    assert order("what", descending=False)[-2:] == ["gone", "w"]


def test_long_lists_are_sliced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BUCKET_ROWS", 2)
    assert tree.BUCKET_ROWS == 1000
    files = ({f"t{n}": T([float(n + side)]) for n in range(5)} for side in (1, 2))
    state = measured(tmp_path, *files)
    listing = arrange(state)
    assert state.compared is not None
    first = len(state.compared.shape.names)
    assert list(listing.slices.values()) == [
        "1 \u2026 2   (t0 \u2026)", "3 \u2026 4   (t2 \u2026)", "5 \u2026 5   (t4 \u2026)",
    ]  # fmt: skip
    assert listing.below[0] == (first, first + 1, first + 2)
    assert [listing.below[node] for node in listing.below[0]] == [(1, 2), (3, 4), (5,)]
    assert {listing.parents[node] for node in (1, 2)} == {first}
    assert listing.parents[first] == 0


def test_single_numbers_stand_in_six_digits(tmp_path: Path) -> None:
    state = measured(
        tmp_path,
        {"s": T([0.123456789], ()), "w": T([1.0, 2.0]), "loss": 5.813959432e-06},
        {"s": T([0.23456789], ()), "w": T([1.0, 3.0]), "loss": 4.2e-06},
    )
    assert state.compared is not None
    rows = {row.a_path: row for row in state.compared.rows}
    assert side_texts(rows["s"], state.found) == ("0.123457", "0.234568")
    assert side_texts(rows["w"], state.found) == ("float32 2, 8 B, cpu", "the same")
    assert side_texts(rows["loss"], state.found) == ("5.81396e-06", "4.2e-06")
    assert side_texts(rows["s"], {}) == ("float32 scalar, 4 B, cpu", "the same")
    close = DiffRow("tensor", "~", "s", "s", ("values",), "x", "x", "", Pair(0, 0))
    numbers = state.found[rows["s"].pair]  # type: ignore[index]  # it is one of tensors
    near = numbers._replace(first_a="1.00000011", first_b="1.00000022")  # type: ignore[union-attr]  # the same
    assert side_texts(close, {Pair(0, 0): near}) == ("1.00000011", "1.00000022")
