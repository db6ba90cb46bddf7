"""State dicts of a file, and what makes their names into those that a model wants."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from inspector.diagnose.errors.state_names import Renaming, best_match, find_renaming, state_dicts, wrapper_of
from tests.unit.report.rows import checkpoint, tensor
from tests.work import growth


def test_state_dicts_are_collected_the_largest_first() -> None:
    made = checkpoint(
        tensor("ema", "a"),
        tensor("model", "a"),
        tensor("model", "b"),
        tensor("model", "b", "indices", part_of=2),
        tensor("o", "state", 0, "exp_avg", role="optimizer"),
        tensor(),
    )
    assert [(row.path, list(row.tensors)) for row in state_dicts(made)] == [
        ("model", ["a", "b"]),
        ("ema", ["a"]),
    ]


def test_whole_modules_have_dotted_names() -> None:
    made = checkpoint(
        tensor("net", "._modules", "l", "._parameters", "weight"), tensor("net", "._buffers", "mean")
    )
    (row,) = state_dicts(made)
    assert (row.path, list(row.tensors)) == ("net", ["l.weight", "mean"])


def test_best_match() -> None:
    rows = state_dicts(checkpoint(tensor("m", "a"), tensor("m", "b"), tensor("n", "c")))
    best = best_match(rows, ["c"])
    assert best is not None
    assert best.path == "n"
    largest = best_match(rows, ["x"])
    assert largest is not None
    assert largest.path == "m"
    assert best_match([], ["x"]) is None


def test_renamings() -> None:
    names = {"module.a.w": 1, "module.b.w": 1, "module.c.w": 1}
    assert find_renaming(["a.w", "b.w", "c.w"], names) == Renaming(in_file="module.", in_model="")
    assert find_renaming(["x.module.a.w", "x.module.b.w"], names) == Renaming(in_file="", in_model="x.")
    assert find_renaming(["net.a.w", "net.b.w"], names) == Renaming(in_file="module.", in_model="net.")
    assert find_renaming(["d.w", "e.w"], names) is None
    assert find_renaming(["w"], {"v": 1}) is None
    assert find_renaming([".".join("a" * 40)], {"v": 1}) is None


def test_one_that_fits_few_names_is_none() -> None:
    assert find_renaming(["a.w", "q.w", "r.w"], {"module.a.w": 1, "other": 1}) is None


def test_wrappers() -> None:
    assert wrapper_of(["module.a", "module.b"]) == "module."
    assert wrapper_of(["module._orig_mod.a", "module._orig_mod.b"]) == "module._orig_mod."
    assert wrapper_of(["module.a", "b"]) == ""
    assert wrapper_of(["a"]) == wrapper_of([]) == ""


def test_many_names_are_compared_in_proportion() -> None:
    def prepare(number: int) -> Callable[[], object]:
        names = dict.fromkeys(f"module.layer{place}.weight" for place in range(number))
        wanted = [f"net.layer{place}.weight" for place in range(number)]
        found = Renaming(in_file="module.", in_model="net.")
        return lambda: find_renaming(wanted, names) == found or pytest.fail("another renaming")

    assert growth(prepare, 1_000, 4_000) < 1.2
