"""Rules of the GPU doctor about torch's build and NVIDIA's driver."""

from __future__ import annotations

from inspector.doctor.builds import install_steps
from inspector.doctor.diagnosis import Diagnosis, MachineRule
from inspector.doctor.drivers import cuda_version, driver_suffices, oldest_driver, parse_version
from inspector.doctor.symptoms import (
    brings_libraries,
    capabilities,
    driver_cuda,
    driver_line,
    driver_version,
    gpus_line,
    has_driver,
    is_jetson,
    is_native_linux,
    is_windows,
    may_have_card,
    quoted,
    said,
    torch_line,
    wants_cuda,
)
from inspector.target.evidence import Evidence

_UBUNTU = ("sudo ubuntu-drivers install   # on Ubuntu",)
_PAGE = "https://www.nvidia.com/Download/index.aspx"
_DOWNLOAD = f"install the newest driver for your GPU from {_PAGE}"
# GPUs older than a capability, and the last branch of drivers for them:
# https://docs.nvidia.com/datacenter/tesla/drivers/ and https://nvidia.custhelp.com/app/answers/detail/a_id/3142
_LAST_DRIVERS = (((3, 0), 390), ((5, 0), 470), ((7, 5), 580))


def _not_the_file(found: Evidence) -> str:
    """Return what people suspect instead, and wrongly so."""
    said = " A checkpoint can neither cause nor fix this: a state dict contains no CUDA version."
    if not brings_libraries(found):
        return said
    return (
        f"{said} The CUDA toolkit (nvcc --version) plays no part either, because torch ships the CUDA "
        "libraries it was built for."
    )


def cpu_only_build(found: Evidence) -> Diagnosis | None:
    """A torch without CUDA beside NVIDIA's GPU: pip's choice on Windows, conda's where it saw no driver."""
    torch = found.torch
    if torch.state != "imported" or torch.cuda or torch.hip or torch.xpu or torch.xpu_available:
        return None
    if not (has_driver(found) or "nvidia" in found.cards) or found.system.os == "Darwin" or is_jetson(found):
        return None
    conda = [
        f"conda installed {name[6:]} {', '.join(versions)}"
        for name, versions in found.packages
        if name[:6] == "conda:"
    ]
    driver = () if has_driver(found) else (_DOWNLOAD,)
    is_seen = may_have_card(found)
    return Diagnosis(
        id="cpu-only-torch",
        severity="error" if is_seen else "warning",
        title="This torch was built without CUDA",
        explanation=("There is an NVIDIA GPU" if is_seen else "An NVIDIA driver is installed")
        + ", but the installed torch has no GPU code at all, so torch.cuda.is_available() is False whatever "
        "the driver. Install a CUDA build instead." + _not_the_file(found),
        evidence=(torch_line(found), driver_line(found), gpus_line(found), *conda),
        steps=(*driver, *install_steps(found)),
        certainty="likely" if not has_driver(found) else "certain" if is_seen else "possible",
    )


def no_driver(found: Evidence) -> Diagnosis | None:
    """A card without a driver."""
    inside = found.system.container or found.system.wsl or is_jetson(found)  # others know more of these
    if not wants_cuda(found) or has_driver(found) or inside:
        return None
    is_seen = "nvidia" in found.cards
    if not is_seen and (found.system.os == "Linux" or found.cards):
        return None  # the bus was read: there is no such card
    return Diagnosis(
        id="no-driver",
        severity="error",
        title="The NVIDIA driver is not installed",
        explanation="torch is built for CUDA, but it talks to the GPU through NVIDIA's driver, which is "
        "missing here." + _not_the_file(found),
        evidence=(
            torch_line(found),
            "an NVIDIA card is in this machine" if is_seen else "no card is listed",
            "neither nvidia-smi nor the driver's library was found",
            *quoted(said(found, "NVIDIA driver")),
        ),
        steps=(*_UBUNTU, _DOWNLOAD) if found.system.os == "Linux" else (_DOWNLOAD,),
        certainty="certain" if is_seen else "possible",
    )


def driver_not_running(found: Evidence) -> Diagnosis | None:
    """A driver whose kernel module is not loaded: after a new kernel, with Secure Boot, beside nouveau."""
    if not wants_cuda(found) or is_jetson(found):
        return None
    complaint = said(found, "couldn't communicate with the NVIDIA driver")
    is_unloaded = is_native_linux(found) and found.nvidia.libcuda.found and not found.nvidia.kernel_module
    is_unloaded = is_unloaded and may_have_card(found)
    if complaint is None and not is_unloaded:
        return None
    return Diagnosis(
        id="driver-not-running",
        severity="error",
        title="The NVIDIA driver is installed, but not running",
        explanation="The driver's programs are here, but its kernel module is not loaded. That happens "
        "after a kernel update, when Secure Boot rejects the module, or when the open-source driver "
        "nouveau has claimed the card." + _not_the_file(found),
        evidence=(torch_line(found), "the kernel has no NVIDIA module loaded", *quoted(complaint)),
        steps=(
            "sudo modprobe nvidia",
            "reboot; if that does not help, reinstall the driver",
            "mokutil --sb-state   # with Secure Boot on, the module must be signed",
        ),
        certainty="certain" if is_unloaded else "likely",
    )


def driver_too_old(found: Evidence) -> Diagnosis | None:
    """A driver older than the CUDA that torch was built for."""
    cuda = cuda_version(found.torch.cuda)
    if not wants_cuda(found) or cuda is None or is_jetson(found):
        return None
    complaint = said(found, "driver on your system is too old")
    driver, windows = driver_version(found), is_windows(found)
    if complaint is None and (driver is None or driver_suffices(driver, cuda, windows=windows) is not False):
        return None
    install = [f"or: {step}" for step in install_steps(found)] if driver_cuda(found) is not None else []
    return Diagnosis(
        id="driver-too-old",
        severity="error",
        title="The NVIDIA driver is too old for this torch",
        explanation=f"torch was built for CUDA {found.torch.cuda}, which this driver does not support yet. "
        "Either update the driver, or install a torch built for an older CUDA." + _not_the_file(found),
        evidence=(torch_line(found), driver_line(found), *quoted(complaint)),
        steps=(_update(found, oldest_driver(cuda, windows=windows)), *install),
        certainty="certain" if complaint else "likely",
    )


def _update(found: Evidence, oldest: str | None) -> str:
    """Return how the driver is updated, or that there is no newer one for the GPU."""
    weakest = min(capabilities(found), default=None)
    last = next((branch for before, branch in _LAST_DRIVERS if weakest and weakest < before), None)
    if last is not None and parse_version(oldest)[:1] > (last,):
        return f"a newer driver does not help: {last} is the last branch for this GPU"
    where = " in Windows" if found.system.wsl else " of the host" if found.system.container else ""
    update = f"update the NVIDIA driver{where}"
    return f"{update} to {oldest} or newer: {_PAGE}" if oldest else f"{update}: {_PAGE}"


def driver_mismatch(found: Evidence) -> Diagnosis | None:
    """A driver that was updated while its old part was running."""
    complaint = said(found, r"Driver/library version mismatch|Error 803|unsupported display driver")
    module = found.nvidia.kernel_module
    if complaint is None or found.torch.cuda_available:
        return None
    where = ("restart the container: the host's driver was updated",) if found.system.container else ()
    return Diagnosis(
        id="driver-mismatch",
        severity="error",
        title="Two versions of the NVIDIA driver are mixed",
        explanation="The driver's library has another version than the loaded kernel module. Most often "
        "the system updated the driver in the background; a restart loads the new one."
        + _not_the_file(found),
        evidence=(
            driver_line(found),
            f"the kernel runs version {module}" if module else "the kernel's version is not known",
            *quoted(complaint),
        ),
        steps=(*where, "sudo reboot"),
    )


NVIDIA_RULES: tuple[MachineRule, ...] = (
    cpu_only_build,
    driver_mismatch,
    driver_not_running,
    driver_too_old,
    no_driver,
)
