"""Which colour a device has: the same on every page, and the CPU's neutral one for what is no accelerator."""

from __future__ import annotations

from collections.abc import Iterable

from inspector.model.devices import device_order, is_accelerator

NEUTRAL = -1


def device_colours(devices: Iterable[str]) -> dict[str, int]:
    """Number the accelerators among these devices in their fixed order; all others are neutral."""
    ordered = sorted(set(devices), key=device_order)
    accelerators = [device for device in ordered if is_accelerator(device)]
    return {device: accelerators.index(device) if device in accelerators else NEUTRAL for device in ordered}
