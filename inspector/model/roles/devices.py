"""Device strings as they stand in a file, split into type and index, and in a fixed order."""

from __future__ import annotations

import re

from inspector.containers.persistent_ids import NO_DEVICE
from inspector.model.roles.device_types import DEVICE_TYPES

_DEVICE = re.compile(r"([a-z_][a-z0-9_]*)(?::([0-9]{1,3}))?")


def split_device(text: str) -> tuple[str, int | None] | None:
    """Split `cuda:1` into `("cuda", 1)` and `cpu` into `("cpu", None)`; return None if it is no device."""
    match = _DEVICE.fullmatch(text)
    if match is None:
        return None
    return match[1], None if match[2] is None else int(match[2])


def device_order(text: str) -> tuple[int, str, int]:
    """Return a sort key: accelerators by type and number, then the CPU, meta, what is no device, and none."""
    parts = split_device(text)
    if parts is None:
        return 3, text, 0
    kind, index = parts
    return {"cpu": 1, "meta": 2, NO_DEVICE: 4}.get(kind, 0), kind, -1 if index is None else index


def is_accelerator(text: str) -> bool:
    """Return whether a device string names something other than the CPU and meta."""
    return device_order(text)[0] in {0, 3}


def is_destination(text: str) -> bool:
    """Return whether tensors can be sent there: torch knows it, takes data on it, and spells it like this."""
    kind, index = split_device(text) or ("", None)
    row = DEVICE_TYPES.get(kind)
    return row is not None and row.holds_data and (index is None or row.is_numbered)
