"""A machine as far as loading is concerned: which accelerators torch finds on it.

Presets stand for machines one may mean; `this` is filled by the probe script, run in a child process.
"""

from __future__ import annotations

import os

from inspector.errors import PlanError
from inspector.records import dataclass
from inspector.target.machine.evidence import Evidence

_MOST_GPUS = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """One accelerator that torch can use.

    Attributes:
        device: The device's name in torch: `cuda:0`, `mps`, `xpu:1`.
        name: What its maker calls it; empty where nobody said.
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
        cuda: Number of CUDA (or ROCm) devices.
        mps: Whether Apple's GPU is there.
        xpu: Number of Intel devices.
        torch_version: The installed torch, where it is known.
        gpus: What is known of the devices counted above; empty for a preset.
        memory_nbytes: The machine's own memory, or None where it is not known.
        evidence: All that a probe found there; None for a machine that one only thinks of.
    """

    id: str
    label: str
    cuda: int = 0
    mps: bool = False
    xpu: int = 0
    torch_version: str | None = None
    gpus: tuple[Gpu, ...] = ()
    memory_nbytes: int | None = None
    evidence: Evidence | None = None

    @property
    def devices(self) -> tuple[str, ...]:
        """The devices that tensors can be put on, the best first, the CPU last."""
        cuda = tuple(f"cuda:{index}" for index in range(self.cuda))
        xpu = tuple(f"xpu:{index}" for index in range(self.xpu))
        return (*cuda, *(("mps",) if self.mps else ()), *xpu, "cpu")

    def offers(self, kind: str, index: int | None) -> bool:
        """Say whether a device can be used here; without an index any of its kind will do."""
        count = {"cpu": 1, "meta": 1, "cuda": self.cuda, "mps": int(self.mps), "xpu": self.xpu}.get(kind, 0)
        return count > (index or 0)


CPU_ONLY = Profile(id="cpu", label="CPU only")
PRESETS: tuple[Profile, ...] = (
    CPU_ONLY,
    Profile(id="cuda:1", label="1 NVIDIA GPU", cuda=1),
    Profile(id="cuda:2", label="2 NVIDIA GPUs", cuda=2),
    Profile(id="cuda:4", label="4 NVIDIA GPUs", cuda=4),
    Profile(id="cuda:8", label="8 NVIDIA GPUs", cuda=8),
    Profile(id="mps", label="Apple silicon", mps=True),
    Profile(id="xpu", label="Intel GPU (XPU)", xpu=1),
    Profile(id="rocm", label="1 AMD GPU (ROCm)", cuda=1),  # torch calls its devices cuda:0, cuda:1, too
)


def parse_target(text: str) -> Profile:
    """Give the machine that a word means, or that the file of this name describes.

    `cuda` is one GPU, `cuda:N` is N of them. A word wins over a file of the same name.

    Raises:
        PlanError: It is neither a word for a machine nor a file.
        ContainerError: The file cannot be read, or is no profile.
    """
    wanted = "cuda:1" if text == "cuda" else text
    for preset in PRESETS:
        if preset.id == wanted:
            return preset
    kind, _, count = wanted.partition(":")
    if kind == "cuda" and count.isascii() and count.isdigit() and 0 < int(count) <= _MOST_GPUS:
        return Profile(id=wanted, label=f"{int(count)} NVIDIA GPUs", cuda=int(count))
    if text.endswith(".json") or os.path.isfile(text):  # noqa: PTH113 - a path that cannot be is no error here
        from inspector.target.machine.profile_file import read_profile  # noqa: PLC0415 - most runs name a word

        return read_profile(text)
    remedy = "use this, cpu, cuda, cuda:N (N GPUs), mps, xpu, rocm or the file of a machine profile"
    raise PlanError(f"there is no target {text!r}", remedy=remedy)
