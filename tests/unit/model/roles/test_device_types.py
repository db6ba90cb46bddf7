"""The table of device types."""

from __future__ import annotations

import pytest

from inspector.model.roles.devices import DEVICE_TYPES, DeviceType, device_type
from inspector.target.versions import NEWEST


@pytest.mark.torch
def test_names_are_those_that_torch_parses() -> None:
    torch = pytest.importorskip("torch")
    of_plugins = {"npu", "mlu", "musa"}  # names that plug-ins give to privateuseone
    for kind in DEVICE_TYPES.keys() - of_plugins:
        assert torch.device(kind).type == kind


def test_what_a_file_calls_a_device_may_be_unknown() -> None:
    assert device_type("cuda") is DEVICE_TYPES["cuda"]
    assert device_type("warp") == DeviceType(name="warp")
    assert not DEVICE_TYPES.keys() & {"warp", "lazy", "vulkan"}
    assert device_type("lazy").word(device_type("lazy").send_error).endswith("'Lazy' backend.")


def test_rows_are_of_one_piece() -> None:
    for name, row in DEVICE_TYPES.items():
        assert row.name == name
        assert row.since is None or row.since <= NEWEST, name
        assert bool(row.noun) == bool(row.presets) == bool(row.available), name
        assert name in row.word("{name} {NAME}"), name


def test_devices_of_a_type() -> None:
    assert DEVICE_TYPES["cuda"].devices(2) == ("cuda:0", "cuda:1")
    assert DEVICE_TYPES["mps"].devices(1) == ("mps",)
    assert DEVICE_TYPES["mps"].devices(0) == ()
