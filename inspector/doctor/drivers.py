"""Which driver a CUDA version needs, which GPU code runs on which GPU, and which build of torch has both."""

from __future__ import annotations

import re
from itertools import takewhile

from inspector.target.machine.evidence import Version

# CUDA version -> the oldest driver for Linux and for Windows. From CUDA 11 on any driver of the same major
# version does ("minor version compatibility"); before, each version needed its own. Sources:
# https://docs.nvidia.com/deploy/cuda-compatibility/minor-version-compatibility.html, tables 1 and 2, and
# https://docs.nvidia.com/cuda/cuda-toolkit-release-notes, "CUDA Toolkit and Corresponding Driver Versions".
_OLDEST_DRIVERS: dict[Version, tuple[str, str]] = {
    (9, 0): ("384.81", "385.54"),
    (9, 2): ("396.26", "397.44"),
    (10, 0): ("410.48", "411.31"),
    (10, 1): ("418.39", "418.96"),
    (10, 2): ("440.33", "441.22"),
    (11, 0): ("450.80.02", "452.39"),
    (12, 0): ("525.60.13", "528.33"),
    (13, 0): ("580", "580"),
}

# CUDA version, oldest and newest capability in torch's builds for Linux and Windows on x86, best first.
# https://github.com/pytorch/pytorch/blob/main/RELEASE.md#pytorch-cuda-support-matrix; 12.8 lost the GPUs
# before Turing (https://github.com/pytorch/pytorch/issues/157517), which 12.6 still has.
_BUILDS: tuple[tuple[Version, Version, Version], ...] = (
    ((13, 0), (7, 5), (12, 99)),
    ((12, 8), (7, 5), (12, 99)),
    ((12, 6), (5, 0), (9, 99)),
    ((11, 8), (5, 0), (9, 99)),
)
# The chips of Jetson boards run machine code of their own only; 10.1 was called 11.0 later. So in torch's
# `DEVICE_REQUIREMENT` (torch/cuda/__init__.py).
_ALONE = frozenset({(5, 3), (6, 2), (7, 2), (8, 7), (10, 1)})
_RENAMED = ((10, 1), (11, 0))

INDEX = "https://download.pytorch.org/whl/"


def parse_version(text: str | None) -> tuple[int, ...]:
    """Return the numbers that a version begins with: `12.4` and `535.183.01`, and nothing for nothing."""
    parts = re.split(r"[.\s+-]", (text or "")[:40])
    return tuple(int(part) for part in takewhile(_is_number, parts))


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 10


def cuda_version(text: str | None) -> Version | None:
    """Return a CUDA version as major and minor number, or None."""
    numbers = (*parse_version(text), 0)
    return (numbers[0], numbers[1]) if len(numbers) > 1 else None


def oldest_driver(cuda: Version, *, windows: bool) -> str | None:
    """Return the oldest driver that a build of torch for a CUDA version works with, or None if not known."""
    rows = [version for version in _OLDEST_DRIVERS if version <= cuda and version[0] == cuda[0]]
    return _OLDEST_DRIVERS[max(rows)][int(windows)] if rows else None


def driver_suffices(driver: str, cuda: Version, *, windows: bool) -> bool | None:
    """Return whether a driver is new enough for a build of torch, or None if that is not known."""
    oldest = oldest_driver(cuda, windows=windows)
    if oldest is None or not parse_version(driver):
        return None
    return parse_version(driver) >= parse_version(oldest)


def highest_cuda(driver: str, *, windows: bool) -> Version | None:
    """Return the highest CUDA major version that a driver speaks, by the same table."""
    fit = [version for version in _OLDEST_DRIVERS if driver_suffices(driver, version, windows=windows)]
    return max(fit, default=None)


def build_for(capabilities: tuple[Version, ...], cuda: Version | None) -> str | None:
    """Return the newest index of torch's builds (`cu126`) for all GPUs of a machine and its driver, or None.

    Without a driver the newest one is taken: a new driver will run every build.
    """
    for version, oldest, newest in _BUILDS:
        fits = all(oldest <= capability <= newest for capability in capabilities)
        if fits and (cuda is None or version[0] <= cuda[0]):
            return f"cu{version[0]}{version[1]}"
    return None


def install_command(build: str | None) -> str:
    """Return the command that installs a build of torch; without one, where to look for it."""
    if build is None:
        return "pip install torch, with the index that https://pytorch.org/get-started/locally/ names"
    return f"pip install --force-reinstall torch --index-url {INDEX}{build}"


def runs_code(capability: Version, architectures: tuple[str, ...]) -> bool:
    """Return whether GPU code compiled for some architectures runs on a GPU.

    `sm_86` is machine code: it runs on GPUs of its major version from its own minor version on; `sm_90a` on
    its own alone, `sm_100f` within its family. `compute_90` is PTX: the driver compiles it for any later GPU.
    https://docs.nvidia.com/cuda/cuda-c-programming-guide/#application-compatibility
    """
    return any(_runs(capability, architecture) for architecture in architectures)


def _runs(capability: Version, architecture: str) -> bool:
    found = re.fullmatch(r"(sm|compute)_([0-9]{1,3})([0-9])([af]?)", architecture)
    if found is None:
        return False
    compiled = int(found[2]), int(found[3])
    if found[4] == "a":
        return capability == compiled
    if found[1] == "compute" and not found[4]:
        return capability >= compiled
    if capability in _ALONE or compiled in _ALONE:
        return capability == compiled or (compiled, capability) == _RENAMED
    return capability[0] == compiled[0] and capability >= compiled


def oldest_compiled(architectures: tuple[str, ...]) -> Version | None:
    """Return the oldest GPU that a build has code for, or None if nothing is known of it."""
    found = [re.match(r"(?:sm|compute)_([0-9]{1,3})([0-9])", architecture) for architecture in architectures]
    return min(((int(match[1]), int(match[2])) for match in found if match), default=None)
