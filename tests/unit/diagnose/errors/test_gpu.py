"""Messages of GPUs, which no file brings about; but Apple's have no float64."""

from __future__ import annotations

from inspector.diagnose.errors.explain import explain_error
from tests.unit.diagnose.explaining import explained, on
from tests.unit.report.rows import checkpoint, tensor

NO_KERNEL = "RuntimeError: CUDA error: no kernel image is available for execution on the device"
CARD = (
    "x.py:1: UserWarning:\nNVIDIA GeForce {} with CUDA capability {} is not compatible with the current "
    "PyTorch installation.\nThe current PyTorch install supports CUDA capabilities sm_50 sm_60 sm_90.\n"
)


def test_the_gpu_and_what_the_build_knows_are_told() -> None:
    found = explained(
        CARD.format("RTX 5090", "sm_120") + NO_KERNEL, on(("a", "cuda:0")), id_="no-kernel-image"
    )
    assert "NVIDIA GeForce RTX 5090 is sm_120; this build has code for sm_50 sm_60 sm_90." in found.cause
    assert "torch 2.7 or newer" in found.advice
    assert found.fits == "no"
    old = explain_error(
        CARD.format("GTX 980", "sm_52").partition("The current PyTorch install supports")[0] + NO_KERNEL, None
    )
    assert "is sm_52. CUDA code" in old.cause
    assert "older one for an old GPU" in old.advice
    assert "get_arch_list" in explain_error(NO_KERNEL, None).advice
    assert "HSA_OVERRIDE" in explain_error("RuntimeError: HIP error: invalid device function", None).advice


def test_float64_on_mps() -> None:
    text = (
        "TypeError: Cannot convert a MPS Tensor to float64 dtype as the MPS framework doesn't support "
        "float64."
    )
    found = explained(text, checkpoint(tensor("a", dtype="float64"), tensor("b")), id_="mps-float64")
    assert (found.fits, found.paths) == ("yes", ("a",))
    assert explained(text, on(("a", "mps")), id_="mps-float64").fits == "no"
