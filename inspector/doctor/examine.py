"""The GPU doctor: why torch can or cannot use a GPU on a machine, with the evidence and the remedy.

Each cause is a rule over what the probe found; a new one goes into the table of its kind. A machine that is
well gets a statement that says so, because "nothing to say" would leave the asker in doubt.
"""

from __future__ import annotations

import re

from inspector.doctor.builds import INDEX, install_steps
from inspector.doctor.devices import DEVICE_RULES
from inspector.doctor.diagnosis import CERTAINTIES, Diagnosis, MachineRule
from inspector.doctor.drivers import cuda_version, parse_version
from inspector.doctor.jetson import JETSON_RULES
from inspector.doctor.messages import ERROR_RULES
from inspector.doctor.nvidia import NVIDIA_RULES
from inspector.doctor.other_makers import OTHER_RULES
from inspector.doctor.symptoms import (
    brings_libraries,
    driver_line,
    gpus_line,
    has_driver,
    is_jetson,
    may_have_card,
    quoted,
    torch_line,
    wants_cuda,
)
from inspector.model.findings import SEVERITIES
from inspector.pythons import OPTION
from inspector.target.evidence import Evidence
from inspector.target.profile import Profile
from inspector.units import format_nbytes

__all__ = ["Diagnosis", "examine"]

_NEWEST_PYTHON, _NEWEST_TEXT = (3, 14), "3.14"
_VERSION = re.compile(r"([0-9][0-9a-z.]{0,30})(?:\+((?:cu|rocm|xpu|cpu)[0-9.]{0,10}))?")


def examine(profile: Profile) -> tuple[Diagnosis, ...]:
    """Return all that is known of why a machine can or cannot use its GPUs, worst first, then surest first.

    A machine that was not probed (a preset) has nothing to be examined.
    """
    if profile.evidence is None:
        return ()
    found = profile.evidence
    diagnoses = [diagnosis for rule in RULES if (diagnosis := rule(found)) is not None]
    if not any(diagnosis.severity == "error" for diagnosis in diagnoses):
        diagnoses.insert(0, _summary(profile, found))
    return tuple(sorted(diagnoses, key=_rank))


def _rank(diagnosis: Diagnosis) -> tuple[int, int]:
    return SEVERITIES.index(diagnosis.severity), CERTAINTIES.index(diagnosis.certainty)


def _summary(profile: Profile, found: Evidence) -> Diagnosis:
    """Return how things are where nothing is known to be broken."""
    if profile.gpus or len(profile.devices) > 1 or found.torch.hpu:
        return _well(profile, found)
    if wants_cuda(found) and has_driver(found) and may_have_card(found):
        return _unexplained(found)
    return _no_gpu(found)


def _well(profile: Profile, found: Evidence) -> Diagnosis:
    named = [
        f"{gpu.device}: {gpu.name or 'no name'}"
        + ("" if gpu.memory_nbytes is None else f", {format_nbytes(gpu.memory_nbytes)}")
        for gpu in profile.gpus[:16]
    ]
    devices = ", ".join(device for device in profile.devices[:16] if device != "cpu")
    return Diagnosis(
        id="gpu-works",
        severity="note",
        title="torch can use the GPU",
        explanation=f"torch finds {devices or 'a Gaudi accelerator (hpu)'} and has code compiled for it.",
        evidence=(torch_line(found), *named),
    )


def _unexplained(found: Evidence) -> Diagnosis:
    return Diagnosis(
        id="cuda-unexplained",
        severity="error",
        title="torch finds no GPU, and the cause is not known",
        explanation="torch is built for CUDA and a driver is installed, but torch.cuda.is_available() is "
        "False, and none of the known causes applies.",
        evidence=(
            torch_line(found),
            driver_line(found),
            gpus_line(found),
            *quoted("; ".join(found.torch.cuda_messages)),
            *quoted(found.nvidia.smi.error),
        ),
        steps=("nvidia-smi", "python -m torch.utils.collect_env", "sudo reboot"),
        certainty="possible",
    )


def _no_gpu(found: Evidence) -> Diagnosis:
    inside = " A container sees its host's GPU only when it is started with it (docker run --gpus all)."
    return Diagnosis(
        id="no-gpu",
        severity="note",
        title="No GPU for torch was found here",
        explanation="Nothing is broken: torch computes on the CPU. A checkpoint that was saved on a GPU "
        "loads with torch.load(path, map_location='cpu'), or from a remapped copy."
        + (inside if found.system.container else ""),
        evidence=(torch_line(found),),
        certainty="likely" if found.system.container else "certain",
    )


def torch_missing(found: Evidence) -> Diagnosis | None:
    """No torch in this Python: often it is in another environment."""
    if found.torch.state != "missing":
        return None
    return Diagnosis(
        id="torch-missing",
        severity="error",
        title="torch is not installed for this Python",
        explanation="It may be installed in another environment: probe with the Python that runs your "
        "program." + _no_wheel(found),
        evidence=(f"Python {found.python.version}", *quoted(found.torch.error)),
        steps=(
            f"activate the environment of your program, or name its Python with {OPTION}",
            *_first_install(found),
        ),
    )


def _no_wheel(found: Evidence) -> str:
    """Return why pip finds no torch for this Python; empty where it does.

    https://github.com/pytorch/pytorch/blob/main/RELEASE.md#release-compatibility-matrix
    """
    python = found.python
    if python.bits == 32:
        return " There are no builds of torch for a Python of 32 bits."
    if python.implementation not in {"", "CPython"}:
        return f" There are no builds of torch for {python.implementation}."
    if parse_version(python.version)[:2] > _NEWEST_PYTHON:
        return f" This Python may be too new for pip to find a torch: 2.14 has builds up to {_NEWEST_TEXT}."
    return ""


def _first_install(found: Evidence) -> tuple[str, ...]:
    """Return what installs a torch: from PyPI, Windows and Arm can get one without GPU code."""
    is_nvidia = "nvidia" in found.cards or bool(found.nvidia.smi.gpus) or is_jetson(found)
    steps = install_steps(found) if is_nvidia else ("pip install torch",)
    return tuple(step.replace("--force-reinstall ", "") for step in steps)


def torch_broken(found: Evidence) -> Diagnosis | None:
    """A torch that cannot be imported."""
    how = {
        "failed": "import torch raises an error",
        "crashed": "import torch crashes Python",
        "timeout": "import torch does not finish",
    }.get(found.torch.state)
    if how is None:
        return None
    return Diagnosis(
        id="torch-broken",
        severity="error",
        title="torch does not start",
        explanation=f"{how}. Its files are damaged or from different versions, a library it needs is "
        "missing (on Windows often the Visual C++ runtime), or another package's libraries are found "
        "first.",
        evidence=(f"Python {found.python.version}", *quoted(found.torch.error)),
        steps=(
            "python -c 'import torch'",
            *_reinstall(found),
            *(("https://aka.ms/vs/17/release/vc_redist.x64.exe",) if found.system.os == "Windows" else ()),
        ),
    )


def _reinstall(found: Evidence) -> tuple[str, ...]:
    """Return what installs the same torch again: from PyPI, Windows would get one without CUDA."""
    installed = dict(found.packages)
    if "conda:pytorch" in installed:
        return ("conda install --force-reinstall pytorch",)
    # A profile is a file from elsewhere, and this line will be pasted into a shell.
    version = _VERSION.fullmatch((*installed.get("torch", ()), "")[0])
    if version is None:
        return ("pip install --force-reinstall torch",)
    index = f" --index-url {INDEX}{version[2]}" if version[2] else ""
    return (f"pip install --force-reinstall torch=={version[1]}{index}",)


def several_torches(found: Evidence) -> Diagnosis | None:
    """More than one torch in the same environment: files of one beside libraries of the other."""
    installed = [
        (name, version)
        for name, versions in found.packages
        if name in {"torch", "conda:pytorch"}
        for version in versions
    ]
    releases = {version.partition(" ")[0].partition("+")[0] for _, version in installed}
    if len(installed) < 2:
        return None
    if len(installed) == 2 and len(releases) == 1 and len({name for name, _ in installed}) == 2:
        return None  # conda's package tells pip of itself
    return Diagnosis(
        id="several-torches",
        severity="warning",
        title="torch is installed more than once",
        explanation="Which one Python imports depends on the order of sys.path, and a mixture of both fails "
        "in odd ways. Remove all of them and install one.",
        evidence=tuple(f"{name.replace(':', ': ')} {version}" for name, version in installed[:8]),
        steps=(
            "pip uninstall --yes torch   # repeat until none is found",
            *(("conda remove pytorch",) if any(name == "conda:pytorch" for name, _ in installed) else ()),
            "install it once",
        ),
        certainty="likely",
    )


def toolkit_differs(found: Evidence) -> Diagnosis | None:
    """A CUDA toolkit of another version than torch's: harmless, and often taken for the cause."""
    cuda = cuda_version(found.torch.cuda)
    installed = sorted({*found.toolkits, *((found.nvcc,) if found.nvcc else ())})
    if cuda is None or all(cuda_version(version) == cuda for version in installed):
        return None
    if not brings_libraries(found):
        return None
    return Diagnosis(
        id="toolkit-does-not-matter",
        severity="note",
        title="The CUDA toolkit has another version, which does not matter",
        explanation="torch ships the CUDA libraries it was built for and does not use the toolkit. nvcc "
        "--version matters when you compile extensions, not when you load a checkpoint: that only needs a "
        "new enough driver.",
        evidence=(f"toolkits: {', '.join(installed[:8])}", torch_line(found)),
    )


RULES: tuple[MachineRule, ...] = (
    torch_missing,
    torch_broken,
    *NVIDIA_RULES,
    *JETSON_RULES,
    *DEVICE_RULES,
    *ERROR_RULES,
    *OTHER_RULES,
    several_torches,
    toolkit_differs,
)
