"""A folder of a trainer: a branch for each file, and one checkpoint of all."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from inspector.containers import opening
from inspector.containers.container import Container
from inspector.containers.opening import read_container
from inspector.errors import CancelledError, CheckpointError
from inspector.model.build import open_checkpoint
from inspector.safety.verdict import judge
from tests.builders.archives import archive
from tests.builders.folders import shard, sharded, trainer
from tests.builders.pickles import call, proto, stream, text


def test_each_file_is_a_branch_and_slots_get_the_names_of_the_model(tmp_path: Path) -> None:
    rows = open_checkpoint(str(trainer(tmp_path)))
    assert rows.format == "folder"
    assert [(one.path, one.device, one.role, one.parameter) for one in rows.tensors] == [
        ("model.safetensors/weight", "none", "parameter", None),
        ("model.safetensors/bias", "none", "parameter", None),
        ("optimizer.pt/state/0/exp_avg", "cuda:0", "optimizer", "weight"),
        ("optimizer.pt/state/1/exp_avg", "cuda:0", "optimizer", "bias"),
    ]
    values = {one.path: one.text for one in rows.values}
    assert values["scheduler.pt/last_epoch"] == "3"
    assert values["config.json/hidden"] == "4"
    assert values["config.json/layers/1/a"] == "None"
    assert [Path(part.path).name for part in rows.parts] == [
        "model.safetensors",
        "optimizer.pt",
        "scheduler.pt",
        "training_args.bin",
    ]
    assert not rows.notes


def test_order_of_safetensors_names_nothing(tmp_path: Path) -> None:
    from tests.builders.folders import WEIGHTS, optimizer
    from tests.builders.safetensors import model

    trainer(tmp_path)
    (tmp_path / "model.safetensors").write_bytes(model(a=(4,), b=(4,)))
    (tmp_path / "optimizer.pt").write_bytes(archive(optimizer(4, 4), {"0": WEIGHTS, "1": WEIGHTS}))
    rows = open_checkpoint(str(tmp_path))
    assert [one.parameter for one in rows.tensors] == [None] * 4
    assert "does not have the model's order, and several orders fit" in rows.optimizers[0].detail
    (tmp_path / "model.safetensors").write_bytes(model(**{"1__bias": (4,), "1__weight": (4,)}))
    rows = open_checkpoint(str(tmp_path))
    assert [one.parameter for one in rows.tensors][2:] == ["1.weight", "1.bias"]


def test_verdict_is_over_all_files_and_names_the_one(tmp_path: Path) -> None:
    verdict = judge(open_checkpoint(str(trainer(tmp_path, arguments="os.system"))))
    assert verdict.verdict == "dangerous"
    assert "Asked for in training_args.bin." in verdict.reasons


def test_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    trainer(tmp_path)
    payload = stream(proto(), call("os.system", text("true")) + b"\xff")
    (tmp_path / "optimizer.pt").write_bytes(archive(payload, {}))
    rows = open_checkpoint(str(tmp_path))
    assert [note.part for note in rows.notes] == ["optimizer.pt"]
    assert rows.refusal.startswith("optimizer.pt: ")
    assert judge(rows).verdict == "dangerous"
    for name in ("model.safetensors", "scheduler.pt", "training_args.bin"):
        (tmp_path / name).write_bytes(b"\0" * 50)
    with pytest.raises(CheckpointError):
        open_checkpoint(str(tmp_path))


def test_model_may_be_in_several_files(tmp_path: Path) -> None:
    trainer(tmp_path)
    (tmp_path / "model.safetensors").unlink()
    name = "pytorch_model-00001-of-00001.bin"
    sharded(tmp_path, {name: shard("w")}, {"w": name, "gone": name})
    rows = open_checkpoint(str(tmp_path))
    assert rows.tensors[0].path == "pytorch_model.bin.index.json/w"
    assert rows.notes[0].part == f"pytorch_model.bin.index.json: {name}"
    index = tmp_path / "pytorch_model.bin.index.json"
    assert open_checkpoint(str(index)).format == "sharded"


def test_model_in_one_file_is_opened_by_its_folder(tmp_path: Path) -> None:
    trainer(tmp_path)
    for name in ("optimizer.pt", "scheduler.pt"):
        (tmp_path / name).unlink()
    rows = open_checkpoint(str(tmp_path))
    assert [one.path for one in rows.tensors] == ["model.safetensors/weight", "model.safetensors/bias"]
    assert rows.safety is None  # from_pretrained does not open training_args.bin


def test_configurations_that_are_long_or_none_are_left_out(tmp_path: Path) -> None:
    trainer(tmp_path)
    (tmp_path / "config.json").write_text("[")
    (tmp_path / "trainer_state.json").write_text(json.dumps({"x": "y" * (1 << 20)}))
    rows = open_checkpoint(str(tmp_path))
    assert not [one for one in rows.values if one.path.startswith(("config", "trainer_state"))]


def test_reading_can_be_cancelled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def cancelled(*_: object) -> Container:
        raise CancelledError

    monkeypatch.setattr(opening, "read_container", cancelled)
    with pytest.raises(CancelledError):
        read_container(str(trainer(tmp_path)))


def test_file_of_a_folder_says_so_when_it_is_opened_alone(tmp_path: Path) -> None:
    trainer(tmp_path)
    rows = open_checkpoint(str(tmp_path / "optimizer.pt"), beside=True)
    assert [note.values for note in rows.notes] == [(str(tmp_path),)]
    assert [one.parameter for one in rows.tensors] == ["weight", "bias"]
