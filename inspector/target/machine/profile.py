"""A machine as far as loading is concerned: which accelerators torch finds on it.

Presets stand for machines one may mean; `this` is filled by the probe script, run in a child process.
"""

from __future__ import annotations

import os
from itertools import chain

from inspector.errors import PlanError
from inspector.model.roles.device_types import DEVICE_TYPES, DeviceType
from inspector.records import dataclass
from inspector.target.machine.evidence import Evidence

_MOST_GPUS = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """One accelerator that torch can use.

    Attributes:
        device: The device's name in torch: `cuda:0`, `mps`, `xpu:1`.
        name: The vendor's name for it; empty where it is not known.
        memory_nbytes: Its memory, or None where it is not known.
        capability: CUDA's compute capability, or None for others.
    """

    device: str
    name: str = ""
    memory_nbytes: int | None = None
    capability: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """What a machine offers.

    Attributes:
        id: The word for it on the command line: `cpu`, `cuda:2`, `mps`, `xpu`, `this`.
        label: What people read.
        accelerators: How many devices of each type it has, as (type, number); ROCm's are `cuda`.
        torch_version: The installed torch, where it is known.
        gpus: What is known of the devices counted above; empty for a preset.
        memory_nbytes: The machine's own memory, or None where it is not known.
        evidence: All that a probe found there; None for a machine that was not probed.
    """

    id: str
    label: str
    accelerators: tuple[tuple[str, int], ...] = ()
    torch_version: str | None = None
    gpus: tuple[Gpu, ...] = ()
    memory_nbytes: int | None = None
    evidence: Evidence | None = None

    @property
    def devices(self) -> tuple[str, ...]:
        """The devices that tensors can be put on, the best first, the CPU last."""
        found = (row.devices(self.count(row.name)) for row in DEVICE_TYPES.values())
        return (*chain.from_iterable(found), "cpu")

    def count(self, kind: str) -> int:
        """Return how many devices of a type it has; 0 for the CPU, which is not counted."""
        return dict(self.accelerators).get(kind, 0)

    def offers(self, kind: str, index: int | None) -> bool:
        """Return whether a device can be used here; without an index any of its type will do."""
        return (1 if kind in {"cpu", "meta"} else self.count(kind)) > (index or 0)


CPU_ONLY = Profile(id="cpu", label="CPU only")
# torch calls the devices of ROCm cuda:0, cuda:1, too.
_ROCM = Profile(id="rocm", label="1 AMD GPU (ROCm)", accelerators=(("cuda", 1),))


def presets() -> tuple[Profile, ...]:
    """Return the machines that are offered without a probe."""
    rows = DEVICE_TYPES.values()
    made = [_preset(row, label, count) for row in rows for label, count in row.presets]
    return (CPU_ONLY, *made, _ROCM)


def _preset(row: DeviceType, label: str, count: int) -> Profile:
    name = f"{row.name}:{count}" if len(row.presets) > 1 else row.name
    return Profile(id=name, label=label, accelerators=((row.name, count),))


def parse_target(text: str) -> Profile:
    """Return the machine that a word means, or that the file of this name describes.

    `cuda` is one GPU, `cuda:N` is N of them. A word wins over a file of the same name.

    Raises:
        PlanError: It is neither a word for a machine nor a file.
        ContainerError: The file cannot be read, or is no profile.
    """
    wanted = "cuda:1" if text == "cuda" else text
    for preset in presets():
        if preset.id == wanted:
            return preset
    kind, _, count = wanted.partition(":")
    if kind == "cuda" and count.isascii() and count.isdigit() and 0 < int(count) <= _MOST_GPUS:
        return Profile(id=wanted, label=f"{int(count)} NVIDIA GPUs", accelerators=((kind, int(count)),))
    if text.endswith(".json") or os.path.isfile(text):  # noqa: PTH113 - a path that cannot be is no error here
        from inspector.target.machine.profile_file import read_profile  # noqa: PLC0415 - most runs name a word

        return read_profile(text)
    ids = (preset.id for preset in presets())
    words = dict.fromkeys("cuda, cuda:N (N GPUs)" if word.startswith("cuda") else word for word in ids)
    remedy = f"use this, {', '.join(words)} or the file of a machine profile"
    raise PlanError(f"unknown target {text!r}", remedy=remedy)
