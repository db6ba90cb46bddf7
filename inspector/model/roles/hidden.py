"""Devices in places that no `map_location` reaches: values, generators, meshes, wrappers."""

from __future__ import annotations

from inspector.model.checkpoint import HiddenPlace
from inspector.model.tensors.rebuild import device_text
from inspector.model.values.children import find_attribute
from inspector.model.values.text import class_of, device_label
from inspector.pickles.values import Call

_MESHES = ("torch.distributed.device_mesh.DeviceMesh", "torch.distributed._tensor.device_mesh.DeviceMesh")
_PARALLEL = "torch.nn.parallel.data_parallel.DataParallel"
_MOST_IDS = 64


def hidden_devices(call: Call) -> list[tuple[str, HiddenPlace]]:
    """Return the devices that a call names for itself, each with the kind of place."""
    name = class_of(call) or ""
    args = call.args if isinstance(call.args, tuple) else ()
    if name == "torch.device":
        return [(device_text(call) or "?", HiddenPlace.DEVICE)]
    if name == "torch._C.Generator":
        return [((device_text(args[0]) if args else None) or "cpu", HiddenPlace.GENERATOR)]
    if name in _MESHES:
        kind = find_attribute(call.state, "._device_type")
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
