from __future__ import annotations

import pytest

from inspector.target.evidence import Evidence, Node, System, TorchDevice
from tests.sweep import table
from tests.unit.diagnose.machines import diagnoses, driver, linux, machine, torch

ROCM = torch("2.3.1+rocm6.0", None, hip="6.0")
XPU = torch("2.8.0+xpu", None, xpu="2025")
CPU = torch("2.5.1", None)
OPEN, CLOSED = (Node(path="/dev/x", usable=True),), (Node(path="/dev/x", usable=False),)


@table(
    ("found", "id_"),
    [
        (machine(torch=ROCM, cards=("amd",)), "rocm-no-device"),
        (machine(torch=ROCM), "rocm-no-device"),
        (machine(torch=ROCM, cards=("amd",), kfd=OPEN, dri=OPEN), "rocm-no-gpu"),
        (machine(torch=ROCM, cards=("amd",), kfd=CLOSED, dri=OPEN), "rocm-no-permission"),
        (machine(torch=ROCM, cards=("amd",), kfd=OPEN, dri=CLOSED), "rocm-no-permission"),
        (machine(torch=ROCM, nvidia=driver()), "rocm-on-nvidia"),
        (machine(torch=ROCM, cards=("nvidia",)), "rocm-on-nvidia"),
        (machine(torch=ROCM, cards=("amd", "nvidia")), "rocm-no-device"),
    ],
)
def test_a_torch_for_amd_that_finds_no_gpu(found: Evidence, id_: str) -> None:
    rows = diagnoses(found)
    assert list(rows) == [id_]
    assert rows[id_].steps


def test_in_a_container_the_command_is_another_one() -> None:
    inside = linux(container="docker")
    row = diagnoses(machine(torch=ROCM, system=inside))["rocm-no-device"]
    assert row.steps[0].startswith("docker run --device=/dev/kfd")
    row = diagnoses(machine(torch=ROCM, system=inside, kfd=OPEN))["rocm-no-gpu"]
    assert row.steps[0].startswith("rocminfo")  # it was given the device file
    row = diagnoses(machine(torch=ROCM, system=inside, kfd=CLOSED))["rocm-no-permission"]
    assert "docker run --group-add" in row.steps[1]


@table(
    ("system", "dxg", "certainty"),
    [
        (System(os="Windows"), False, "likely"),
        (linux(wsl=True), True, "likely"),
        (linux(wsl=True), False, "certain"),
    ],
)
def test_windows_has_no_device_file_for_amd(system: System, dxg: bool, certainty: str) -> None:
    (row,) = diagnoses(machine(torch=ROCM, system=system, dxg=dxg, cards=("amd",))).values()
    assert (row.id, row.certainty) == ("rocm-windows", certainty)
    assert "kfd" not in row.explanation
    assert "modprobe" not in " ".join(row.steps)


@table(
    ("chips", "told"),
    [
        (("gfx1032",), "10.3.0"),
        (("gfx1036", "gfx803"), "10.3.0"),
        (("gfx1102",), "11.0.0"),
        (("gfx803",), None),
        (("gfx906",), None),
        (("gfx1010",), None),
    ],
)
def test_rocm_is_told_of_a_relative_only_where_there_is_one(chips: tuple[str, ...], told: str | None) -> None:
    devices = tuple(TorchDevice(architecture=chip) for chip in chips)
    found = torch("2", None, hip="6", cuda_available=True, cuda_devices=devices, arch_list=("gfx90a",))
    row = diagnoses(machine(torch=found))["rocm-gpu-unsupported"]
    said = [step for step in row.steps if "HSA_OVERRIDE" in step]
    assert [told in step for step in said if told] == ([True] if told else [])
    assert bool(said) is ("closely related" in row.explanation) is (told is not None)


@table(
    ("architecture", "known", "is_met"),
    [
        ("gfx1032", ("gfx1030",), True),
        ("gfx90a:sramecc+:xnack-", ("gfx90a",), False),
        ("gfx1030", ("gfx1030:xnack-",), False),
        ("gfx1030", (), False),
        (None, ("gfx1030",), False),
    ],
)
def test_amd_gpus_that_torch_has_no_code_for(
    architecture: str | None, known: tuple[str, ...], is_met: bool
) -> None:
    devices = (TorchDevice(name="X", architecture=architecture),)
    found = torch(
        "2", None, hip="6.0", cuda_available=True, cuda_count=1, cuda_devices=devices, arch_list=known
    )
    assert ("rocm-gpu-unsupported" in diagnoses(machine(torch=found))) is is_met


def test_architectures_of_a_cuda_build_are_none_of_amd() -> None:
    found = torch(
        cuda_available=True,
        cuda_count=1,
        cuda_devices=(TorchDevice(architecture="gfx1"),),
        arch_list=("sm_80",),
    )
    assert "rocm-gpu-unsupported" not in diagnoses(machine(torch=found))


@table(
    ("found", "is_met"),
    [
        (machine(torch=CPU, cards=("amd",), kfd=OPEN), True),
        (machine(torch=CPU, cards=("amd",)), False),
        (machine(torch=CPU, cards=("intel",), kfd=OPEN), False),
        (machine(torch=CPU, cards=("amd", "nvidia"), kfd=OPEN), False),
        (machine(torch=CPU, cards=("amd",), kfd=OPEN, nvidia=driver()), False),
        (machine(torch=ROCM, cards=("amd",), kfd=OPEN), False),
        (machine(torch=torch(cuda_available=True, cuda_count=1), cards=("amd",), kfd=OPEN), False),
    ],
)
def test_an_amd_gpu_without_rocm(found: Evidence, is_met: bool) -> None:
    row = diagnoses(found).get("amd-without-rocm")
    assert (row is not None) is is_met
    if row is not None:
        assert (row.severity, row.certainty) == ("warning", "possible")


@table(
    ("found", "id_", "step"),
    [
        (machine(torch=XPU), "xpu-driver-missing", "sudo apt install libze"),
        (machine(torch=XPU, dri=OPEN), "xpu-driver-missing", "sudo apt install libze"),
        (machine(torch=torch("2.8.0+xpu", None), dri=OPEN), "xpu-driver-missing", "sudo apt install libze"),
        (machine(torch=XPU, dri=CLOSED), "xpu-no-permission", "sudo usermod"),
        (
            machine(torch=XPU, system=linux(container="docker")),
            "xpu-driver-missing",
            "docker run --device /dev/dri",
        ),
        (machine(torch=XPU, system=linux(container="docker"), dri=OPEN), "xpu-driver-missing", "sudo apt"),
        (machine(torch=XPU, system=System(os="Windows")), "xpu-driver-missing", "install Intel's driver"),
    ],
)
def test_a_torch_for_intel_that_finds_no_gpu(found: Evidence, id_: str, step: str) -> None:
    rows = diagnoses(found)
    assert list(rows) == [id_]
    assert rows[id_].steps[0].startswith(step)


@table(
    ("cards", "id_", "step"),
    [
        (("nvidia",), "xpu-without-intel-gpu", "pip install --force-reinstall torch --index-url"),
        (("amd",), "xpu-without-intel-gpu", "https://pytorch.org/get-started/locally/"),
        (("intel", "nvidia"), "xpu-driver-missing", "sudo apt install libze"),
    ],
)
def test_a_torch_for_intel_beside_the_gpu_of_another_maker(
    cards: tuple[str, ...], id_: str, step: str
) -> None:
    row = diagnoses(machine(torch=XPU, cards=cards))[id_]
    assert row.steps[0].startswith(step)


@pytest.mark.parametrize("name", ["ZE_AFFINITY_MASK", "ONEAPI_DEVICE_SELECTOR"])
def test_a_variable_that_hides_intels_gpu(name: str) -> None:
    found = machine(torch=XPU, cards=("intel",), dri=OPEN, environment=((name, "x"),))
    row = diagnoses(found)["xpu-hidden"]
    assert row.steps[0].startswith(f"unset {name}")
    assert f"{name}=x" in row.evidence


def test_a_torch_for_intel_that_finds_one() -> None:
    found = torch("2.8.0+xpu", None, xpu="2025", xpu_available=True, xpu_devices=(TorchDevice(name="Arc"),))
    assert diagnoses(machine(torch=found))["gpu-works"].evidence[1] == "xpu:0: Arc"


@table(
    ("torch_", "system", "id_", "certainty"),
    [
        (CPU, {"machine": "x86_64", "rosetta": True, "macos": "10.16"}, "mps-rosetta", "certain"),
        (CPU, {"machine": "x86_64", "rosetta": False, "macos": "14.1"}, "mps-intel-mac", "certain"),
        (torch("1.12.0", None, mps_built=True), {"macos": "12.2.1"}, "mps-macos-too-old", "certain"),
        (torch("1.12.0", None, mps_built=True), {"macos": "12.3"}, "mps-no-metal", "possible"),
        (torch("2.4.1", None, mps_built=True), {"macos": "12.7.6"}, "mps-no-metal", "possible"),
        (torch("2.5.1", None, mps_built=True), {"macos": "12.7.6"}, "mps-macos-too-old", "certain"),
        (torch("2.8.0", None, mps_built=True), {"macos": "13.0"}, "mps-no-metal", "possible"),
        (torch("2.9.0", None, mps_built=True), {"macos": "13.7.4"}, "mps-macos-too-old", "certain"),
        (torch("2.10.0", None, mps_built=True), {"macos": "26.3.1"}, "mps-no-metal", "possible"),
        (torch("2.10.0", None, mps_built=True), {"macos": None}, "mps-no-metal", "possible"),
        (torch("2.5.1", None, mps_built=False), {"macos": "15.1"}, "mps-not-built", "certain"),
        (torch("1.11.0", None), {"macos": "15.1"}, "mps-not-built", "possible"),
    ],
)
def test_macs(torch_: object, system: dict[str, object], id_: str, certainty: str) -> None:
    mac = System(**{"os": "Darwin", "machine": "arm64", **system})
    row = diagnoses(machine(torch=torch_, system=mac))[id_]
    assert row.certainty == certainty


def test_an_intel_mac_is_a_machine_without_a_gpu_and_no_fault() -> None:
    mac = System(os="Darwin", machine="x86_64", rosetta=False)
    assert list(diagnoses(machine(torch=CPU, system=mac))) == ["no-gpu", "mps-intel-mac"]


def test_a_torch_without_a_version_is_no_harm() -> None:
    mac = System(os="Darwin", machine="arm64", macos="15.0")
    assert "mps-not-built" in diagnoses(machine(torch=torch(None, None), system=mac))
