from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from inspector.model.build import open_checkpoint
from inspector.model.checkpoint import Checkpoint
from inspector.snippet.models import find_models
from inspector.target import parts
from inspector.target.parts import (
    Form,
    Kind,
    is_loss_name,
    is_loss_weight,
    parts_of,
    state_folders,
    weights_by_folder,
)
from tests.builders import pickles as p
from tests.builders.states import Raw, T, save_zip
from tests.unit.report.rows import checkpoint, optimizer, tensor


def test_names_of_losses() -> None:
    for name in (
        "criterion",
        "criteria",
        "loss",
        "loss_fn",
        "losses",
        "loss_function",
        "bce_loss",
        ".criterion2",
        "loss_cls",
        "head_loss_bbox",
    ):
        assert is_loss_name(name), name
    for name in ("glossary", "lossless", "loss_history", "floss", 0, ""):
        assert not is_loss_name(name), name
    for name in ("pos_weight", "class_weights", "criterion.pos_weight", "cls_weights", "my_loss_weight"):
        assert is_loss_weight(name), name
    for name in ("weight", "outclass_weight_x", "position_weights", 3):
        assert not is_loss_weight(name), name


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


def told(made: Checkpoint) -> list[tuple[str, Kind, Form, int]]:
    return [(part.path, part.kind, part.form, len(part.rows)) for part in parts_of(made)]


def test_a_training_file() -> None:
    made = checkpoint(
        tensor("model", "fc.weight"),
        tensor("model", "fc.bias"),
        tensor("optimizer", "state", 0, "step", role="optimizer", slot="step"),
        tensor("optimizer", "state", 0, "exp_avg", role="optimizer", slot="exp_avg"),
        tensor("criterion", "weight", role="other"),
        tensor("class_weights", role="other"),
        tensor("ema", "fc.weight", role="ema"),
        tensor("scheduler", "table", role="scheduler"),
        tensor("rng_state", role="rng", dtype="uint8"),
        tensor("replay", 0, "obs", role="other"),
        optimizer("optimizer"),
    )
    assert told(made) == [
        ("model", Kind.MODEL, Form.STATE, 2),
        ("optimizer", Kind.OPTIMIZER, Form.STATE, 2),
        ("criterion", Kind.LOSS, Form.STATE, 1),
        ("", Kind.LOSS, Form.TENSORS, 1),
        ("ema", Kind.AVERAGE, Form.STATE, 1),
        ("scheduler", Kind.SCHEDULER, Form.STATE, 1),
        ("", Kind.RNG, Form.TENSORS, 1),
        ("replay/0", Kind.DATA, Form.TENSORS, 1),
    ]


def test_each_model_of_a_file_is_a_part_of_its_own() -> None:
    made = checkpoint(
        tensor("netG", "main.weight", device="cuda:0"), tensor("netD", "main.weight", device="cuda:1")
    )
    parts = parts_of(made)
    assert [part.path for part in parts] == ["netG", "netD"]
    assert [part.devices(made) for part in parts] == [("cuda:0",), ("cuda:1",)]
    assert parts[1].tensors(made) == (made.tensors[1],)
    assert parts[1].keys == ("netD",)


def test_what_has_no_data_is_on_no_device() -> None:
    made = checkpoint(tensor("a.weight", device="meta"), tensor("a.bias", device="cpu"))
    assert parts_of(made)[0].devices(made) == ("cpu",)


def test_names_tell_weights_from_data() -> None:
    weights = ("a.weight", "weight", "weight_ih_l0", "bias_hh_l0", "running_mean")
    for name in weights:
        assert told(checkpoint(tensor(name)))[0][1:3] == (Kind.MODEL, Form.STATE), name
    for name in ("obs", "reward", "images", ".w"):
        assert told(checkpoint(tensor(name)))[0][1:3] == (Kind.DATA, Form.TENSORS), name
    assert told(checkpoint(tensor("model", "w")))[0][1:3] == (Kind.MODEL, Form.STATE)
    assert told(checkpoint(tensor(0)))[0][1:3] == (Kind.DATA, Form.TENSORS)
    assert told(checkpoint(tensor()))[0][1:3] == (Kind.DATA, Form.TENSORS)
    # One dotted name is enough for those beside it.
    assert told(checkpoint(tensor("model", "a.weight"), tensor("model", 3))) == [
        ("model", Kind.MODEL, Form.STATE, 2)
    ]


def test_a_whole_module_and_its_attributes() -> None:
    made = checkpoint(
        tensor("net", "._modules", "fc", "._parameters", "weight"),
        tensor("net", "._modules", "fc", ".mask", role="other"),
        tensor("net", ".anchors", 0, role="other"),
        tensor("other", ".anchors", role="other"),
    )
    assert told(made) == [("net", Kind.MODEL, Form.OBJECT, 3), ("other", Kind.DATA, Form.TENSORS, 1)]
    assert told(checkpoint(tensor("._parameters", "w")))[0] == ("", Kind.MODEL, Form.OBJECT, 1)
    averaged = checkpoint(tensor("ema", "._modules", "module", "._parameters", "w", role="ema"))
    assert told(averaged)[0] == ("ema", Kind.AVERAGE, Form.OBJECT, 1)


def test_a_whole_loss() -> None:
    named = tensor("criterion", "._buffers", "weight", role="buffer")
    by_weight = tensor("bce", "._buffers", "pos_weight", role="buffer")
    inside = tensor("model", "._modules", "criterion", "._buffers", "weight", role="buffer")
    for row, kind in ((named, Kind.LOSS), (by_weight, Kind.LOSS), (inside, Kind.MODEL)):
        assert told(checkpoint(row))[0][1:3] == (kind, Form.OBJECT)


def test_arguments_of_a_model_are_no_loss() -> None:
    assert told(checkpoint(tensor("hyper_parameters", "class_weights", role="other")))[0][1] is Kind.DATA


def test_a_whole_optimizer() -> None:
    made = checkpoint(
        tensor("opt", ".state", "a parameter", "exp_avg"),
        tensor("opt", ".param_groups", 0, "params", 0),
        tensor("net", ".state", "x", role="other"),
    )
    assert told(made) == [
        ("opt", Kind.OPTIMIZER, Form.OBJECT, 2),
        ("net/.state", Kind.DATA, Form.TENSORS, 1),
    ]


def test_optimizer_state_of_an_unknown_layout() -> None:
    made = checkpoint(tensor("optimizer", "flat", role="optimizer"), tensor(role="optimizer"))
    assert told(made) == [
        ("optimizer", Kind.OPTIMIZER, Form.TENSORS, 1),
        ("", Kind.OPTIMIZER, Form.TENSORS, 1),
    ]


def test_parts_of_composites_are_left_out() -> None:
    assert told(checkpoint(tensor("a.w"), tensor("a.w", "values", part_of=0)))[0][3] == 1


def test_deep_ways_of_attributes_are_not_cut_at_every_step(monkeypatch: pytest.MonkeyPatch) -> None:
    cut: list[int] = []
    real = parts._start
    monkeypatch.setattr(parts, "_start", lambda path, length: cut.append(length) or real(path, length))
    rows = [tensor(*[".a"] * 200, f".b{place}", "x") for place in range(20)]
    parts_of(checkpoint(tensor("net", "._parameters", "w"), *rows))
    assert len(cut) < 20 * 12


def test_a_module_within_many_objects_is_found() -> None:
    above = [".a"] * 20
    made = checkpoint(tensor(*above, "._parameters", "w"), tensor(*above[:3], ".mask", role="other"))
    assert told(made) == [
        ("/".join(above), Kind.MODEL, Form.OBJECT, 1),
        ("/".join(above[:3]), Kind.DATA, Form.TENSORS, 1),
    ]
