"""Which errors are about the machine: what the GPU doctor says of it belongs into their answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from inspector.model.roles.device_types import DEVICE_FINDINGS

if TYPE_CHECKING:
    from inspector.diagnose.errors.explanation import Explanation

ABOUT_MACHINE = frozenset({"bitsandbytes", "cuda-start", "driver-mismatch", "fp16-on-cpu", "no-kernel-image"})
"""Ids of explanations that go with no finding about a device, as no file has to do with them."""


def is_about_machine(explanation: Explanation | None) -> bool:
    """Return whether an error comes from what torch finds on the machine, or does not find there."""
    return explanation is not None and (
        explanation.finding in DEVICE_FINDINGS or explanation.id in ABOUT_MACHINE
    )
