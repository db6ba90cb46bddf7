"""Rules of the GPU doctor about GPUs that are there and cannot be reached, or cannot run torch's code."""

from __future__ import annotations

import re

from inspector.doctor.builds import build_for, install_steps
from inspector.doctor.diagnosis import Diagnosis, MachineRule, cause
from inspector.doctor.drivers import compiled_for, runs_code
from inspector.doctor.symptoms import (
    driver_line,
    gpus_line,
    has_driver,
    has_gpu_nodes,
    is_jetson,
    quoted,
    said,
    torch_line,
    variable,
    wants_cuda,
)
from inspector.target.evidence import Evidence, SmiGpu, TorchDevice

_MOST_NAMED = 8
# The packages of Ubuntu's driver, of which libnvidia-compute-NNN brings a libcuda.so of its own; libnvidia-
# alone would also take libnvidia-container, which docker needs: https://docs.nvidia.com/cuda/wsl-user-guide/
_UNINSTALL = "sudo apt remove --purge '^nvidia-driver-.*' '^libnvidia-compute-.*'"


def no_device_nodes(found: Evidence) -> Diagnosis | None:
    """A container that was started without its host's GPUs; kernel and bus can be seen from inside."""
    if not wants_cuda(found) or not found.system.container or found.system.wsl or has_gpu_nodes(found):
        return None
    if is_jetson(found):
        return None  # it has none outside either
    if not found.nvidia.kernel_module and "nvidia" not in found.cards:
        return None  # nothing says that the host has one: see no_gpu
    seen = (
        [f"the host's kernel runs NVIDIA driver {found.nvidia.kernel_module}"]
        if found.nvidia.kernel_module
        else []
    )
    return cause(
        "no-device-nodes",
        evidence=(
            torch_line(found),
            f"this is a {found.system.container} container",
            *seen,
            *(
                f"NVIDIA_VISIBLE_DEVICES={value}"
                for value in (variable(found, "NVIDIA_VISIBLE_DEVICES"),)
                if value
            ),
            "there is no /dev/nvidia0",
        ),
    )


def wsl_without_gpu(found: Evidence) -> Diagnosis | None:
    """Linux inside Windows that gets no GPU from it; the driver belongs into Windows there."""
    if not wants_cuda(found) or not found.system.wsl:
        return None
    complaint = said(found, "GPU access blocked by the operating system")
    if found.dxg and found.nvidia.libcuda.found and complaint is None:
        return None
    missing = "there is no /dev/dxg" if not found.dxg else "the driver's library from Windows is not found"
    is_bare = found.dxg and complaint is None
    return cause(
        "wsl-without-gpu",
        evidence=(
            torch_line(found),
            missing if complaint is None else "the GPU is blocked",
            *quoted(complaint),
        ),
        certainty="possible" if is_bare else "certain",
        other_maker=" If the GPU of this computer is not from NVIDIA, nothing is wrong with WSL."
        if is_bare
        else "",
    )


def no_permission(found: Evidence) -> Diagnosis | None:
    """Device files that this user may not open."""
    nodes = _closed_nodes(found)
    if not wants_cuda(found) or not nodes or is_jetson(found):
        return None
    return cause(
        "no-permission",
        evidence=(torch_line(found), f"not readable and writable: {', '.join(nodes[:_MOST_NAMED])}"),
    )


def _closed_nodes(found: Evidence) -> list[str]:
    """Return the closed device files that keep torch from every GPU: on a cluster, some are always closed."""
    numbered = [node for node in found.nvidia.nodes if re.fullmatch(r"/dev/nvidia[0-9]+", node.path)]
    shared = [node for node in found.nvidia.nodes if node.path in {"/dev/nvidiactl", "/dev/nvidia-uvm"}]
    needed = shared if any(node.usable for node in numbered) else [*numbered, *shared]
    return [node.path for node in needed if not node.usable]


def devices_hidden(found: Evidence) -> Diagnosis | None:
    """A variable of the environment that leaves no GPU."""
    torch = found.torch
    if torch.state != "imported" or torch.cuda_available or not _may_have_gpu(found):
        return None
    for name in _ROCM_VARIABLES if torch.hip else ("CUDA_VISIBLE_DEVICES",):
        value = variable(found, name)
        why = None if value is None else _why_none(value, len(found.nvidia.smi.gpus) or None)
        if value is not None and why is not None:
            return _hidden(found, name, value, why)
    return None


def _may_have_gpu(found: Evidence) -> bool:
    """Return whether there is anything to hide from a build for NVIDIA's or AMD's GPUs."""
    if found.torch.cuda is None:
        return found.torch.hip is not None
    was_asked = bool(found.nvidia.smi.state)
    return has_driver(found) or "nvidia" in found.cards or is_jetson(found) or not was_asked


def _hidden(found: Evidence, name: str, value: str, why: str) -> Diagnosis:
    return cause(
        "devices-hidden",
        evidence=(f"{name}={value}: {why}", *((gpus_line(found),) if found.nvidia.smi.gpus else ())),
        certainty="certain" if found.nvidia.smi.gpus or not value else "likely",
        name=name,
    )


_ROCM_VARIABLES = ("HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES")


def _why_none(value: str, count: int | None) -> str | None:
    """Return why a list shows no device, or None if it shows one or that is not known.

    As the driver reads it: `torch.cuda._parse_visible_devices`, and
    https://docs.nvidia.com/cuda/cuda-c-programming-guide/#cuda-environment-variables
    """
    entries = [entry.strip() for entry in value.split(",")]
    first = entries[0]
    if not first:
        return "the list is empty"
    if first.startswith(("GPU-", "MIG-")):
        return "no GPU has this UUID" if first == "GPU-(not found)" else None
    number = re.match(r"[+-]?[0-9]{1,9}", first)
    if number is None:
        return "this names no GPU"
    if int(number[0]) < 0:
        return "a negative number hides all GPUs"
    if count is not None and int(number[0]) >= count:
        return f"there are {count}, so the highest index is {count - 1}"
    return "an entry occurs twice, which empties the list" if len(set(entries)) < len(entries) else None


def some_hidden(found: Evidence) -> Diagnosis | None:
    """A variable that leaves fewer GPUs than there are: no fault, but a file may name the others."""
    count, usable = len(found.nvidia.smi.gpus), found.torch.cuda_count or 0
    value = variable(found, "CUDA_VISIBLE_DEVICES")
    if value is None or not found.torch.cuda_available or not 0 < usable < count:
        return None
    return cause(
        "some-devices-hidden",
        evidence=(f"CUDA_VISIBLE_DEVICES={value}", gpus_line(found)),
        usable=usable,
        count=count,
    )


def numbered_differently(found: Evidence) -> Diagnosis | None:
    """GPUs of several kinds, which CUDA numbers the fastest first and nvidia-smi by their slots.

    https://docs.nvidia.com/cuda/cuda-c-programming-guide/#cuda-environment-variables, CUDA_DEVICE_ORDER
    """
    ours = [device.name for device in found.torch.cuda_devices]
    theirs = [gpu.name for gpu in found.nvidia.smi.gpus]
    if ours == theirs or sorted(ours) != sorted(theirs) or not all(ours):
        return None
    if variable(found, "CUDA_VISIBLE_DEVICES") is not None:
        return None  # which has an order of its own
    order = variable(found, "CUDA_DEVICE_ORDER")
    return cause(
        "gpus-numbered-differently",
        evidence=(
            ", ".join((f"cuda:{place} is {name}" for place, name in enumerate(ours[:_MOST_NAMED]))),
            ", ".join((f"nvidia-smi's {place} is {name}" for place, name in enumerate(theirs[:_MOST_NAMED]))),
            f"CUDA_DEVICE_ORDER={order}" if order else "CUDA_DEVICE_ORDER is not set",
        ),
    )


def too_new_or_old(found: Evidence) -> Diagnosis | None:
    """A GPU that torch's code was not compiled for: it is found, tensors can be moved, and kernels fail."""
    architectures = found.torch.arch_list
    compiled = compiled_for(architectures)
    if found.torch.cuda is None or not compiled:
        return None
    devices: tuple[TorchDevice | SmiGpu, ...] = found.torch.cuda_devices or found.nvidia.smi.gpus
    left = [
        (device.name, device.capability)
        for device in devices
        if device.capability is not None and not runs_code(device.capability, architectures)
    ]
    if not left:
        return None
    capability = left[0][1]
    is_old = capability < compiled[0]
    sm = f"sm_{capability[0]}{capability[1]}"
    kind = "old " if is_old else "new " if capability > compiled[-1] else ""
    build = None if is_jetson(found) else build_for(found)
    return cause(
        "gpu-too-old" if is_old else "gpu-too-new",
        evidence=(
            torch_line(found),
            *(f"{name or 'a GPU'} is sm_{has[0]}{has[1]}" for name, has in left[:_MOST_NAMED]),
            f"torch has code for {', '.join(architectures)}",
            driver_line(found),
            *quoted(said(found, f"{sm} is not compatible|not include kernels|of cuda capability")),
        ),
        certainty="certain" if found.torch.cuda_devices else "likely",
        kind=kind,
        sm=sm,
        build="" if build is None else f" The build for CUDA {build.cuda[0]}.{build.cuda[1]} has it.",
        install=install_steps(found),
    )


DEVICE_RULES: tuple[MachineRule, ...] = (
    devices_hidden,
    no_device_nodes,
    wsl_without_gpu,
    no_permission,
    too_new_or_old,
    some_hidden,
    numbered_differently,
)
