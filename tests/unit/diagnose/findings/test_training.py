"""Findings about optimizers, in the cases that are less plain."""

from __future__ import annotations

from inspector.model.checkpoint import Checkpoint
from inspector.records import replace
from inspector.target.profile import Profile
from tests.builders.pickles import op
from tests.unit.diagnose.cases import findings, trained, unnamed
from tests.unit.report.rows import checkpoint, optimizer, tensor, value


def step(place: int, device: str) -> object:
    fields = {"role": "optimizer", "slot": "step", "on_cpu_by_design": True}
    return tensor("o", "state", place, "step", device=device, **fields)


def moment(place: int, device: str) -> object:
    return tensor("o", "state", place, "exp_avg", device=device, role="optimizer", slot="exp_avg")


def severity(made: Checkpoint, target: str | Profile | None = None) -> str:
    return findings(made, target)["step-on-accelerator"].severity


def test_counters_on_the_gpu_of_their_parameter_are_slow_and_work() -> None:
    made = checkpoint(step(0, "cuda:0"), moment(0, "cuda:0"), step(1, "cuda:1"), moment(1, "cuda:1"))
    assert severity(made) == "note"
    assert severity(checkpoint(step(0, "cuda:1"), moment(0, "cpu"))) == "note"


def test_counters_on_another_gpu_stop_the_next_step() -> None:
    made = checkpoint(step(0, "cuda:1"), moment(0, "cuda:0"))
    assert severity(made) == "warning"
    assert findings(made)["step-on-accelerator"].title == "The optimizer's step counters are on another GPU"


def test_the_wanted_device_decides_where_one_is_named() -> None:
    made = checkpoint(step(0, "cuda:1"), moment(0, "cuda:1"))
    assert severity(made, "2xcuda:0") == "warning"
    assert severity(made, "2xcuda:1") == "note"
    assert severity(made, "2xcuda") == "note"  # the model may be on cuda:1 there, too
    assert severity(made, "cuda:0") == "note"  # torch.load stops: the file has to be mapped
    assert severity(made, "cpu") == "note"
    apart = checkpoint(step(0, "cuda:1"), moment(0, "cuda:0"))
    assert severity(apart, "2xcuda") == "warning"


def test_capturable_optimizer_needs_its_gpu() -> None:
    made = trained("cuda:0", "cuda:0", capturable=op("NEWTRUE"))
    assert findings(made, "mps")["optimizer-capturable"].paths == ("optimizer/param_groups/0",)
    for target in ("cuda", "xpu", None):
        assert "optimizer-capturable" not in findings(made, target)


def test_flag_of_an_optimizer_without_counters_is_not_read() -> None:
    flag = value("o", "param_groups", 0, "capturable", text="True")
    made = checkpoint(moment(0, "cuda:0"), flag, optimizer("o", capturable=True))
    assert "optimizer-capturable" not in findings(made, "cpu")


def test_counter_on_the_gpu_of_a_fused_optimizer_is_at_home() -> None:
    found = findings(trained("cuda:0", "cuda:0", fused=op("NEWTRUE")))
    assert not {"step-on-accelerator", "step-off-accelerator"} & found.keys()


def test_more_parameters_than_the_model_has() -> None:
    found = findings(unnamed((4,), (2, 2), (4,)))["optimizer-mismatch"]
    assert found.severity == "warning"
    assert "list 3 parameters, the file holds 2" in found.detail
    assert "doesn't match the size of optimizer's group" in found.detail


def test_fewer_parameters_than_the_model_has_are_frozen_ones() -> None:
    made = checkpoint(tensor("m", "a.w"), tensor("m", "b.w"), optimizer("o", parameters=1))
    assert "optimizer-mismatch" not in findings(made)


def test_tensors_of_a_replay_buffer_are_no_parameters() -> None:
    data = checkpoint(tensor("buffer", "obs"), tensor("buffer", "reward"), optimizer("o", parameters=9))
    assert "optimizer-mismatch" not in findings(data)
    model = checkpoint(tensor("net", "a.weight"), tensor("net", "a.bias"), optimizer("o", parameters=9))
    assert "optimizer-mismatch" in findings(model)


def test_an_optimizer_alone_can_be_compared_with_nothing() -> None:
    made = checkpoint(optimizer("o", parameters=9))
    assert "optimizer-mismatch" not in findings(made)
    unknown = replace(made, optimizers=(optimizer(naming="unknown", detail="No model is there."),))
    found = findings(unknown)["optimizer-mismatch"]
    assert found.title == "Optimizer slots of the checkpoint could not all be named"
    assert found.detail == "No model is there."
