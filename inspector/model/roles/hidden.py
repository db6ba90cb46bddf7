"""Devices in places that no `map_location` reaches: values, generators, meshes, wrappers, texts, types."""

from __future__ import annotations

import re
from collections.abc import Iterator

from inspector.model.checkpoint import Checkpoint, HiddenDevice, HiddenPlace, ValueRow
from inspector.model.roles.devices import is_accelerator, split_device
from inspector.model.tensors.rebuild import device_text
from inspector.model.values.children import find_attribute
from inspector.model.values.text import class_of, device_label
from inspector.pickles.values import Call

GENERATOR, MESH_TYPE = "torch._C.Generator", "._device_type"
MESHES = ("torch.distributed.device_mesh.DeviceMesh", "torch.distributed._tensor.device_mesh.DeviceMesh")
_PARALLEL = "torch.nn.parallel.data_parallel.DataParallel"
_MOST_IDS = 64
DEVICE_CLASS = "torch.device"
_TENSOR_TYPE = re.compile(r"torch\.([a-z]+)\.(?:sparse\.)?[A-Za-z]+Tensor")

DEVICE_NAMES = frozenset({".device", "._device"})
"""The names that everybody gives a device."""
MOVABLE = frozenset({HiddenPlace.DEVICE, HiddenPlace.KEY, HiddenPlace.MESH, HiddenPlace.NESTED})
"""What a copy can have on another type of device; the state of a generator fits its own type only."""
CHANGED_IN = frozenset({"zip", "legacy"})
"""The formats that a copy can have them changed in: those of one pickle, which torch.load reads.

TorchScript reads the type alone of `torch.device("cuda", 1)`, and its code has devices of its own.
"""
SOURCE_DEVICE = ".src_device_obj"
"""The attribute with the first device of a DataParallel, which has to be the first of its `device_ids`."""


def hidden_devices(call: Call) -> list[tuple[str, HiddenPlace]]:
    """Return the devices that a call names for itself, each with the kind of place."""
    name = class_of(call) or ""
    args = call.args if isinstance(call.args, tuple) else ()
    if name == DEVICE_CLASS:
        return [(device_text(call) or "?", HiddenPlace.DEVICE)]
    if name == GENERATOR:
        return [((device_text(args[0]) if args else None) or "cpu", HiddenPlace.GENERATOR)]
    if name in MESHES:
        kind = find_attribute(call.state, MESH_TYPE)
        return [(device_label(kind), HiddenPlace.MESH)] if isinstance(kind, str) else []
    if name == _PARALLEL:
        ids = find_attribute(call.state, ".device_ids")
        numbers = ids[:_MOST_IDS] if isinstance(ids, list) else []
        return [
            (f"cuda:{number}", HiddenPlace.DATA_PARALLEL)
            for number in numbers
            if type(number) is int and 0 <= number < 1000
        ]
    return []


def is_of_generator(path: str, last: HiddenDevice) -> bool:
    """Return whether a device is the argument of the generator that was found just before it."""
    return last.what is HiddenPlace.GENERATOR and path == (f"{last.path}/0" if last.path else "0")


def devices_outside(checkpoint: Checkpoint) -> Iterator[HiddenDevice]:
    """Yield every device that is written outside of tensors: objects first, then texts and types."""
    yield from checkpoint.hidden_devices
    for row in checkpoint.values:
        found = _of_value(row)
        if found is not None:
            yield HiddenDevice(path=row.path, device=found[0], what=found[1])


def _of_value(row: ValueRow) -> tuple[str, HiddenPlace] | None:
    """Return the device of a module's text, or of a class of tensors, with the kind of place."""
    if row.type == "str" and row.keys and row.keys[-1] in DEVICE_NAMES:
        is_one = split_device(row.text) is not None and is_accelerator(row.text)
        return (row.text, HiddenPlace.TEXT) if is_one else None
    parts = _TENSOR_TYPE.fullmatch(row.text) if row.type == "global" else None
    if parts is None or not is_accelerator(parts[1]):
        return None
    return parts[1], HiddenPlace.TENSOR_TYPE
