"""NVIDIA's Jetson boards, which look like machines without a GPU or without a driver to everything else."""

from __future__ import annotations

from inspector.target.evidence import Evidence, Libcuda, Node, Nvidia, Smi, TorchDevice
from tests.sweep import table
from tests.unit.diagnose.machines import diagnoses, linux, machine, torch

MISSING = Smi(state="missing")
CLOSED = (Node(path="/dev/nvmap"),)


def orin(release: str = "5.15.148-tegra", cuda: str | None = "12.6", **parts: object) -> Evidence:
    """An Orin as it is: no card on the bus, no nvidia-smi, no kernel module that reports a version."""
    found = {"nvidia": Nvidia(smi=MISSING, libcuda=Libcuda(found=cuda is not None, cuda=cuda)), **parts}
    return machine(**{"system": linux(machine="aarch64", release=release), **found})


@table(
    ("found", "id_", "certainty", "step"),
    [
        (orin(torch=torch("2.6.0+cpu", None)), "jetson-cpu-torch", "certain", "jp6/cu126"),
        (orin("5.10.120-tegra", "11.4"), "jetson-jetpack-too-old", "certain", "docs.nvidia.com"),
        (orin(), "jetson-no-gpu", "likely", "jp6/cu126"),
        (orin(cuda=None), "jetson-no-gpu", "likely", "jp6/cu126"),
        (
            orin(system=linux(machine="aarch64", release="5.15.148-tegra", container="docker")),
            "jetson-no-gpu",
            "likely",
            "docker run --runtime nvidia",
        ),
        (
            orin(nvidia=Nvidia(smi=MISSING, libcuda=Libcuda(found=True, cuda="12.6"), nodes=CLOSED)),
            "jetson-no-permission",
            "certain",
            "usermod -aG video,render",
        ),
        (
            orin(environment=(("CUDA_VISIBLE_DEVICES", ""),)),
            "devices-hidden",
            "certain",
            "unset CUDA_VISIBLE_DEVICES",
        ),
    ],
)
def test_a_jetson_without_its_gpu(found: Evidence, id_: str, certainty: str, step: str) -> None:
    rows = diagnoses(found)
    assert next(iter(rows)) == id_
    assert {
        "no-driver",
        "driver-not-running",
        "driver-too-old",
        "cpu-only-torch",
        "no-device-nodes",
    }.isdisjoint(rows)
    assert rows[id_].certainty == certainty
    assert step in rows[id_].steps[0]


def test_a_build_for_servers_has_no_code_for_an_orin() -> None:
    device = TorchDevice(name="Orin", capability=(8, 7))
    found = torch(cuda_available=True, cuda_count=1, cuda_devices=(device,), arch_list=("sm_80", "sm_90"))
    row = diagnoses(orin(torch=found))["gpu-too-new"]
    assert row.title == "This torch has no code for the GPU (sm_87)"
    assert "jp6/cu126" in row.steps[0]
    assert "build for CUDA" not in row.explanation


def test_a_jetson_that_works() -> None:
    device = TorchDevice(name="Orin", capability=(8, 7))
    found = torch(
        "2.5.0a0", "12.6", cuda_available=True, cuda_count=1, cuda_devices=(device,), arch_list=("sm_87",)
    )
    assert list(diagnoses(orin(torch=found))) == ["gpu-works"]


def test_another_arm_server_is_no_jetson() -> None:
    server = machine(torch=torch("2.6.0+cpu", None), system=linux(machine="aarch64"), cards=("nvidia",))
    row = diagnoses(server)["cpu-only-torch"]
    assert row.steps[-1].endswith("/whl/cu130")
