"""How a device is shown: its name with nothing invisible in it, and the same color on every page."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from inspector.containers.persistent_ids import NO_DEVICE
from inspector.model.roles.devices import device_order, is_accelerator, split_device
from inspector.units import cut_text, escape_text

NEUTRAL = -1
_MOST_NAME = 40
_MOST_APART = 2


@lru_cache(maxsize=1024)
def device_name(device: str) -> str:
    """Name a device; what a file calls one may be anything."""
    if device == NO_DEVICE:
        return "no device"
    return escape_text(cut_text(device, _MOST_NAME))


def device_names(devices: Iterable[str], most: int, more: str = "") -> str:
    """Name devices in their order, of three or more those in a row as `cuda:0-7`; count what has no room.

    Args:
        most: How many names there are at most, the count of the others among them.
    """
    ordered = sorted(devices, key=device_order)
    found = device_runs(ordered, 2 if len(ordered) > _MOST_APART else len(ordered) + 1)
    names = [name for name, _ in found]
    if len(found) > most:
        left = sum(len(run) for _, run in found[most - 1 :])
        names[most - 1 :] = [f"+{left}{more}"]
    return ", ".join(names)


def device_runs(devices: Iterable[str], least: int) -> list[tuple[str, list[str]]]:
    """Name ordered devices, those of at least so many in a row as one: `cuda:0-7`, each with its devices."""
    runs: list[list[str]] = []
    for device in devices:
        if runs and device == _next_device(runs[-1][-1]):
            runs[-1].append(device)
        else:
            runs.append([device])
    return [pair for run in runs for pair in _names_of_run(run, least)]


def _next_device(device: str) -> str | None:
    """Return the device of the next index; None for one without an index, or with one written otherwise."""
    kind, index = split_device(device) or ("", None)
    return None if index is None or device != f"{kind}:{index}" else f"{kind}:{index + 1}"


def _names_of_run(run: list[str], least: int) -> list[tuple[str, list[str]]]:
    if len(run) < least:
        return [(device_name(device), [device]) for device in run]
    return [(f"{device_name(run[0])}-{run[-1].rpartition(':')[2]}", run)]


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
