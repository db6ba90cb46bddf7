"""What the probe found on a machine, field by field as it wrote it: what the GPU doctor looks at.

The names are those of the document that `resources/probe/checkpoint_inspector_probe.py` prints. All have
a default: a profile may come from another version of the script, or lack what could not be asked.
"""

from __future__ import annotations

from inspector.records import dataclass

Version = tuple[int, int]
Packages = tuple[tuple[str, tuple[str, ...]], ...]
Environment = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class System:
    """The machine and its operating system.

    Attributes:
        os: `Linux`, `Windows` or `Darwin`.
        machine: The architecture that Python was built for: `x86_64`, `arm64`.
        container: The kind of container, or None outside of one.
    """

    os: str = ""
    release: str = ""
    machine: str = ""
    macos: str | None = None
    rosetta: bool | None = None
    wsl: bool = False
    container: str | None = None
    memory_nbytes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Python:
    """The Python that ran the probe."""

    version: str = ""
    implementation: str = ""
    bits: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TorchDevice:
    """A device in torch: `architecture` is AMD's name (`gfx1030`), `capability` NVIDIA's number."""

    name: str = ""
    memory_nbytes: int | None = None
    capability: Version | None = None
    architecture: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TorchFound:
    """What the installed torch says.

    Attributes:
        state: `imported`, `missing`, `failed` (it raised), `crashed`, `timeout`; empty when not asked.
        version: torch's version with its build: `2.5.1+cu124`.
        cuda: The CUDA version it was built for, or None.
        cuda_available: ROCm answers here, too.
        cuda_count: `torch.cuda.device_count()`, which may count GPUs that cannot be used.
        arch_list: `torch.cuda.get_arch_list()`: what its GPU code was compiled for.
    """

    state: str = ""
    error: str | None = None
    version: str | None = None
    cuda: str | None = None
    hip: str | None = None
    xpu: str | None = None
    messages: tuple[str, ...] = ()
    cuda_available: bool | None = None
    cuda_count: int | None = None
    cuda_messages: tuple[str, ...] = ()
    cuda_devices: tuple[TorchDevice, ...] = ()
    arch_list: tuple[str, ...] = ()
    mps_built: bool | None = None
    mps_available: bool | None = None
    xpu_available: bool | None = None
    xpu_messages: tuple[str, ...] = ()
    xpu_devices: tuple[TorchDevice, ...] = ()
    hpu: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SmiGpu:
    """A GPU as nvidia-smi lists it; `mig` is `Enabled` where it is cut into slices."""

    name: str = ""
    memory_nbytes: int | None = None
    mig: str = ""
    capability: Version | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Smi:
    """What nvidia-smi says.

    Attributes:
        state: `ok`, `missing`, `failed` or `timeout`; empty when it was not asked.
    """

    state: str = ""
    exit_code: int | None = None
    error: str | None = None
    driver: str | None = None
    cuda: str | None = None
    gpus: tuple[SmiGpu, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Libcuda:
    """The driver's library, and the highest CUDA version it speaks."""

    found: bool = False
    cuda: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A device file, and whether this user may read and write it."""

    path: str
    usable: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Nvidia:
    """NVIDIA's driver as nvidia-smi, the kernel and its library know it."""

    smi: Smi = Smi()
    kernel_module: str | None = None
    libcuda: Libcuda = Libcuda()
    nodes: tuple[Node, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """Everything that one run of the probe found.

    Attributes:
        cards: Makers of the graphics cards on the bus, known to a driver or not: `nvidia`, `amd`, `intel`.
        toolkits: Versions of the CUDA toolkits that are installed; torch does not use them.
    """

    system: System = System()
    python: Python = Python()
    torch: TorchFound = TorchFound()
    nvidia: Nvidia = Nvidia()
    cards: tuple[str, ...] = ()
    dri: tuple[Node, ...] = ()
    kfd: tuple[Node, ...] = ()
    dxg: bool = False
    toolkits: tuple[str, ...] = ()
    nvcc: str | None = None
    packages: Packages = ()
    environment: Environment = ()
