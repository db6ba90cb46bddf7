"""DistributedDataParallel on devices, parameters and gradients."""

from __future__ import annotations

from inspector.diagnose.errors.explain import explain_error


def test_gradients_that_do_not_come_are_no_matter_of_devices() -> None:
    text = (
        "RuntimeError: Expected to have finished reduction in the prior iteration before starting a new one."
    )
    found = explain_error(text, None)
    assert found.id == "ddp-unused"
    assert "find_unused_parameters=True" in found.advice
    device = (
        "ValueError: DDP's device_ids and output_device arguments only work with ... got module parameters"
    )
    assert explain_error(device, None).id == "ddp-device"
