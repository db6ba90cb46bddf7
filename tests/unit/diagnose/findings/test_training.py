"""Findings about optimizers, in the cases that are less plain."""

from __future__ import annotations

from inspector.model.findings import Fix
from inspector.records import replace
from tests.builders.pickles import op
from tests.unit.diagnose.cases import findings, trained, unnamed
from tests.unit.report.rows import checkpoint, optimizer, tensor


def step(place: int, device: str) -> object:
    return tensor("o", "state", place, "step", device=device, role="optimizer", slot="step")


def moment(place: int, device: str) -> object:
    return tensor("o", "state", place, "exp_avg", device=device, role="optimizer", slot="exp_avg")


def test_counters_on_one_device_are_sent_there_together() -> None:
    made = checkpoint(step(0, "cpu"), moment(0, "cuda:0"), step(1, "cpu"), moment(1, "cuda:0"))
    found = findings(made)["step-off-accelerator"]
    assert found.fix == Fix(rule="path:**/step@cuda:0")
    assert found.count == 2


def test_counters_of_a_split_model_are_left_to_load_state_dict() -> None:
    made = checkpoint(step(0, "cpu"), moment(0, "cuda:0"), step(1, "cpu"), moment(1, "cuda:1"))
    assert findings(made)["step-off-accelerator"].fix == Fix(style="resume")


def test_counter_without_company_is_no_stray() -> None:
    assert "step-off-accelerator" not in findings(checkpoint(step(0, "cpu"), moment(1, "cuda:0")))


def test_counter_on_the_gpu_of_a_fused_optimizer_is_at_home() -> None:
    found = findings(trained("cuda:0", "cuda:0", fused=op("NEWTRUE")))
    assert not {"step-on-accelerator", "step-off-accelerator"} & found.keys()


def test_more_parameters_than_the_model_has() -> None:
    found = findings(unnamed((4,), (2, 2), (4,)))["optimizer-mismatch"]
    assert found.severity == "warning"
    assert "list 3 parameters, the file holds 2" in found.detail
    assert "doesn't match the size of optimizer's group" in found.detail


def test_fewer_parameters_than_the_model_has_are_frozen_ones() -> None:
    made = checkpoint(tensor("m", "a"), tensor("m", "b"), optimizer("o", parameters=1))
    assert "optimizer-mismatch" not in findings(made)


def test_an_optimizer_alone_can_be_compared_with_nothing() -> None:
    made = checkpoint(optimizer("o", parameters=9))
    assert "optimizer-mismatch" not in findings(made)
    unknown = replace(made, optimizers=(optimizer(naming="unknown", detail="No model is there."),))
    found = findings(unknown)["optimizer-mismatch"]
    assert found.title == "Optimizer slots of the checkpoint could not all be named"
    assert found.detail == "No model is there."
