"""The code is run, with NumPy and torch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from inspector.errors import PlanError
from inspector.model.build import open_checkpoint
from inspector.records import replace
from inspector.snippet.arrays import Held, arrays_code, render_arrays
from inspector.snippet.device import choose_device, fixed_device
from inspector.snippet.styles.table import render
from inspector.snippet.unopened import render_unopened
from inspector.target.wish import parse_wish
from tests.builders.arrays import npy
from tests.builders.pickles import proto, stream
from tests.builders.scripts import evil

torch = pytest.importorskip("torch")
CPU = parse_wish("cpu").machine
assert CPU is not None


def run(path: Path) -> dict[str, Any]:
    """Run the code for a file, and return what it leaves."""
    left: dict[str, Any] = {}
    exec(render(open_checkpoint(str(path)), style=None, target=CPU), left)
    return left


def test_code_for_one_array(tmp_path: Path) -> None:
    for number, kind in enumerate(("<f4", ">f8")):
        path = tmp_path / f"{number}.npy"
        np.save(path, np.arange(6, dtype=kind).reshape(2, 3))
        assert run(path)["tensor"].tolist() == [[0, 1, 2], [3, 4, 5]]
    path = tmp_path / "fields.npy"
    np.save(path, np.array([(1.5, 2, "x")] * 2, [("a", "<f8"), ("b", "<i8"), ("c", "<U2")]))
    assert {name: value.tolist() for name, value in run(path)["tensors"].items()} == {
        "a": [1.5, 1.5],
        "b": [2, 2],
    }
    path = tmp_path / "texts.npy"
    np.save(path, np.array(["a", "b"]))
    left = run(path)
    assert left["array"].tolist() == ["a", "b"]
    path = tmp_path / "objects.npy"
    np.save(path, np.array([1, None], dtype=object))
    assert run(path)["checkpoint"].tolist() == [1, None]


def test_code_for_several(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    np.savez(path, w=np.ones(2), big=np.arange(3, dtype=">i4"))
    assert {name: value.tolist() for name, value in run(path)["state_dict"].items()} == {
        "w": [1, 1],
        "big": [0, 1, 2],
    }
    np.savez(path, w=np.ones(2), o=np.array([None], dtype=object), s=np.array(["x"]))
    assert {name: value.tolist() for name, value in run(path)["state_dict"].items()} == {"w": [1, 1]}
    np.savez(path, w=np.ones(2))
    assert "arrays.files" in render(open_checkpoint(str(path)), style="plain", target=CPU)
    assert run(path)["state_dict"]["w"].tolist() == [1, 1]


def test_tensors_go_to_the_device() -> None:
    for form in ("npy", "npz"):
        for held in (Held(), Held(names=("a",), is_tensor=False), Held(is_swapped=True)):
            assert '.to("cuda:1")' in arrays_code(form, "x", fixed_device("cuda:1"), held)
    code = arrays_code("npy", "x", choose_device(replace(CPU, id="this")))
    assert ".to(device)" in code
    assert render_unopened("npz", "x.npz", CPU) == arrays_code("npz", "x.npz", fixed_device("cpu"))


def test_none_is_given_for_what_can_run_commands(tmp_path: Path) -> None:
    path = tmp_path / "a.npy"
    path.write_bytes(npy("|O", (1,), stream(proto(), evil())))
    with pytest.raises(PlanError, match="if it is told to load objects"):
        render_arrays(open_checkpoint(str(path)), "a.npy", fixed_device("cpu"))
