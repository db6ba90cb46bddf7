"""Which mappings are state dicts, and that code and forecasts have one answer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from inspector.model.build import open_checkpoint
from inspector.snippet.models import find_models
from inspector.target.parts import Form, Kind, parts_of, state_folders, weights_by_folder
from tests.builders import pickles as p
from tests.builders.states import Raw, T, save_zip

W = T([1.0, 2.0])
ROWS: dict[str, tuple[Any, set[str]]] = {
    "dotted names": ({"a.weight": W, "a.bias": W}, {""}),
    "names of no layer": ({"w": W, "b": W}, {""}),
    "one tensor under a name of models": ({"model": {"w": W}, "epoch": 1}, {"model"}),
    "one tensor, dotted": ({"x": {"a.weight": W, "n": 1, "m": 2}, "epoch": 1}, {"x"}),
    "one tensor of any name": ({"x": {"w": W, "n": 1, "m": 2}, "epoch": 1}, set()),
    "columns of a batch": ({"obs": W, "action": W}, set()),
    "a loss beside a model": (
        {"model": {"a.weight": W}, "criterion": {"pos": W, "n": 1}},
        {"model", "criterion"},
    ),
    "samples": ([{"u": W, "v": W} for _ in range(6)], {"0", "1", "2", "3"}),
    "a list": ([W, W], set()),
    "attributes": ({"x": Raw(p.new("my.Own", (p.text("n"), p.number(1)))), "y": 1}, set()),
}


def test_code_and_forecasts_have_one_answer(tmp_path: Path) -> None:
    for name, (state, wanted) in ROWS.items():
        checkpoint = open_checkpoint(save_zip(tmp_path / "a.pt", state))
        assert state_folders(checkpoint) == wanted, name
        assert set(weights_by_folder(checkpoint)) >= wanted
        found = {part.path for part in parts_of(checkpoint) if part.form is Form.STATE}
        assert found == wanted, name
        offered = {"/".join(map(str, model.keys)) for model in find_models(checkpoint)}
        assert offered == wanted, name
        if name == "a loss beside a model":
            assert {part.kind for part in parts_of(checkpoint)} == {Kind.MODEL, Kind.LOSS}
