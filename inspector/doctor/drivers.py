"""Which driver a CUDA version needs, which CUDA a driver supports, and which GPU code runs on which GPU."""

from __future__ import annotations

import re
from itertools import takewhile

from inspector.target.evidence import Version

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

# Driver branch -> the newest CUDA version that it speaks; the branches are the same on Windows. Source:
# https://docs.nvidia.com/cuda/cuda-toolkit-release-notes, "CUDA Toolkit and Corresponding Driver Versions".
_NEWEST_CUDA: dict[int, Version] = {
    384: (9, 0),
    387: (9, 1),
    396: (9, 2),
    410: (10, 0),
    418: (10, 1),
    440: (10, 2),
    450: (11, 0),
    455: (11, 1),
    460: (11, 2),
    465: (11, 3),
    470: (11, 4),
    495: (11, 5),
    510: (11, 6),
    515: (11, 7),
    520: (11, 8),
    525: (12, 0),
    530: (12, 1),
    535: (12, 2),
    545: (12, 3),
    550: (12, 4),
    555: (12, 5),
    560: (12, 6),
    565: (12, 7),
    570: (12, 8),
    575: (12, 9),
    580: (13, 0),
    590: (13, 1),
}
# The chips of Jetson boards run machine code of their own only; 10.1 was called 11.0 later. So in torch's
# `DEVICE_REQUIREMENT` (torch/cuda/__init__.py).
_ALONE = frozenset({(5, 3), (6, 2), (7, 2), (8, 7), (10, 1)})
_RENAMED = ((10, 1), (11, 0))


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


def highest_cuda(driver: str) -> Version | None:
    """Return the newest CUDA version that a driver is known to support."""
    branch = (*parse_version(driver), 0)[0]
    return max((cuda for oldest, cuda in _NEWEST_CUDA.items() if oldest <= branch), default=None)


def is_newest_known(driver: str) -> bool:
    """Return whether a driver is of the last branch in the table, or newer, so that it may support more."""
    return (*parse_version(driver), 0)[0] >= max(_NEWEST_CUDA)


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


def compiled_for(architectures: tuple[str, ...]) -> tuple[Version, ...]:
    """Return the GPUs that a build was compiled for, oldest first; nothing where nothing is known of it."""
    found = [re.match(r"(?:sm|compute)_([0-9]{1,3})([0-9])", architecture) for architecture in architectures]
    return tuple(sorted((int(match[1]), int(match[2])) for match in found if match))
