"""A machine as far as loading is concerned: which accelerators torch finds on it.

Presets stand for machines one may mean; `this` is filled by the probe script, run in a child process.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

from inspector.model.roles.devices import DEVICE_TYPES, DeviceType
from inspector.records import dataclass

if TYPE_CHECKING:
    from inspector.pythons import Python
    from inspector.target.evidence import Evidence


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """One accelerator that torch can use.

    Attributes:
        capability: CUDA's compute capability, or None for others.
    """

    device: str
    name: str = ""
    memory_nbytes: int | None = None
    capability: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """What a machine offers, and which of it is wanted.

    Attributes:
        id: The word for the machine on the command line: `cpu`, `cuda`, `2xcuda`, `mps`, `this`; it does not
            depend on what is wanted.
        accelerators: How many devices of each type it has, as (type, number); ROCm's are `cuda`.
        gpus: What is known of the devices counted above; empty for a preset without a size of memory.
        evidence: All that a probe found there; None for a machine that was not probed.
        python: The Python whose torch was asked; None for any machine but this one.
        wanted: The device that was asked for, such as `cuda:1`; None where any will do.
        is_fewest: Whether no number of devices was given, so that it has the fewest that include `wanted`.
    """

    id: str
    label: str
    accelerators: tuple[tuple[str, int], ...] = ()
    torch_version: str | None = None
    gpus: tuple[Gpu, ...] = ()
    memory_nbytes: int | None = None
    evidence: Evidence | None = None
    python: Python | None = None
    wanted: str | None = None
    is_fewest: bool = False

    @property
    def destination(self) -> str:
        """Where things go: the wanted device, else the best one."""
        return self.wanted or self.devices[0]

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
ROCM = Profile(id="rocm", label="1 AMD GPU (ROCm)", accelerators=(("cuda", 1),))


def label_with(machine: Profile, memory: str) -> str:
    """Return the label of a machine of which the memory is known, in words such as `24 GB`."""
    count = len(machine.devices) - 1
    if count == 0:
        return f"{machine.label}, {memory} of memory"
    return f"{machine.label} of {memory}" + (" each" if count > 1 else "")


def presets() -> tuple[Profile, ...]:
    """Return the machines that are offered without a probe."""
    made = [_preset(row, count) for row in DEVICE_TYPES.values() for count in row.presets]
    return (CPU_ONLY, *made, ROCM)


def preset_of(name: str, count: int) -> Profile | None:
    """Return a machine with so many devices of a type, or of `rocm`; None where there is no such machine."""
    if name == CPU_ONLY.id:
        return CPU_ONLY if count == 1 else None
    if name == ROCM.id:
        label = ROCM.label if count == 1 else f"{count} AMD GPUs (ROCm)"
        return Profile(id=_word(name, count), label=label, accelerators=(("cuda", count),))
    row = DEVICE_TYPES.get(name)
    is_known = row is not None and row.presets and (count == 1 or row.is_numbered)
    return _preset(row, count) if row is not None and is_known else None


def _preset(row: DeviceType, count: int) -> Profile:
    return Profile(id=_word(row.name, count), label=row.label(count), accelerators=((row.name, count),))


def _word(name: str, count: int) -> str:
    return name if count == 1 else f"{count}x{name}"
