"""Questions about a machine that several rules of the GPU doctor ask, and lines of evidence they show."""

from __future__ import annotations

import re

from inspector.doctor.drivers import cuda_version, highest_cuda, is_newest_known
from inspector.target.evidence import Evidence, Version

_GPU_NODE = re.compile(r"/dev/nvidia[0-9]+")


def is_windows(found: Evidence) -> bool:
    """Return which driver versions count: in WSL nvidia-smi tells those of Windows."""
    return found.system.os == "Windows" or found.system.wsl


def is_native_linux(found: Evidence) -> bool:
    """Return whether the machine's own files tell the truth: neither a container nor WSL stands between."""
    return found.system.os == "Linux" and not found.system.wsl and found.system.container is None


def is_jetson(found: Evidence) -> bool:
    """Return whether this is one of NVIDIA's Jetson boards: its driver is part of the system ("tegra")."""
    return found.system.os == "Linux" and "tegra" in found.system.release.lower()


def may_have_card(found: Evidence) -> bool:
    """Return whether there may be an NVIDIA GPU; that there is none, only the bus of Linux itself tells."""
    is_seen = "nvidia" in found.cards or bool(found.nvidia.smi.gpus) or has_gpu_nodes(found)
    return is_seen or is_jetson(found) or not is_native_linux(found)


def brings_libraries(found: Evidence) -> bool:
    """Return whether torch is a build of PyTorch's or conda's: others use the CUDA toolkit of the system."""
    is_own = re.search(r"\+(?:cu[0-9]+|cpu)$", found.torch.version or "") is not None
    return is_own or any(name == "conda:pytorch" for name, _ in found.packages)


def wants_cuda(found: Evidence) -> bool:
    """Return whether torch is there and built for NVIDIA's GPUs, but finds none that it can use."""
    return found.torch.state == "imported" and found.torch.cuda is not None and not found.torch.cuda_available


def driver_version(found: Evidence) -> str | None:
    """Return the version of NVIDIA's driver, from whichever source knows it."""
    module = found.nvidia.kernel_module
    return found.nvidia.smi.driver or (module if module != "unknown" else None)


def driver_cuda(found: Evidence) -> Version | None:
    """Return the highest CUDA version that the driver supports, from whichever source knows it."""
    told, driver = _told_cuda(found), driver_version(found)
    return highest_cuda(driver) if told is None and driver else told


def _told_cuda(found: Evidence) -> Version | None:
    """Return the highest CUDA version that the driver itself named."""
    for said in (found.nvidia.smi.cuda, found.nvidia.libcuda.cuda):
        version = cuda_version(said)
        if version is not None:
            return version
    number = re.search(r"found version ([0-9]{4,5})\)", " ".join(found.torch.cuda_messages))
    return None if number is None else (int(number[1]) // 1000, int(number[1]) % 1000 // 10)


def has_driver(found: Evidence) -> bool:
    """Return whether any part of NVIDIA's driver is there."""
    nvidia = found.nvidia
    return (
        nvidia.smi.state in {"ok", "failed", "timeout"} or nvidia.libcuda.found or bool(nvidia.kernel_module)
    )


def has_gpu_nodes(found: Evidence) -> bool:
    """Return whether a device file of an NVIDIA GPU is there."""
    return any(_GPU_NODE.fullmatch(node.path) for node in found.nvidia.nodes)


def capabilities(found: Evidence) -> tuple[Version, ...]:
    """Return the capabilities of the NVIDIA GPUs, by torch or else by nvidia-smi."""
    devices = found.torch.cuda_devices or found.nvidia.smi.gpus
    return tuple(device.capability for device in devices if device.capability is not None)


def variable(found: Evidence, name: str) -> str | None:
    """Return a variable of the environment, or None where it is not set."""
    return dict(found.environment).get(name)


def said(found: Evidence, pattern: str) -> str | None:
    """Return what torch or nvidia-smi said that fits a pattern, or None."""
    for text in (*found.torch.cuda_messages, found.nvidia.smi.error or ""):
        if re.search(pattern, text):
            return text
    return None


def torch_line(found: Evidence) -> str:
    """Return which torch it is and what it was built for."""
    torch = found.torch
    if torch.version is None:
        return "torch could not be asked"
    for name, version in (("CUDA", torch.cuda), ("ROCm", torch.hip), ("XPU", torch.xpu)):
        if version is not None:
            return f"torch {torch.version}, built for {name} {version}"
    return (
        f"torch {torch.version}, built without GPU support"
        if torch.mps_built is not True
        else (f"torch {torch.version}, built for Apple's GPU")
    )


def driver_line(found: Evidence) -> str:
    """Return which driver there is."""
    version, cuda = driver_version(found), driver_cuda(found)
    if version is None:
        return "NVIDIA driver of an unknown version" if has_driver(found) else "no NVIDIA driver"
    line = f"NVIDIA driver {version}"
    if cuda is None:
        return line
    if _told_cuda(found) is None and is_newest_known(version):
        return f"{line}, which supports CUDA {cuda[0]}.{cuda[1]} or newer"
    return f"{line}, which supports CUDA up to {cuda[0]}.{cuda[1]}"


def gpus_line(found: Evidence) -> str:
    """Name the NVIDIA GPUs as nvidia-smi lists them."""
    names = [gpu.name or "a GPU without a name" for gpu in found.nvidia.smi.gpus]
    return "nvidia-smi lists " + ", ".join(names[:8]) if names else "nvidia-smi lists no GPU"


def quoted(text: str | None) -> tuple[str, ...]:
    """Return what a program said as a line of evidence, if it said anything."""
    return (f"it said: {text}",) if text else ()
