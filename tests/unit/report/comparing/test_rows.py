from __future__ import annotations

from pathlib import Path
from typing import Any

from inspector.diff.compare import Wish
from inspector.report.comparing.rows import SECTIONS, DiffRow, count_kinds, diff_rows
from tests.builders import pickles as p
from tests.builders.states import Raw, T
from tests.unit.diff.test_compare import NUMBERS, TIED, V, W, compared, resumed


def rows(tmp_path: Path, a: Any, b: Any, wish: Wish | None = None, *, equal: bool = False) -> list[DiffRow]:
    found = diff_rows(compared(tmp_path, a, b, wish), equal=equal)
    assert {row.section for row in found} <= set(SECTIONS)
    return list(found)


def short(found: list[DiffRow]) -> list[tuple[str, str, str, tuple[str, ...]]]:
    return [(row.mark, row.a_path, row.b_path, row.what) for row in found]


def test_rows_stand_in_the_order_of_the_first_file(tmp_path: Path) -> None:
    a = {"x": T(W), "gone": T([1.0]), "y": T(W), "lr": 1, "old": 2}
    b = {"y": T(V), "x": T(W), "come": T([2.0, 3.0]), "lr": 1.5, "new": 2}
    found = rows(tmp_path, a, b, equal=True)
    assert short(found) == [
        ("=", "x", "x", ()),
        ("-", "gone", "", ("removed",)),
        ("~", "y", "y", ("values",)),
        ("+", "", "come", ("added",)),
        ("-", "old", "", ("removed",)),
        ("~", "lr", "lr", ("value",)),
        ("+", "", "new", ("added",)),
        ("~", "(root)", "(root)", ("order",)),
    ]
    assert [row.detail for row in found[2:4]] == ["values differ", "float32 2, 8 B, cpu"]
    assert found[5].detail == "1 \u2192 1.5 (int \u2192 float)"
    assert [row.nbytes for row in found] == [-1, 4, -1, 8, -1, -1, -1, -1]
    assert short(rows(tmp_path, a, b)) == short(found)[1:]
    kinds = ("added", 2), ("removed", 2), ("values", 1), ("value", 1), ("order", 1)
    assert count_kinds(tuple(found)) == kinds
    assert found[-1].detail == "keys x, y, lr \u2192 y, x, lr"


def test_numbers_are_short_where_that_tells_them_apart_and_exact_behind_it(tmp_path: Path) -> None:
    a, b = {"loss": 5.813959432394e-06, "near": 0.12345678901}, {"loss": 0.25, "near": 0.12345678902}
    loss, near = rows(tmp_path, a, b)
    assert (loss.a_text, loss.b_text) == ("5.81396e-06", "0.25")
    assert loss.detail == "5.813959432394e-06 \u2192 0.25"
    assert (near.a_text, near.b_text) == ("0.12345678901", "0.12345678902")


def test_names_ties_and_code_have_rows_of_their_own(tmp_path: Path) -> None:
    evil = {"w": T(W), "x": Raw(p.call("os.system", p.text("id")))}
    first, second = rows(tmp_path, {"w": T(W)}, evil)
    assert (first.section, first.what, first.b_text) == ("safety", ("import",), "os.system")
    assert first.detail.endswith("imports this (dangerous)")
    assert second.section == "value"
    assert rows(tmp_path, evil, {"w": T(W)})[0].a_text == "os.system"
    dropped = [Raw(p.call("os.system", p.text(text)) + p.op("POP") + p.NONE) for text in ("a", "b")]
    assert {row.what for row in rows(tmp_path, *({"x": one} for one in dropped))} == {("call",)}
    (tie,) = rows(tmp_path, TIED, {name: T(W) for name in "ehf"})
    assert (tie.section, tie.a_path, tie.a_text, tie.b_text) == ("sharing", "e, h", "tied", "separate")
    (tie,) = rows(tmp_path, {name: T(W) for name in "ehfgi"}, {name: T(W, key="x") for name in "ehfgi"})
    assert (tie.a_path, tie.b_text) == ("e, h, f, g, \u2026", "tied")


def test_renamed_pairs_say_where_they_are_now(tmp_path: Path) -> None:
    found = rows(tmp_path, {"module.w": T(W), "a.b": T(V)}, {"w": T(V), "q": T(V)}, NUMBERS)
    assert short(found) == [
        ("~", "module.w", "w", ("renamed", "values")),
        ("-", "a.b", "", ("removed",)),
        ("+", "", "q", ("added",)),
    ] or short(found)[0] == ("~", "module.w", "w", ("renamed", "values"))
    assert found[0].detail.endswith("; now w")
    assert "4 of 4 elements differ" in found[0].detail
    (renamed,) = rows(tmp_path, {"a.b": T(V)}, {"q.r": T(V)})
    assert (renamed.mark, renamed.detail) == (">", "now q.r (equal bytes)")


def test_what_stands_in_an_optimizer_is_listed_there(tmp_path: Path) -> None:
    a, b = resumed("a", "b"), resumed("a", "b")
    b["optimizer"]["state"][0] = {"exp_avg": T(V)}
    b["optimizer"]["param_groups"][0]["lr"] = 0.5
    b["model"]["a"] = T(V)
    found = rows(tmp_path, a, b)
    assert [(row.section, row.a_path or row.b_path) for row in found] == [
        ("tensor", "model/a"),
        ("optimizer", "optimizer/state/0/exp_avg"),
        ("optimizer", "optimizer/param_groups/0/lr"),
    ]
    alone = rows(tmp_path, a["optimizer"], b["optimizer"])
    assert {row.section for row in alone} == {"optimizer"}


def test_bytes_that_could_not_be_compared_say_why(tmp_path: Path) -> None:
    repeated = [{"w": T(W[:2], (1 << 40, 2), stride=(0, step))} for step in (0, 1)]
    (row,) = rows(tmp_path, *repeated)
    assert row.what == ("stride", "unread")
    assert "could not be compared: the tensor shows" in row.detail
    (row,) = rows(tmp_path, {"w": T([0.0])}, {"w": T([-0.0])})
    assert row.what == ("bits",)
    assert row.detail.startswith("the same numbers")
