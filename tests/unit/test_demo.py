"""The demo checkpoint: what a run on two GPUs writes, and always the same bytes."""

from __future__ import annotations

import runpy
import sys
from importlib import metadata
from pathlib import Path

import pytest

from inspector.diagnose.run import diagnose
from inspector.model.build import open_checkpoint
from inspector.model.checkpoint import Checkpoint
from inspector.model.totals import device_totals
from inspector.resources import demo_path
from inspector.safety.verdict import judge
from inspector.target.call import LoadCall
from inspector.target.profile import CPU_ONLY
from inspector.target.simulate import first_failure
from inspector.target.wish import parse_target

SCRIPT = Path(__file__).parents[2] / "resources" / "demo" / "make_demo.py"


@pytest.fixture(scope="module")
def demo() -> Checkpoint:
    return open_checkpoint(str(demo_path()))


def test_it_is_small_and_was_saved_from_two_gpus(demo: Checkpoint) -> None:
    assert demo.format == "zip"
    assert demo.file_nbytes < 1_500_000
    assert [total.device for total in device_totals(demo)] == ["cuda:0", "cuda:1", "cpu"]


def test_the_model_is_split_and_each_slot_lies_beside_its_parameter(demo: Checkpoint) -> None:
    model = {tensor.keys[-1]: tensor for tensor in demo.tensors if tensor.keys[0] == "model"}
    assert model["stem.conv.weight"].device == "cuda:0"
    assert model["layer3.1.conv2.weight"].device == model["head.bias"].device == "cuda:1"
    slots = [tensor for tensor in demo.tensors if tensor.role == "optimizer"]
    moments = [tensor for tensor in slots if tensor.slot != "step"]
    assert {tensor.slot for tensor in moments} == {"exp_avg", "exp_avg_sq"}
    assert all(tensor.device == model[tensor.parameter].device for tensor in moments)
    assert all(tensor.shape == model[tensor.parameter].shape for tensor in moments)
    averaged = [tensor for tensor in demo.tensors if tensor.role == "ema"]
    assert averaged
    assert all(tensor.device == model[tensor.keys[-1]].device for tensor in averaged)


def test_what_torch_keeps_on_the_cpu_is_there(demo: Checkpoint) -> None:
    on_cpu = [tensor for tensor in demo.tensors if tensor.device == "cpu"]
    assert {tensor.slot or tensor.role for tensor in on_cpu} == {"step", "rng"}
    assert all(tensor.on_cpu_by_design for tensor in on_cpu)
    random_states = [tensor.shape for tensor in on_cpu if tensor.role == "rng"]
    assert random_states == [(5056,), (16,), (16,)]


def test_every_role_of_a_training_run_is_there(demo: Checkpoint) -> None:
    assert {tensor.role for tensor in demo.tensors} == {"parameter", "buffer", "optimizer", "rng", "ema"}
    values = {value.path for value in demo.values}
    assert {"epoch", "best_accuracy", "scheduler/gamma", "scaler/scale", "config/learning_rate"} <= values


def test_the_optimizer_is_named_though_the_file_gives_numbers_only(demo: Checkpoint) -> None:
    (optimizer,) = demo.optimizers
    assert optimizer.naming == "order"
    assert optimizer.parameters == optimizer.with_state == sum(t.role == "parameter" for t in demo.tensors)


def test_it_shows_what_the_program_is_for(demo: Checkpoint) -> None:
    safety = judge(demo)
    assert safety.verdict == "weights-only"
    failure = first_failure(demo, CPU_ONLY, LoadCall(weights_only=False))
    assert failure.message.startswith("RuntimeError: Attempting to deserialize object on a CUDA device")
    assert first_failure(demo, parse_target("2xcuda"), LoadCall(weights_only=False)) is None
    assert diagnose(demo, safety) == ()


@pytest.mark.torch
def test_the_script_writes_the_same_bytes_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not metadata.version("torch").startswith("2.13."):
        pytest.skip("another torch writes other options into the optimizer's groups")
    torch = pytest.importorskip("torch")
    copy = tmp_path / "demo.pth"
    monkeypatch.setattr(sys, "argv", [str(SCRIPT), str(copy)])
    state = torch.get_rng_state()
    runpy.run_path(str(SCRIPT), run_name="__main__")
    torch.set_rng_state(state)
    assert copy.read_bytes() == demo_path().read_bytes()
