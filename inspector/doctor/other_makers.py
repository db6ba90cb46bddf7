"""Rules of the GPU doctor about the GPUs of AMD, Intel and Apple."""

from __future__ import annotations

import re

from inspector.doctor.builds import install_steps
from inspector.doctor.diagnosis import Diagnosis, MachineRule, cause
from inspector.doctor.drivers import parse_version
from inspector.doctor.symptoms import has_driver, quoted, torch_line, variable
from inspector.target.evidence import Evidence, Node

# The oldest macOS by torch's version, newest first; what torch says where it is older may name the one
# before. https://github.com/pytorch/pytorch/pull/162921 (2.9), /pull/133141 and /issues/139425 (2.5), and
# /issues/78343.
_OLDEST_MACOS = (((2, 9), "14.0"), ((2, 5), "13.0"), ((), "12.3"))
# Chips that run code for a relative when ROCm is told to, and what it is told:
# https://rocm.docs.amd.com/en/latest/reference/gpu-arch-specs.html and https://github.com/ROCm/ROCm/issues/1756
_RELATIVES = ((re.compile(r"gfx103[1-6]"), "10.3.0"), (re.compile(r"gfx110[1-3]"), "11.0.0"))
# https://docs.pytorch.org/docs/stable/notes/get_start_xpu.html, https://intel.github.io/llvm/EnvironmentVariables
_INTEL_VARIABLES = ("ZE_AFFINITY_MASK", "ONEAPI_DEVICE_SELECTOR")
_CONTAINER = ("docker run --device=/dev/kfd --device=/dev/dri --group-add video --group-add render ...",)
_MODULE = ("sudo modprobe amdgpu", "sudo apt install amdgpu-dkms   # from AMD's repository")
_ROCM_SYSTEMS = "https://rocm.docs.amd.com/projects/install-on-linux/   # which GPUs and kernels it supports"
_ROCM_WSL = "https://rocm.docs.amd.com/projects/radeon/   # ROCm in WSL: its driver is in Windows"
_GROUPS = "sudo usermod -aG render,video $USER   # then log in again"


def rocm_out_of_reach(found: Evidence) -> Diagnosis | None:
    """A torch for AMD whose driver is missing, closed, or not in the container."""
    if found.torch.hip is None or found.torch.cuda_available:
        return None
    if not found.kfd and "amd" not in found.cards and (has_driver(found) or "nvidia" in found.cards):
        return _wrong_build(found)
    closed = _closed((*found.kfd, *found.dri))
    if found.kfd and closed:
        return _closed_nodes(found, "rocm-no-permission", closed)
    if found.system.wsl or found.system.os == "Windows":
        return _rocm_of_windows(found)
    return cause(
        "rocm-no-device" if not found.kfd else "rocm-no-gpu",
        evidence=(torch_line(found), *quoted("; ".join(found.torch.cuda_messages))),
        certainty="certain" if not found.kfd else "possible",
        file="That file is missing." if not found.kfd else "It exists, but ROCm finds no GPU behind it.",
        driver=() if found.kfd else _CONTAINER if found.system.container else _MODULE,
    )


def _rocm_of_windows(found: Evidence) -> Diagnosis:
    """Windows, and Linux inside of it: there is no /dev/kfd, and AMD's driver for Windows does the work."""
    missing = found.system.wsl and not found.dxg
    return cause(
        "rocm-windows",
        evidence=(torch_line(found), *quoted("; ".join(found.torch.cuda_messages))),
        certainty="certain" if missing else "likely",
        missing=" WSL was not given the GPU: there is no /dev/dxg." if missing else "",
        update=("wsl --update   # in Windows",) if missing else (),
    )


def _wrong_build(found: Evidence) -> Diagnosis:
    return cause(
        "rocm-on-nvidia",
        evidence=(torch_line(found), "the card on the bus is from NVIDIA"),
        install=install_steps(found),
    )


def _closed(nodes: tuple[Node, ...]) -> tuple[str, ...]:
    return tuple(node.path for node in nodes if not node.usable)


def _closed_nodes(found: Evidence, id_: str, paths: tuple[str, ...]) -> Diagnosis:
    container = ("in a container: docker run --group-add render --group-add video ...",)
    return cause(
        id_,
        evidence=(torch_line(found), f"not readable and writable: {', '.join(paths[:8])}"),
        container=container if found.system.container else (),
    )


def rocm_without_code(found: Evidence) -> Diagnosis | None:
    """An AMD GPU that torch's code was not compiled for."""
    torch = found.torch
    names = [(device.architecture or "").split(":")[0] for device in torch.cuda_devices]
    known = {architecture.split(":")[0] for architecture in torch.arch_list}
    left = sorted({name for name in names if name and name not in known})
    if torch.hip is None or not known or not left:
        return None
    told = [version for chips, version in _RELATIVES if any(map(chips.fullmatch, left))][:1]
    return cause(
        "rocm-gpu-unsupported",
        evidence=(torch_line(found), f"torch has code for {', '.join(sorted(known))}"),
        chips=", ".join(left[:8]),
        relative=" Code for a closely related chip often works when ROCm is told to use it." if told else "",
        told=tuple(f"export HSA_OVERRIDE_GFX_VERSION={version}   # on Linux" for version in told),
    )


def amd_without_rocm(found: Evidence) -> Diagnosis | None:
    """A torch without ROCm beside an AMD GPU whose driver is ready."""
    torch = found.torch
    if torch.state != "imported" or torch.hip or torch.cuda_available or torch.xpu_available:
        return None
    if not found.kfd or "amd" not in found.cards or "nvidia" in found.cards or has_driver(found):
        return None
    return cause(
        "amd-without-rocm", evidence=(torch_line(found), "there is an AMD card, and /dev/kfd exists")
    )


def intel_out_of_reach(found: Evidence) -> Diagnosis | None:
    """A torch for Intel's GPUs that finds none."""
    torch = found.torch
    if torch.state != "imported" or torch.xpu_available or torch.cuda_available:
        return None
    if torch.xpu is None and "+xpu" not in (torch.version or ""):
        return None
    if found.cards and "intel" not in found.cards:
        return _no_intel_gpu(found)
    hidden = [name for name in _INTEL_VARIABLES if variable(found, name) is not None]
    if hidden:
        return _hidden_from_intel(found, hidden[0])
    closed = _closed(found.dri)
    if closed:
        return _closed_nodes(found, "xpu-no-permission", closed)
    driver = "sudo apt install libze-intel-gpu1 libze1 intel-opencl-icd   # from Intel's graphics repository"
    container = "docker run --device /dev/dri ..."
    return cause(
        "xpu-driver-missing",
        evidence=(torch_line(found), *quoted("; ".join(torch.xpu_messages))),
        part="The library" if found.dri else "The render node",
        container=(container,) if found.system.container and (not found.dri) else (),
        driver=driver
        if found.system.os == "Linux"
        else "install Intel's driver: https://www.intel.com/content/www/us/en/download-center/home.html",
    )


def _hidden_from_intel(found: Evidence, name: str) -> Diagnosis:
    return cause("xpu-hidden", evidence=(torch_line(found), f"{name}={variable(found, name)}"), name=name)


def _no_intel_gpu(found: Evidence) -> Diagnosis:
    is_nvidia = "nvidia" in found.cards
    return cause(
        "xpu-without-intel-gpu",
        evidence=(torch_line(found), f"cards on the bus: {', '.join(sorted(set(found.cards)))}"),
        steps=install_steps(found) if is_nvidia else ("https://pytorch.org/get-started/locally/",),
    )


def apple_out_of_reach(found: Evidence) -> Diagnosis | None:
    """A Mac whose GPU torch does not use."""
    torch, system = found.torch, found.system
    if system.os != "Darwin" or torch.state != "imported" or torch.mps_available:
        return None
    if system.rosetta:
        return _translated(found)
    if system.machine == "x86_64":
        return cause("mps-intel-mac", evidence=(torch_line(found), "the processor is from Intel"))
    oldest = next(macos for since, macos in _OLDEST_MACOS if parse_version(torch.version) >= since)
    is_old = (0,) < parse_version(system.macos) < parse_version(oldest)
    return cause(
        "mps-macos-too-old" if is_old else "mps-not-built" if torch.mps_built is not True else "mps-no-metal",
        evidence=(torch_line(found), f"macOS {system.macos or 'of an unknown version'}, {system.machine}"),
        certainty="certain" if is_old or torch.mps_built is False else "possible",
        oldest=oldest,
        update=(f"update macOS to {oldest} or newer",) if is_old else (),
        upgrade=("pip install --upgrade torch",) if torch.mps_built is not True else (),
    )


def _translated(found: Evidence) -> Diagnosis:
    return cause(
        "mps-rosetta",
        evidence=(torch_line(found), f"Python {found.python.version} for {found.system.machine}, translated"),
    )


OTHER_RULES: tuple[MachineRule, ...] = (
    rocm_out_of_reach,
    rocm_without_code,
    amd_without_rocm,
    intel_out_of_reach,
    apple_out_of_reach,
)
