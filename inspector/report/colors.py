"""How a device is shown: its name with nothing invisible in it, and the same color on every page."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from inspector.containers.persistent_ids import NO_DEVICE
from inspector.model.roles.devices import device_order, is_accelerator
from inspector.units import cut_text, escape_text

NEUTRAL = -1
_MOST_NAME = 40


@lru_cache(maxsize=1024)
def device_name(device: str) -> str:
    """Name a device; what a file calls one may be anything."""
    if device == NO_DEVICE:
        return "no device"
    return escape_text(cut_text(device, _MOST_NAME))


def device_colors(devices: Iterable[str]) -> dict[str, int]:
    """Number the accelerators among these devices in their fixed order; all others are neutral."""
    colors: dict[str, int] = {}
    free = 0
    for device in sorted(set(devices), key=device_order):
        colors[device] = free if is_accelerator(device) else NEUTRAL
        free += is_accelerator(device)
    return colors


def more_colors(colors: dict[str, int], devices: Iterable[str]) -> dict[str, int]:
    """Number further devices after those that have a color."""
    free = max(colors.values(), default=NEUTRAL) + 1
    further = device_colors(set(devices) - colors.keys())
    return colors | {
        device: NEUTRAL if color == NEUTRAL else color + free for device, color in further.items()
    }
