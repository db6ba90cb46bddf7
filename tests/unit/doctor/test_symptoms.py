from __future__ import annotations

from inspector.doctor.symptoms import (
    brings_libraries,
    capabilities,
    driver_cuda,
    driver_line,
    driver_version,
    gpus_line,
    torch_line,
    variable,
)
from inspector.target.evidence import Evidence, Libcuda, Nvidia, Smi, SmiGpu, TorchDevice, TorchFound
from tests.sweep import table
from tests.unit.diagnose.machines import driver, machine, torch


@table(
    ("found", "line"),
    [
        (TorchFound(), "torch could not be asked"),
        (torch(), "torch 2.5.1+cu124, built for CUDA 12.4"),
        (torch("2.3.1", None, hip="6.0"), "torch 2.3.1, built for ROCm 6.0"),
        (torch("2.8.0", None, xpu="2025"), "torch 2.8.0, built for XPU 2025"),
        (torch("2.8.0", None, mps_built=True), "torch 2.8.0, built for Apple's GPU"),
        (torch("2.8.0", None), "torch 2.8.0, built without GPU support"),
    ],
)
def test_which_torch_it_is(found: TorchFound, line: str) -> None:
    assert torch_line(machine(torch=found)) == line


@table(
    ("nvidia", "version", "cuda", "line"),
    [
        (Nvidia(), None, None, "no NVIDIA driver"),
        (driver(), "550.120", (12, 4), "NVIDIA driver 550.120, which supports CUDA up to 12.4"),
        (Nvidia(kernel_module="unknown"), None, None, "NVIDIA driver of an unknown version"),
        (
            Nvidia(kernel_module="470.5", libcuda=Libcuda(found=True, cuda="11.4")),
            "470.5",
            (11, 4),
            "NVIDIA driver 470.5, which supports CUDA up to 11.4",
        ),
        (
            Nvidia(kernel_module="535.1"),
            "535.1",
            (12, 2),
            "NVIDIA driver 535.1, which supports CUDA up to 12.2",
        ),
        (
            Nvidia(kernel_module="610.1"),
            "610.1",
            (13, 1),
            "NVIDIA driver 610.1, which supports CUDA 13.1 or newer",
        ),
        (Nvidia(kernel_module="100.1"), "100.1", None, "NVIDIA driver 100.1"),
        (Nvidia(smi=Smi(state="ok", cuda="none")), None, None, "NVIDIA driver of an unknown version"),
    ],
)
def test_which_driver_it_is(nvidia: Nvidia, version: str | None, cuda: object, line: str) -> None:
    found = machine(nvidia=nvidia)
    assert (driver_version(found), driver_cuda(found), driver_line(found)) == (version, cuda, line)


def test_torch_knows_the_drivers_cuda_where_nobody_else_does() -> None:
    found = machine(torch=torch(cuda_messages=("is too old (found version 11040). Please",)))
    assert driver_cuda(found) == (11, 4)


def test_capabilities_by_torch_or_else_by_nvidia_smi() -> None:
    gpus = (SmiGpu(name="a", capability=(6, 1)), SmiGpu(name="b"))
    assert capabilities(machine(nvidia=driver("1", "2", *gpus))) == ((6, 1),)
    devices = (TorchDevice(capability=(8, 6)),)
    assert capabilities(machine(torch=torch(cuda_devices=devices), nvidia=driver("1", "2", *gpus))) == (
        (8, 6),
    )


def test_names_of_gpus() -> None:
    assert gpus_line(machine()) == "nvidia-smi lists no GPU"
    found = machine(nvidia=driver("1", "2", SmiGpu(name="L4"), SmiGpu()))
    assert gpus_line(found) == "nvidia-smi lists L4, a GPU without a name"


def test_variables_that_are_not_set_differ_from_empty_ones() -> None:
    found = Evidence(environment=(("A", ""),))
    assert (variable(found, "A"), variable(found, "B")) == ("", None)


@table(
    ("version", "packages", "brings"),
    [
        ("2.5.1+cu124", (), True),
        ("2.6.0+cpu", (), True),
        ("2.5.1", (("conda:pytorch", ("2.5.1",)),), True),
        ("2.6.0a0+ecf3bae40a.nv25.01", (), False),
        ("2.5.1", (), False),
        (None, (), False),
    ],
)
def test_which_builds_bring_cuda_along(
    version: str | None, packages: tuple[tuple[str, tuple[str, ...]], ...], brings: bool
) -> None:
    assert brings_libraries(machine(torch=torch(version), packages=packages)) is brings
