"""Optimizers that were pickled whole."""

from __future__ import annotations

from tests.builders.pickles import op
from tests.unit.diagnose.cases import findings, whole_optimizer
from tests.unit.report.rows import checkpoint, tensor


def test_state_apart_from_its_parameters() -> None:
    found = findings(whole_optimizer("cpu", "cpu"))["optimizer-off-parameter-device"]
    assert found.severity == "warning"
    assert "'Expected all tensors to be on the same device ...'" in found.detail
    assert [path.rpartition("/")[2] for path in found.paths] == ["step", "exp_avg"]


def test_state_on_another_gpu() -> None:
    found = findings(whole_optimizer("cpu", "cuda:1"))["optimizer-off-parameter-device"]
    assert "'Tensors of the same index must be on the same device ...'" in found.detail


def test_counters_apart_from_capturable_parameters() -> None:
    found = findings(whole_optimizer("cpu", "cuda:0", capturable=op("NEWTRUE")))
    assert found["step-off-accelerator"].severity == "warning"
    assert "optimizer-off-parameter-device" not in found


def test_optimizer_whose_parameters_are_where_its_state_is() -> None:
    for made in (
        whole_optimizer("cpu", "cuda:0"),
        whole_optimizer("cpu", "cpu", "cpu"),
        whole_optimizer("cpu", "cpu", "cpu", capturable=op("NEWTRUE")),  # a matter of the target
    ):
        assert not {"optimizer-off-parameter-device", "step-off-accelerator"} & findings(made).keys()


def test_device_that_is_none_has_no_fix() -> None:
    assert findings(whole_optimizer("cpu", "cpu", "odd!"))["optimizer-off-parameter-device"].fix is None


def test_number_of_optimizers_that_are_looked_at_is_bounded() -> None:
    rows = []
    for place in range(40):
        rows += [
            tensor(str(place), ".state", "p", "exp_avg", device="cpu"),
            tensor(str(place), ".param_groups", 0, "params", 0, device="cuda:0"),
        ]
    assert findings(checkpoint(*rows))["optimizer-off-parameter-device"].count == 16
