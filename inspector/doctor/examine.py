"""The GPU doctor: why torch can or cannot use a GPU on a machine, with the evidence and the remedy.

Each cause is a rule over what the probe found; a new one goes into the table of its kind. A machine that is
well gets a statement that says so, because "nothing to say" would leave the asker in doubt.
"""

from __future__ import annotations

import re

from inspector.doctor.builds import INDEX, install_steps, jetpack_of
from inspector.doctor.devices import DEVICE_RULES
from inspector.doctor.diagnosis import CERTAINTIES, Diagnosis, MachineRule, cause, causes
from inspector.doctor.drivers import cuda_version, driver_suffices, oldest_driver, parse_version
from inspector.doctor.other_makers import OTHER_RULES
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
from inspector.model.findings import SEVERITIES
from inspector.pythons import OPTION
from inspector.target.evidence import Evidence
from inspector.target.profile import Profile
from inspector.units import format_nbytes

# Rules of the GPU doctor about torch's build and NVIDIA's driver.

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
    return cause(
        "cpu-only-torch",
        severity="error" if is_seen else "warning",
        evidence=(torch_line(found), driver_line(found), gpus_line(found), *conda),
        certainty="likely" if not has_driver(found) else "certain" if is_seen else "possible",
        seen="There is an NVIDIA GPU" if is_seen else "An NVIDIA driver is installed",
        not_the_file=_not_the_file(found),
        driver=driver,
        install=install_steps(found),
    )


def no_driver(found: Evidence) -> Diagnosis | None:
    """A card without a driver."""
    inside = found.system.container or found.system.wsl or is_jetson(found)  # others know more of these
    if not wants_cuda(found) or has_driver(found) or inside:
        return None
    is_seen = "nvidia" in found.cards
    if not is_seen and (found.system.os == "Linux" or found.cards):
        return None  # the bus was read: there is no such card
    return cause(
        "no-driver",
        evidence=(
            torch_line(found),
            "an NVIDIA card is in this machine" if is_seen else "no card is listed",
            "neither nvidia-smi nor the driver's library was found",
            *quoted(said(found, "NVIDIA driver")),
        ),
        steps=(*_UBUNTU, _DOWNLOAD) if found.system.os == "Linux" else (_DOWNLOAD,),
        certainty="certain" if is_seen else "possible",
        not_the_file=_not_the_file(found),
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
    return cause(
        "driver-not-running",
        evidence=(torch_line(found), "the kernel has no NVIDIA module loaded", *quoted(complaint)),
        certainty="certain" if is_unloaded else "likely",
        not_the_file=_not_the_file(found),
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
    return cause(
        "driver-too-old",
        evidence=(torch_line(found), driver_line(found), *quoted(complaint)),
        certainty="certain" if complaint else "likely",
        cuda=found.torch.cuda,
        not_the_file=_not_the_file(found),
        update=_update(found, oldest_driver(cuda, windows=windows)),
        install=tuple(install),
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
    return cause(
        "driver-mismatch",
        evidence=(
            driver_line(found),
            f"the kernel runs version {module}" if module else "the kernel's version is not known",
            *quoted(complaint),
        ),
        not_the_file=_not_the_file(found),
        container=where,
    )


NVIDIA_RULES: tuple[MachineRule, ...] = (
    cpu_only_build,
    driver_mismatch,
    driver_not_running,
    driver_too_old,
    no_driver,
)


def complained(found: Evidence) -> Diagnosis | None:
    """Explain the first known message."""
    if found.torch.cuda_available:
        return None
    for id_, row in causes().items():
        text = said(found, row["pattern"]) if "pattern" in row else None
        if text is not None:
            return cause(id_, (torch_line(found), driver_line(found), f"it said: {text}"))
    return None


def slices(found: Evidence) -> Diagnosis | None:
    """GPUs cut into slices (MIG), of which a program gets one."""
    cut = [gpu.name for gpu in found.nvidia.smi.gpus if gpu.mig == "Enabled"]
    if not cut or found.torch.cuda is None:
        return None
    is_stopped = wants_cuda(found)
    return cause(
        "mig-slices",
        severity="error" if is_stopped else "note",
        evidence=(gpus_line(found), f"MIG is on for {', '.join(cut[:8])}"),
        certainty="likely" if is_stopped else "certain",
    )


ERROR_RULES: tuple[MachineRule, ...] = (complained, slices)


# Rules of the GPU doctor about NVIDIA's Jetson boards.
#
# Their GPU is on no bus, their driver is part of the system, they often have neither nvidia-smi nor
# /dev/nvidia0, and torch needs a build for their chip: https://developer.nvidia.com/embedded/jetpack. The
# rules about other NVIDIA GPUs leave them alone.


def jetson_cpu_torch(found: Evidence) -> Diagnosis | None:
    """A torch without CUDA: pip's choice on Arm."""
    torch = found.torch
    if not is_jetson(found) or torch.state != "imported" or torch.cuda is not None:
        return None
    return cause(
        "jetson-cpu-torch", evidence=(torch_line(found), _board(found)), install=install_steps(found)
    )


def jetson_out_of_reach(found: Evidence) -> Diagnosis | None:
    """A torch with CUDA that finds no GPU on a Jetson."""
    if not is_jetson(found) or not wants_cuda(found):
        return None
    wanted, offered = cuda_version(found.torch.cuda), driver_cuda(found)
    if wanted is not None and offered is not None and offered[0] < wanted[0]:
        return _too_old(found, offered)
    closed = [node.path for node in found.nvidia.nodes if not node.usable]
    if closed:
        return cause(
            "jetson-no-permission",
            evidence=(torch_line(found), _board(found), f"not usable: {', '.join(closed[:8])}"),
        )
    container = ("docker run --runtime nvidia ...   # on a Jetson, --gpus all is not enough",)
    return cause(
        "jetson-no-gpu",
        evidence=(torch_line(found), _board(found), *quoted("; ".join(found.torch.cuda_messages))),
        container=container if found.system.container else (),
        install=install_steps(found),
    )


def _too_old(found: Evidence, offered: tuple[int, int]) -> Diagnosis:
    return cause(
        "jetson-jetpack-too-old",
        evidence=(torch_line(found), _board(found)),
        cuda=found.torch.cuda,
        major=offered[0],
        minor=offered[1],
        install=install_steps(found),
    )


def _board(found: Evidence) -> str:
    jetpack = jetpack_of(found)
    named = "" if jetpack is None else f", JetPack {jetpack}"
    return f"a Jetson: kernel {found.system.release}{named}"


JETSON_RULES: tuple[MachineRule, ...] = (jetson_cpu_torch, jetson_out_of_reach)


_NEWEST_PYTHON, _NEWEST_TEXT = (3, 14), "3.14"
_VERSION = re.compile(r"([0-9][0-9a-z.]{0,30})(?:\+((?:cu|rocm|xpu|cpu)[0-9.]{0,10}))?")


def examine(profile: Profile) -> tuple[Diagnosis, ...]:
    """Return all that is known of why a machine can or cannot use its GPUs, worst first, then surest first.

    A machine that was not probed (a preset) has nothing to be examined.
    """
    if profile.evidence is None:
        return ()
    found = profile.evidence
    diagnoses = [diagnosis for rule in RULES if (diagnosis := rule(found)) is not None]
    if not any(diagnosis.severity == "error" for diagnosis in diagnoses):
        diagnoses.insert(0, _summary(profile, found))
    return tuple(sorted(diagnoses, key=_rank))


def _rank(diagnosis: Diagnosis) -> tuple[int, int]:
    return SEVERITIES.index(diagnosis.severity), CERTAINTIES.index(diagnosis.certainty)


def _summary(profile: Profile, found: Evidence) -> Diagnosis:
    if profile.gpus or len(profile.devices) > 1 or found.torch.hpu:
        return _well(profile, found)
    if wants_cuda(found) and has_driver(found) and may_have_card(found):
        return _unexplained(found)
    return _no_gpu(found)


def _well(profile: Profile, found: Evidence) -> Diagnosis:
    named = [
        f"{gpu.device}: {gpu.name or 'no name'}"
        + ("" if gpu.memory_nbytes is None else f", {format_nbytes(gpu.memory_nbytes)}")
        for gpu in profile.gpus[:16]
    ]
    devices = ", ".join(device for device in profile.devices[:16] if device != "cpu")
    return cause(
        "gpu-works", evidence=(torch_line(found), *named), devices=devices or "a Gaudi accelerator (hpu)"
    )


def _unexplained(found: Evidence) -> Diagnosis:
    return cause(
        "cuda-unexplained",
        evidence=(
            torch_line(found),
            driver_line(found),
            gpus_line(found),
            *quoted("; ".join(found.torch.cuda_messages)),
            *quoted(found.nvidia.smi.error),
        ),
    )


def _no_gpu(found: Evidence) -> Diagnosis:
    inside = " A container sees its host's GPU only when it is started with it (docker run --gpus all)."
    return cause(
        "no-gpu",
        evidence=(torch_line(found),),
        certainty="likely" if found.system.container else "certain",
        inside=inside if found.system.container else "",
    )


def torch_missing(found: Evidence) -> Diagnosis | None:
    """No torch in this Python: often it is in another environment."""
    if found.torch.state != "missing":
        return None
    return cause(
        "torch-missing",
        evidence=(f"Python {found.python.version}", *quoted(found.torch.error)),
        no_wheel=_no_wheel(found),
        option=OPTION,
        install=_first_install(found),
    )


def _no_wheel(found: Evidence) -> str:
    """Return why pip finds no torch for this Python; empty where it does.

    https://github.com/pytorch/pytorch/blob/main/RELEASE.md#release-compatibility-matrix
    """
    python = found.python
    if python.bits == 32:
        return " There are no builds of torch for a Python of 32 bits."
    if python.implementation not in {"", "CPython"}:
        return f" There are no builds of torch for {python.implementation}."
    if parse_version(python.version)[:2] > _NEWEST_PYTHON:
        return f" This Python may be too new for pip to find a torch: 2.14 has builds up to {_NEWEST_TEXT}."
    return ""


def _first_install(found: Evidence) -> tuple[str, ...]:
    """Return what installs a torch: from PyPI, Windows and Arm can get one without GPU code."""
    is_nvidia = "nvidia" in found.cards or bool(found.nvidia.smi.gpus) or is_jetson(found)
    steps = install_steps(found) if is_nvidia else ("pip install torch",)
    return tuple(step.replace("--force-reinstall ", "") for step in steps)


def torch_broken(found: Evidence) -> Diagnosis | None:
    """A torch that cannot be imported."""
    how = {
        "failed": "import torch raises an error",
        "crashed": "import torch crashes Python",
        "timeout": "import torch does not finish",
    }.get(found.torch.state)
    if how is None:
        return None
    return cause(
        "torch-broken",
        evidence=(f"Python {found.python.version}", *quoted(found.torch.error)),
        how=how,
        reinstall=_reinstall(found),
        runtime=("https://aka.ms/vs/17/release/vc_redist.x64.exe",) if found.system.os == "Windows" else (),
    )


def _reinstall(found: Evidence) -> tuple[str, ...]:
    """Return what installs the same torch again: from PyPI, Windows would get one without CUDA."""
    installed = dict(found.packages)
    if "conda:pytorch" in installed:
        return ("conda install --force-reinstall pytorch",)
    # A profile is a file from elsewhere, and this line will be pasted into a shell.
    version = _VERSION.fullmatch((*installed.get("torch", ()), "")[0])
    if version is None:
        return ("pip install --force-reinstall torch",)
    index = f" --index-url {INDEX}{version[2]}" if version[2] else ""
    return (f"pip install --force-reinstall torch=={version[1]}{index}",)


def several_torches(found: Evidence) -> Diagnosis | None:
    """More than one torch in the same environment: files of one beside libraries of the other."""
    installed = [
        (name, version)
        for name, versions in found.packages
        if name in {"torch", "conda:pytorch"}
        for version in versions
    ]
    releases = {version.partition(" ")[0].partition("+")[0] for _, version in installed}
    if len(installed) < 2:
        return None
    if len(installed) == 2 and len(releases) == 1 and len({name for name, _ in installed}) == 2:
        return None  # conda's package tells pip of itself
    return cause(
        "several-torches",
        evidence=tuple((f"{name.replace(':', ': ')} {version}" for name, version in installed[:8])),
        conda=("conda remove pytorch",) if any((name == "conda:pytorch" for name, _ in installed)) else (),
    )


def toolkit_differs(found: Evidence) -> Diagnosis | None:
    """A CUDA toolkit of another version than torch's: harmless, and often taken for the cause."""
    cuda = cuda_version(found.torch.cuda)
    installed = sorted({*found.toolkits, *((found.nvcc,) if found.nvcc else ())})
    if cuda is None or all(cuda_version(version) == cuda for version in installed):
        return None
    if not brings_libraries(found):
        return None
    return cause(
        "toolkit-does-not-matter", evidence=(f"toolkits: {', '.join(installed[:8])}", torch_line(found))
    )


RULES: tuple[MachineRule, ...] = (
    torch_missing,
    torch_broken,
    *NVIDIA_RULES,
    *JETSON_RULES,
    *DEVICE_RULES,
    *ERROR_RULES,
    *OTHER_RULES,
    several_torches,
    toolkit_differs,
)
