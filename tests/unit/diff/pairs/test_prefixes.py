from __future__ import annotations

import pytest

from inspector.diff import pairing
from inspector.diff.pairing import Left, difference, pair_moved, pair_wrapped, unwrapped


def moved(a: list[str], b: list[str], *, alike: bool = True) -> list[tuple[str, str]]:
    pairs, left = pair_moved(a, b, Left(list(range(len(a))), list(range(len(b)))), lambda *_: alike)
    assert len(pairs) + len(left.a) == len(a)
    assert len(pairs) + len(left.b) == len(b)
    return [(a[one], b[other]) for one, other in pairs]


def test_wrappers_are_taken_off_where_they_are_whole_steps() -> None:
    table = {
        "module.w": "w",
        "module._orig_mod.w": "w",
        "model/module.layers.0._fsdp_wrapped_module.w": "model/layers.0.w",
        "submodule.w": "submodule.w",
        "my_module.w": "my_module.w",
        "module/w": "module/w",
        "a.module": "a.module",
        "x.y": "x.y",
    }
    assert {name: unwrapped(name) for name in table} == table


def test_a_difference_is_told_in_whole_steps() -> None:
    table = {
        ("module.a.w", "a.w"): ("module.", ""),
        ("model/module.a.w", "model/a.w"): ("module.", ""),
        ("encoder.w", "decoder.w"): ("encoder.", "decoder."),
        ("a.w", "a.v"): ("w", "v"),
        ("w", "w"): ("", ""),
        ("a.a.w", "a.w"): ("a.", ""),
        ("m/a.w", "s/n/a.w"): ("m/", "s/n/"),
    }
    assert {pair: difference(*pair) for pair in table} == table


def test_rows_differ_by_wrappers_alone_where_both_sides_know_whom_they_mean() -> None:
    pairs, left = pair_wrapped(["w", "v", "v"], ["v", "w", "x"], Left([0, 1, 2], [0, 1, 2]))
    assert pairs == [(0, 1)]
    assert left == Left([1, 2], [0, 2])


def test_a_prefix_is_believed_where_it_explains_several_names_or_all() -> None:
    assert moved(["m/a.w", "m/b.w"], ["a.w", "b.w"]) == [("m/a.w", "a.w"), ("m/b.w", "b.w")]
    assert moved(["m/a.w"], ["n/x/a.w"]) == [("m/a.w", "n/x/a.w")]
    assert moved(["a.w", "b.w"], ["t.a.w", "t.b.w"]) == [("a.w", "t.a.w"), ("b.w", "t.b.w")]
    assert moved(["m/a.w", "q.z"], ["a.w", "r.y"]) == []
    assert moved(["enc.w", "enc.v"], ["dec.w", "dec.v"]) == []
    assert moved(["m/a.w", "m/b.w"], ["a.w", "b.w"], alike=False) == []
    assert moved(["x.w", "y.w"], ["w"]) == []
    assert moved(["w"], ["x.w", "y.w"]) == []
    assert moved(["a.b.c.d.e.f.g.h.w"], ["w"]) == []
    assert moved(["", "a"], ["b"]) == []


def test_two_rules_can_hold_in_one_file() -> None:
    a = ["m/a.w", "m/b.w", "e/a.v", "e/c.v", "z"]
    b = ["a.w", "b.w", "s/a.v", "s/c.v", "y"]
    assert sorted(moved(a, b)) == [
        (one, b[number]) for number, one in sorted(enumerate(a[:4]), key=lambda x: x[1])
    ]


def test_rules_that_each_explain_a_pair_are_not_tried_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    a = [f"p{number}.{leaf}{number}" for number in range(50) for leaf in "xy"]
    b = [name.partition(".")[2] for name in a]
    looks: list[object] = []
    explained = pairing._explained
    monkeypatch.setattr(pairing, "_explained", lambda *given: (looks.append(1), explained(*given))[1])
    assert len(moved(a, b)) == 64
    assert len(looks) == 32
