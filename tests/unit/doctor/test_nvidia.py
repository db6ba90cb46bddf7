from __future__ import annotations

import pytest

from inspector.target.evidence import Evidence, Libcuda, Nvidia, Smi, SmiGpu, System
from tests.sweep import table
from tests.unit.diagnose.machines import diagnoses, driver, linux, machine, torch

CPU = torch("2.5.1+cpu", None)
WINDOWS = System(os="Windows", machine="AMD64")
NO_DRIVER = "Found no NVIDIA driver on your system."


@table(
    ("found", "certainty"),
    [
        (machine(torch=CPU, nvidia=driver()), "certain"),
        (machine(torch=CPU, cards=("nvidia",)), "likely"),
        (machine(torch=CPU, nvidia=Nvidia(libcuda=Libcuda(found=True))), "possible"),
        (machine(torch=CPU, nvidia=Nvidia(libcuda=Libcuda(found=True)), cards=("nvidia",)), "certain"),
        (machine(torch=CPU, nvidia=Nvidia(libcuda=Libcuda(found=True)), system=linux(wsl=True)), "certain"),
        (machine(torch=CPU), None),
        (machine(torch=CPU, system=System(os="Darwin"), cards=("nvidia",)), None),
        (machine(torch=torch("2.8.0+xpu", None, xpu="2025"), nvidia=driver()), None),
        (machine(torch=torch("2.8.0", None, xpu_available=True), nvidia=driver()), None),
        (machine(nvidia=driver()), None),
    ],
)
def test_a_build_without_cuda(found: Evidence, certainty: str | None) -> None:
    row = diagnoses(found).get("cpu-only-torch")
    assert (row and row.certainty) == certainty
    if row is not None:
        needs_driver = any("www.nvidia.com" in step for step in row.steps)
        assert needs_driver == (certainty == "likely")
        assert row.steps[-1].startswith("pip install --force-reinstall torch --index-url")


def test_a_driver_without_a_card_is_no_fault() -> None:
    """Images of machines, and laptops that lost their card, have its libraries all the same."""
    nvidia = Nvidia(libcuda=Libcuda(found=True))
    cpu_only = diagnoses(machine(torch=CPU, nvidia=nvidia))
    assert list(cpu_only) == ["cpu-only-torch", "no-gpu"]
    assert cpu_only["cpu-only-torch"].severity == "warning"
    assert cpu_only["cpu-only-torch"].explanation.startswith("An NVIDIA driver is installed, but")
    assert list(diagnoses(machine(nvidia=nvidia))) == ["no-gpu"]
    assert list(diagnoses(machine(nvidia=nvidia, cards=("nvidia",)))) == ["driver-not-running"]


def test_a_build_without_cuda_names_what_conda_took() -> None:
    found = machine(
        torch=CPU, nvidia=driver(), packages=(("conda:pytorch-mutex", ("1.0 cpu",)), ("torch", ("1",)))
    )
    assert "conda installed pytorch-mutex 1.0 cpu" in diagnoses(found)["cpu-only-torch"].evidence


@table(
    ("found", "certainty"),
    [
        (machine(cards=("nvidia",)), "certain"),
        (machine(system=WINDOWS), "possible"),
        (machine(system=WINDOWS, cards=("intel",)), None),
        (machine(), None),
        (machine(cards=("nvidia",), system=linux(container="docker")), None),
        (machine(cards=("nvidia",), system=linux(wsl=True)), None),
        (machine(cards=("nvidia",), nvidia=driver()), None),
        (machine(cards=("nvidia",), torch=torch(cuda_available=True)), None),
    ],
)
def test_a_card_without_a_driver(found: Evidence, certainty: str | None) -> None:
    row = diagnoses(found).get("no-driver")
    assert (row and row.certainty) == certainty
    if row is not None:
        assert (len(row.steps) == 2) == (found.system.os == "Linux")


@table(
    ("nvidia", "system", "certainty"),
    [
        (Nvidia(libcuda=Libcuda(found=True)), linux(), "certain"),
        (
            Nvidia(
                smi=Smi(
                    state="failed",
                    error="NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.",
                )
            ),
            WINDOWS,
            "likely",
        ),
        (Nvidia(libcuda=Libcuda(found=True)), linux(container="docker"), None),
        (Nvidia(libcuda=Libcuda(found=True)), linux(wsl=True), None),
        (Nvidia(libcuda=Libcuda(found=True), kernel_module="550.1"), linux(), None),
    ],
)
def test_a_driver_that_is_not_running(nvidia: Nvidia, system: System, certainty: str | None) -> None:
    row = diagnoses(machine(nvidia=nvidia, system=system, cards=("nvidia",))).get("driver-not-running")
    assert (row and row.certainty) == certainty


@table(
    ("cuda", "nvidia", "system", "oldest"),
    [
        ("12.4", driver("525.60.12", "12.0"), linux(), "525.60.13"),
        ("12.4", driver("525.60.13", "12.0"), linux(), None),
        ("12.4", driver("528.24", "12.0"), WINDOWS, "528.33"),
        ("12.4", driver("528.24", "12.0"), linux(wsl=True), "528.33"),
        ("11.8", driver("450.80.01", "11.0"), linux(), "450.80.02"),
        ("10.2", driver("440.30", "10.2"), linux(), "440.33"),
        ("13.0", driver("575.1", "12.9"), linux(), "580"),
        ("99.0", driver("100.1", "10.0"), linux(), None),
        ("nonsense", driver("100.1", "10.0"), linux(), None),
    ],
)
def test_a_driver_that_is_too_old(cuda: str, nvidia: Nvidia, system: System, oldest: str | None) -> None:
    row = diagnoses(machine(torch=torch(cuda=cuda), nvidia=nvidia, system=system)).get("driver-too-old")
    if oldest is None:
        assert row is None
    else:
        assert row is not None
        assert row.certainty == "likely"
        where = " in Windows" if system.wsl else ""
        assert row.steps[0].startswith(f"update the NVIDIA driver{where} to {oldest} or newer")


def test_torch_itself_says_that_the_driver_is_too_old() -> None:
    said = "The NVIDIA driver on your system is too old (found version 20000). Please"
    row = diagnoses(machine(torch=torch(cuda="99.0", cuda_messages=(said,))))["driver-too-old"]
    assert row.certainty == "certain"
    assert row.steps[0].startswith("update the NVIDIA driver: ")
    said = "The NVIDIA driver on your system is too old"
    row = diagnoses(machine(torch=torch(cuda_messages=(said,))))["driver-too-old"]
    assert row.steps[1:] == ()
    said = "The NVIDIA driver on your system is too old (found version 10020). Please"
    row = diagnoses(machine(torch=torch(cuda_messages=(said,))))["driver-too-old"]
    assert row.steps[1].endswith("   # a release built for CUDA 10.2 or older")


@table(
    ("cuda", "capability", "system", "step"),
    [
        ("12.4", (3, 7), linux(), "a newer driver does not help: 470 is the last branch for this GPU"),
        ("11.8", (2, 1), linux(), "a newer driver does not help: 390 is the last branch for this GPU"),
        ("13.0", (7, 0), linux(), "update the NVIDIA driver to 580 or newer: "),
        ("12.4", (8, 6), linux(), "update the NVIDIA driver to 525.60.13 or newer: "),
        ("12.4", (8, 6), linux(wsl=True), "update the NVIDIA driver in Windows to 528.33 or newer: "),
        ("12.4", (8, 6), linux(container="docker"), "update the NVIDIA driver of the host to 525.60.13 or"),
    ],
)
def test_where_the_driver_is_updated(
    cuda: str, capability: tuple[int, int], system: System, step: str
) -> None:
    nvidia = driver("390.1", "9.1", SmiGpu(capability=capability))
    found = machine(torch=torch(cuda=cuda), nvidia=nvidia, system=system, dxg=True)
    assert diagnoses(found)["driver-too-old"].steps[0].startswith(step)


def test_drivers_are_mixed() -> None:
    said = "Failed to initialize NVML: Driver/library version mismatch"
    nvidia = Nvidia(smi=Smi(state="failed", exit_code=18, error=said))
    row = diagnoses(machine(nvidia=nvidia))["driver-mismatch"]
    assert row.evidence[1:] == ("the kernel's version is not known", f"it said: {said}")
    assert len(row.steps) == 1
    assert "driver-mismatch" not in diagnoses(
        machine(nvidia=nvidia, torch=torch(cuda_available=True, cuda_count=1))
    )
    inside = diagnoses(machine(nvidia=nvidia, system=linux(container="docker")))["driver-mismatch"]
    assert inside.steps[0].startswith("restart the container")


@pytest.mark.parametrize(
    ("version", "is_said"), [("2.5.1+cu124", True), ("2.6.0a0+ecf3bae40a.nv25.01", False)]
)
def test_the_toolkit_is_ruled_out_only_where_torch_does_not_use_it(version: str, is_said: bool) -> None:
    found = machine(torch=torch(version), nvidia=driver("470.1", "11.4"))
    assert ("toolkit" in diagnoses(found)["driver-too-old"].explanation) is is_said
