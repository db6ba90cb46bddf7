from __future__ import annotations

from inspector.containers.persistent_ids import NO_DEVICE
from inspector.report.colors import NEUTRAL, device_colors, device_name, device_names, more_colors


def test_accelerators_are_numbered_in_their_order() -> None:
    assert device_colors(["cpu", "cuda:10", "cuda:2", "mps", "meta", "cuda:2"]) == {
        "cuda:2": 0,
        "cuda:10": 1,
        "mps": 2,
        "cpu": NEUTRAL,
        "meta": NEUTRAL,
    }


def test_further_devices_come_after_those_that_have_a_color() -> None:
    colors = {"cuda:3": 0, "cpu": NEUTRAL}
    assert more_colors(colors, ["cpu", "cuda:3", "cuda:1", "cuda:0", "meta"]) == {
        "cuda:3": 0,
        "cpu": NEUTRAL,
        "cuda:0": 1,
        "cuda:1": 2,
        "meta": NEUTRAL,
    }
    assert more_colors({}, ["cuda:0"]) == {"cuda:0": 0}
    assert colors == {"cuda:3": 0, "cpu": NEUTRAL}


def test_a_name_has_nothing_invisible_in_it_and_an_end() -> None:
    assert device_name("cuda:0") == "cuda:0"
    assert device_name("cuda\u202e:0") == r"cuda\u202e:0"
    assert len(device_name("x" * 999)) == 40


def test_no_device_is_called_that() -> None:
    assert device_name(NO_DEVICE) == "no device"
    assert device_colors([NO_DEVICE, "cuda:0"]) == {"cuda:0": 0, NO_DEVICE: NEUTRAL}


def test_devices_in_a_row_share_a_name() -> None:
    expected = {
        ("cuda:1", "cuda:0"): "cuda:0, cuda:1",
        ("cuda:2", "cuda:1", "cuda:0"): "cuda:0-2",
        ("cpu", *(f"cuda:{index}" for index in range(16))): "cuda:0-15, cpu",
        ("cuda:0", "cuda:1", "cuda:2", "cuda:4", "cuda:6"): "cuda:0-2, cuda:4, cuda:6",
        ("cuda:0", "cuda:1", "cuda:2", "cuda:5", "cuda:6", "cuda:7", "mps"): "cuda:0-2, cuda:5-7, mps",
        ("cuda:0", "cuda:1", "cuda:3", "cuda:4", "cuda:5", "mps", "cpu"): "cuda:0-1, cuda:3-5, +2",
        (
            "cuda:0",
            "cuda:01",
            "cuda:2",
        ): "cuda:0, cuda:01, cuda:2",  # a text of another spelling is no neighbor
        ("cuda", "cuda:0", "cuda:1"): "cuda, cuda:0-1",
        ("cuda:0", "cuda:1", "cpu"): "cuda:0-1, cpu",
        (): "",
    }
    wrong = {
        devices: device_names(devices, 3)
        for devices in expected
        if device_names(devices, 3) != expected[devices]
    }
    assert wrong == {}
