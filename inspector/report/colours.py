"""How a device is shown: its name with nothing invisible in it, and the same colour on every page."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from inspector.model.roles.devices import device_order, is_accelerator
from inspector.units import cut_text, escape_text

NEUTRAL = -1
_MOST_NAME = 40


@lru_cache(maxsize=1024)
def device_name(device: str) -> str:
    """Name a device; what a file calls one may be anything."""
    return escape_text(cut_text(device, _MOST_NAME))


def device_colours(devices: Iterable[str]) -> dict[str, int]:
    """Number the accelerators among these devices in their fixed order; all others are neutral."""
    colours: dict[str, int] = {}
    free = 0
    for device in sorted(set(devices), key=device_order):
        colours[device] = free if is_accelerator(device) else NEUTRAL
        free += is_accelerator(device)
    return colours


def more_colours(colours: dict[str, int], devices: Iterable[str]) -> dict[str, int]:
    """Number further devices after those that have a colour."""
    free = max(colours.values(), default=NEUTRAL) + 1
    further = device_colours(set(devices) - colours.keys())
    return colours | {
        device: NEUTRAL if colour == NEUTRAL else colour + free for device, colour in further.items()
    }
