"""What a file has to do with tensors on two devices, in each step."""

from __future__ import annotations

from tests.unit.diagnose.cases import trained, whole_optimizer
from tests.unit.diagnose.explaining import explained, on

SAME = "Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu!"
FRAME = '  File "/v/site-packages/torch/{}.py", line 7, in {}\n    {}\n'


def test_state_of_optimizers_is_named_and_not_blamed() -> None:
    text = FRAME.format("optim/adam", "step", "exp_avg.mul_(beta1)") + f"RuntimeError: {SAME}"
    found = explained(text, trained("cpu", "cpu"), id_="same-device")
    assert (found.fits, found.paths) == ("unknown", ("optimizer/state/0/exp_avg",))
    assert "exp_avg of model/w, saved on cpu" in found.here or "exp_avg of w, saved on cpu" in found.here
    assert "batch" not in found.here
    none = explained(text, on(("a", "cpu")), id_="same-device")
    assert (none.fits, "holds no optimizer state" in none.here) == ("no", True)
    other = FRAME.format("optim/adam", "step", "buf.add_(grad)") + f"RuntimeError: {SAME}"
    assert explained(other, trained("cpu", "cpu"), id_="same-device").count == 1
    pickled = explained(text, whole_optimizer("cpu", "cuda:1"), id_="same-device")
    assert (pickled.fits, pickled.finding) == ("yes", "optimizer-off-parameter-device")


def test_other_steps_have_other_causes() -> None:
    for path, function, word in (
        ("nn/functional", "cross_entropy", "targets"),
        ("nn/functional", "linear", "its input"),
        ("nn/utils/clip_grad", "clip_grad_norm_", "part of the model"),
        ("utils/data/_utils/fetch", "fetch", "dataset"),
        ("nn/modules/module", "_apply", "batch"),
    ):
        text = FRAME.format(path, function, "x") + f"RuntimeError: {SAME}"
        assert word in explained(text, on(("a", "cpu")), id_="same-device").here, function
        apart = explained(text, on(("a.w", "cpu"), ("b.w", "cuda:0")), id_="same-device")
        assert (apart.fits, word in apart.here) == ("unknown", True), function
