"""Devices that no map_location reaches."""

from __future__ import annotations

import pytest

from inspector.model.hidden import hidden_devices
from inspector.pickles.values import Call, Dict, Global, Value


def call(name: str, *args: Value, **attributes: Value) -> Call:
    module, _, short = name.rpartition(".")
    made = Call(Global(module, short), args, "reduce")
    made.state = Dict(list(attributes.items())) if attributes else None
    return made


DEVICE = call("torch.device", "cuda", 1)
MESH = "torch.distributed.device_mesh.DeviceMesh"
PARALLEL = "torch.nn.parallel.data_parallel.DataParallel"


@pytest.mark.parametrize(
    ("value", "found"),
    [
        (DEVICE, [("cuda:1", "torch.device")]),
        (call("torch.device", "mps"), [("mps", "torch.device")]),
        (call("torch.device"), [("?", "torch.device")]),
        (call("torch._C.Generator", DEVICE), [("cuda:1", "torch.Generator")]),
        (call("torch._C.Generator"), [("cpu", "torch.Generator")]),
        (call("torch._C.Generator", 7), [("cpu", "torch.Generator")]),
        (call(MESH, _device_type="cuda"), [("cuda", "DeviceMesh")]),
        (call(MESH, _device_type=7), []),
        (call(MESH), []),
        (call(PARALLEL, device_ids=[0, 3]), [("cuda:0", "DataParallel"), ("cuda:3", "DataParallel")]),
        (call(PARALLEL, device_ids=[0, "1", -1, 1000, True]), [("cuda:0", "DataParallel")]),
        (call(PARALLEL, device_ids=None), []),
        (call("somewhere.Thing", DEVICE), []),
        (Call(Global("torch", "device"), None, "reduce"), [("?", "torch.device")]),
    ],
)
def test_found(value: Call, found: list[tuple[str, str]]) -> None:
    assert hidden_devices(value) == found


def test_a_huge_list_of_devices_is_cut() -> None:
    assert len(hidden_devices(call(PARALLEL, device_ids=list(range(999))))) == 64
