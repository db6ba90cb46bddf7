"""Which build of torch has code for a machine's GPUs, and how it is installed there."""

from __future__ import annotations

from inspector.doctor.drivers import parse_version, runs_code
from inspector.doctor.symptoms import capabilities, driver_cuda, is_jetson
from inspector.records import dataclass
from inspector.target.evidence import Evidence, Version

INDEX = "https://download.pytorch.org/whl/"
PREVIOUS = "https://pytorch.org/get-started/previous-versions/"
JETSON_PAGE = "https://docs.nvidia.com/deeplearning/frameworks/install-pytorch-jetson-platform/"
# By JetPack. That of 7 has code for Thor; that of 6 for Orin.
_JETSON_INDICES = {7: f"{INDEX}cu130   # on a Jetson Thor", 6: "https://pypi.jetson-ai-lab.io/jp6/cu126"}
_TOGETHER = ("torchvision", "torchaudio")


@dataclass(frozen=True, slots=True, kw_only=True)
class Build:
    """The builds of torch for one CUDA version.

    Attributes:
        x86: What its code for Linux and Windows was compiled for.
        arm: The same for Linux on aarch64; empty where there is no such build.
        newest_python: The last one, or None where the newest torch is still built for this CUDA.
    """

    cuda: Version
    x86: tuple[str, ...]
    arm: tuple[str, ...]
    oldest_python: Version
    newest_python: Version | None = None

    @property
    def tag(self) -> str:
        """The name of its index: `cu126`."""
        return f"cu{self.cuda[0]}{self.cuda[1]}"


def _sm(numbers: str) -> tuple[str, ...]:
    return tuple(f"sm_{number}" for number in numbers.split())


# The newest torch first. Sources: `PYTORCH_RELEASES_CODE_CC` in torch/cuda/__init__.py of 2.13 (12.6, 13.0);
# https://github.com/pytorch/pytorch/pull/175253 (12.8, whose last release is 2.11, see pull/179072);
# build_cuda.sh of pytorch/builder (11.8, whose last release is 2.7). Pythons: RELEASE.md of pytorch/pytorch,
# "Release Compatibility Matrix".
BUILDS: tuple[Build, ...] = (
    Build(
        cuda=(13, 0),
        x86=_sm("75 80 86 90 100 120"),
        arm=_sm("80 90 100 110 120"),
        oldest_python=(3, 10),
    ),
    Build(cuda=(12, 6), x86=_sm("50 60 70 75 80 86 90"), arm=_sm("80 90"), oldest_python=(3, 9)),
    Build(
        cuda=(12, 8),
        x86=_sm("75 80 86 90 100 120"),
        arm=_sm("80 90 100 120"),
        oldest_python=(3, 9),
        newest_python=(3, 14),
    ),
    Build(
        cuda=(11, 8),
        x86=_sm("37 50 60 70 75 80 86 90"),
        arm=(),
        oldest_python=(3, 8),
        newest_python=(3, 13),
    ),
)


def build_for(found: Evidence) -> Build | None:
    """Return the build with the newest torch for all GPUs, the driver and the Python of a machine, or None.

    Without a driver that one counts which can be installed: a new driver runs every build.
    """
    cuda = driver_cuda(found)
    return next(
        (build for build in BUILDS if (cuda is None or build.cuda[0] <= cuda[0]) and _suits(build, found)),
        None,
    )


def _suits(build: Build, found: Evidence) -> bool:
    architectures = _architectures(build, found)
    python = parse_version(found.python.version)[:2]
    is_built = not python or build.oldest_python <= python <= (build.newest_python or python)
    return (
        bool(architectures)
        and is_built
        and found.python.bits in {None, 64}
        and all(runs_code(capability, architectures) for capability in capabilities(found))
    )


def _architectures(build: Build, found: Evidence) -> tuple[str, ...]:
    """Return what a build was compiled for on such a machine; nothing where there is no such build."""
    is_arm = found.system.machine.lower() in {"aarch64", "arm64"}
    if not is_arm:
        return build.x86
    return build.arm if found.system.os == "Linux" else ()  # Windows on Arm has builds for the CPU only


def install_steps(found: Evidence) -> tuple[str, ...]:
    """Return what installs a torch with code for a machine's GPUs."""
    if is_jetson(found):
        return _jetson_steps(found)
    names = dict(found.packages)
    build = build_for(found)
    if build is None:
        return (f"{PREVIOUS}   # {_needed(found)}",)
    packages = " ".join(["torch", *(name for name in _TOGETHER if name in names)])
    if "conda:pytorch" in names:
        pip = f"or in a new environment: pip install {packages} --index-url {INDEX}{build.tag}"
        return "conda install -c conda-forge pytorch-gpu", pip
    return (f"pip install --force-reinstall {packages} --index-url {INDEX}{build.tag}",)


def _needed(found: Evidence) -> str:
    """Return what a build must have that none of the newest has."""
    if found.system.os == "Windows" and found.system.machine.lower() == "arm64":
        return "Windows on Arm has no build with CUDA: use WSL or another machine"
    if found.python.bits == 32:
        return "torch needs a Python of 64 bits"
    cuda = driver_cuda(found)
    parts = [f"sm_{major}{minor}" for major, minor in sorted(set(capabilities(found)))]
    parts += [f"CUDA {cuda[0]}.{cuda[1]} or older"] if cuda else []
    parts += [f"Python {found.python.version}"] if found.python.version else []
    return "a release built for " + ", ".join(parts) if parts else "the command for this machine"


def _jetson_steps(found: Evidence) -> tuple[str, ...]:
    """Return what installs a torch on a Jetson: builds for servers have no code for its chip, but for Thor's.

    https://forums.developer.nvidia.com/t/72048 names the builds for each JetPack; for Thor, see
    https://github.com/OpenRAL/openral/pull/167.
    """
    jetpack = jetpack_of(found)
    index = _JETSON_INDICES.get(jetpack or 0)
    page = f"{JETSON_PAGE}   # NVIDIA's builds, by JetPack"
    return (page,) if index is None else (f"pip install --force-reinstall torch --index-url {index}", page)


def jetpack_of(found: Evidence) -> int | None:
    """Return the JetPack of a Jetson by its kernel, or None where that is not known.

    https://developer.nvidia.com/embedded/jetpack-archive: 4.9 is JetPack 4, 5.10 is 5, 5.15 is 6, 6.8 is 7.
    """
    kernels = {(4, 9): 4, (5, 10): 5, (5, 15): 6, (6, 8): 7}
    release = parse_version(found.system.release)
    return kernels.get((release[0], release[1])) if len(release) > 1 else None
