"""The device that code computes on."""

from __future__ import annotations

import pytest

from inspector.snippet.device import choose_device, fixed_device
from inspector.target.machine.profile import CPU_ONLY, Profile, parse_target
from tests.unit.snippet.rows import THIS


@pytest.mark.parametrize(
    ("target", "fits_mps", "code"),
    [
        (CPU_ONLY, True, '"cpu"'),
        (parse_target("cuda:2"), True, '"cuda:0"'),
        (parse_target("xpu"), True, '"xpu:0"'),
        (parse_target("mps"), True, '"mps"'),
        (parse_target("mps"), False, '"cpu"'),
    ],
)
def test_known_machine(target: Profile, fits_mps: bool, code: str) -> None:
    device = choose_device(target, fits_mps=fits_mps)
    assert (device.code, device.choice) == (code, ())
    assert device.is_cpu == (code == '"cpu"')


@pytest.mark.parametrize("fits_mps", [True, False])
def test_machine_where_the_code_runs(fits_mps: bool) -> None:
    device = choose_device(THIS, fits_mps=fits_mps)
    assert device.code == "device"
    assert not device.is_cpu
    assert ("mps" in "\n".join(device.choice)) == fits_mps
    compile("\n".join(device.choice), "choice", "exec")


def test_move() -> None:
    assert fixed_device("cuda:1").move("model") == ('model.to("cuda:1")',)
    assert fixed_device("cpu").move("model") == ()
    assert fixed_device('"); evil("').code == "'\"); evil(\"'"
