"""The GPU doctor: why torch can or cannot use a GPU on a machine, with the evidence and the remedy.

Each cause is a rule over what the probe found; a new one goes into the table of its kind. A machine that is
well gets a statement that says so, because "nothing to say" would leave the asker in doubt.
"""

from __future__ import annotations

import re

from inspector.doctor.builds import INDEX, install_steps, jetpack_of
from inspector.doctor.devices import DEVICE_RULES
from inspector.doctor.diagnosis import CERTAINTIES, Certainty, Diagnosis, MachineRule
from inspector.doctor.drivers import cuda_version, driver_suffices, oldest_driver, parse_version
from inspector.doctor.other_makers import OTHER_RULES
from inspector.doctor.symptoms import (
    brings_libraries,
    capabilities,
    driver_cuda,
    driver_line,
    driver_version,
    gpus_line,
    has_driver,
    is_jetson,
    is_native_linux,
    is_windows,
    may_have_card,
    quoted,
    said,
    torch_line,
    wants_cuda,
)
from inspector.model.findings import SEVERITIES
from inspector.pythons import OPTION
from inspector.records import dataclass
from inspector.target.evidence import Evidence
from inspector.target.profile import Profile
from inspector.units import format_nbytes

# Rules of the GPU doctor about torch's build and NVIDIA's driver.

_UBUNTU = ("sudo ubuntu-drivers install   # on Ubuntu",)
_PAGE = "https://www.nvidia.com/Download/index.aspx"
_DOWNLOAD = f"install the newest driver for your GPU from {_PAGE}"
# GPUs older than a capability, and the last branch of drivers for them:
# https://docs.nvidia.com/datacenter/tesla/drivers/ and https://nvidia.custhelp.com/app/answers/detail/a_id/3142
_LAST_DRIVERS = (((3, 0), 390), ((5, 0), 470), ((7, 5), 580))


def _not_the_file(found: Evidence) -> str:
    """Return what people suspect instead, and wrongly so."""
    said = " A checkpoint can neither cause nor fix this: a state dict contains no CUDA version."
    if not brings_libraries(found):
        return said
    return (
        f"{said} The CUDA toolkit (nvcc --version) plays no part either, because torch ships the CUDA "
        "libraries it was built for."
    )


def cpu_only_build(found: Evidence) -> Diagnosis | None:
    """A torch without CUDA beside NVIDIA's GPU: pip's choice on Windows, conda's where it saw no driver."""
    torch = found.torch
    if torch.state != "imported" or torch.cuda or torch.hip or torch.xpu or torch.xpu_available:
        return None
    if not (has_driver(found) or "nvidia" in found.cards) or found.system.os == "Darwin" or is_jetson(found):
        return None
    conda = [
        f"conda installed {name[6:]} {', '.join(versions)}"
        for name, versions in found.packages
        if name[:6] == "conda:"
    ]
    driver = () if has_driver(found) else (_DOWNLOAD,)
    is_seen = may_have_card(found)
    return Diagnosis(
        id="cpu-only-torch",
        severity="error" if is_seen else "warning",
        title="This torch was built without CUDA",
        explanation=("There is an NVIDIA GPU" if is_seen else "An NVIDIA driver is installed")
        + ", but the installed torch has no GPU code at all, so torch.cuda.is_available() is False whatever "
        "the driver. Install a CUDA build instead." + _not_the_file(found),
        evidence=(torch_line(found), driver_line(found), gpus_line(found), *conda),
        steps=(*driver, *install_steps(found)),
        certainty="likely" if not has_driver(found) else "certain" if is_seen else "possible",
    )


def no_driver(found: Evidence) -> Diagnosis | None:
    """A card without a driver."""
    inside = found.system.container or found.system.wsl or is_jetson(found)  # others know more of these
    if not wants_cuda(found) or has_driver(found) or inside:
        return None
    is_seen = "nvidia" in found.cards
    if not is_seen and (found.system.os == "Linux" or found.cards):
        return None  # the bus was read: there is no such card
    return Diagnosis(
        id="no-driver",
        severity="error",
        title="The NVIDIA driver is not installed",
        explanation="torch is built for CUDA, but it talks to the GPU through NVIDIA's driver, which is "
        "missing here." + _not_the_file(found),
        evidence=(
            torch_line(found),
            "an NVIDIA card is in this machine" if is_seen else "no card is listed",
            "neither nvidia-smi nor the driver's library was found",
            *quoted(said(found, "NVIDIA driver")),
        ),
        steps=(*_UBUNTU, _DOWNLOAD) if found.system.os == "Linux" else (_DOWNLOAD,),
        certainty="certain" if is_seen else "possible",
    )


def driver_not_running(found: Evidence) -> Diagnosis | None:
    """A driver whose kernel module is not loaded: after a new kernel, with Secure Boot, beside nouveau."""
    if not wants_cuda(found) or is_jetson(found):
        return None
    complaint = said(found, "couldn't communicate with the NVIDIA driver")
    is_unloaded = is_native_linux(found) and found.nvidia.libcuda.found and not found.nvidia.kernel_module
    is_unloaded = is_unloaded and may_have_card(found)
    if complaint is None and not is_unloaded:
        return None
    return Diagnosis(
        id="driver-not-running",
        severity="error",
        title="The NVIDIA driver is installed, but not running",
        explanation="The driver's programs are here, but its kernel module is not loaded. That happens "
        "after a kernel update, when Secure Boot rejects the module, or when the open-source driver "
        "nouveau has claimed the card." + _not_the_file(found),
        evidence=(torch_line(found), "the kernel has no NVIDIA module loaded", *quoted(complaint)),
        steps=(
            "sudo modprobe nvidia",
            "reboot; if that does not help, reinstall the driver",
            "mokutil --sb-state   # with Secure Boot on, the module must be signed",
        ),
        certainty="certain" if is_unloaded else "likely",
    )


def driver_too_old(found: Evidence) -> Diagnosis | None:
    """A driver older than the CUDA that torch was built for."""
    cuda = cuda_version(found.torch.cuda)
    if not wants_cuda(found) or cuda is None or is_jetson(found):
        return None
    complaint = said(found, "driver on your system is too old")
    driver, windows = driver_version(found), is_windows(found)
    if complaint is None and (driver is None or driver_suffices(driver, cuda, windows=windows) is not False):
        return None
    install = [f"or: {step}" for step in install_steps(found)] if driver_cuda(found) is not None else []
    return Diagnosis(
        id="driver-too-old",
        severity="error",
        title="The NVIDIA driver is too old for this torch",
        explanation=f"torch was built for CUDA {found.torch.cuda}, which this driver does not support yet. "
        "Either update the driver, or install a torch built for an older CUDA." + _not_the_file(found),
        evidence=(torch_line(found), driver_line(found), *quoted(complaint)),
        steps=(_update(found, oldest_driver(cuda, windows=windows)), *install),
        certainty="certain" if complaint else "likely",
    )


def _update(found: Evidence, oldest: str | None) -> str:
    """Return how the driver is updated, or that there is no newer one for the GPU."""
    weakest = min(capabilities(found), default=None)
    last = next((branch for before, branch in _LAST_DRIVERS if weakest and weakest < before), None)
    if last is not None and parse_version(oldest)[:1] > (last,):
        return f"a newer driver does not help: {last} is the last branch for this GPU"
    where = " in Windows" if found.system.wsl else " of the host" if found.system.container else ""
    update = f"update the NVIDIA driver{where}"
    return f"{update} to {oldest} or newer: {_PAGE}" if oldest else f"{update}: {_PAGE}"


def driver_mismatch(found: Evidence) -> Diagnosis | None:
    """A driver that was updated while its old part was running."""
    complaint = said(found, r"Driver/library version mismatch|Error 803|unsupported display driver")
    module = found.nvidia.kernel_module
    if complaint is None or found.torch.cuda_available:
        return None
    where = ("restart the container: the host's driver was updated",) if found.system.container else ()
    return Diagnosis(
        id="driver-mismatch",
        severity="error",
        title="Two versions of the NVIDIA driver are mixed",
        explanation="The driver's library has another version than the loaded kernel module. Most often "
        "the system updated the driver in the background; a restart loads the new one."
        + _not_the_file(found),
        evidence=(
            driver_line(found),
            f"the kernel runs version {module}" if module else "the kernel's version is not known",
            *quoted(complaint),
        ),
        steps=(*where, "sudo reboot"),
    )


NVIDIA_RULES: tuple[MachineRule, ...] = (
    cpu_only_build,
    driver_mismatch,
    driver_not_running,
    driver_too_old,
    no_driver,
)


# Rules of the GPU doctor about what CUDA itself complains of: a table of its messages.
#
# The texts are those of `cudaGetErrorString`, as torch hands them on (c10/cuda/CUDAFunctions.cpp); rows
# name a report of a user who met them.


@dataclass(frozen=True, slots=True, kw_only=True)
class Complaint:
    """One message of CUDA's, and what is behind it."""

    id: str
    pattern: str
    title: str
    explanation: str
    steps: tuple[str, ...]
    certainty: Certainty = "certain"


COMPLAINTS: tuple[Complaint, ...] = (
    Complaint(  # https://github.com/pytorch/pytorch/issues/35710
        id="fabric-manager",
        pattern=r"Error 802|system not yet initialized",
        title="The GPUs wait for NVIDIA's fabric manager",
        explanation="GPUs connected by NVSwitch (HGX and DGX with A100, H100, H200, B200) are unavailable "
        "until the service nvidia-fabricmanager has set up their links. Its version must be exactly that of "
        "the driver.",
        steps=(
            "sudo systemctl enable --now nvidia-fabricmanager",
            "systemctl status nvidia-fabricmanager",
            "sudo apt install nvidia-fabricmanager-NNN   # if it is missing; NNN: the driver's major version",
        ),
    ),
    Complaint(  # https://github.com/pytorch/pytorch/issues/40671
        id="forward-compatibility",
        pattern=r"Error 804|forward compatibility was attempted on non supported HW",
        title="A compatibility package for data center GPUs gets in the way",
        explanation="The container (or LD_LIBRARY_PATH) contains NVIDIA's cuda-compat libraries, which let "
        "an old driver run a newer CUDA. They work only on data center GPUs and some RTX cards for servers, "
        "not on GeForce cards.",
        steps=(
            "update the NVIDIA driver of the host: the package is not needed then",
            "or use an image for an older CUDA, or remove the package: apt remove 'cuda-compat-*'",
            "echo $LD_LIBRARY_PATH   # no .../compat folder should be in it",
        ),
    ),
    Complaint(  # https://github.com/pytorch/pytorch/issues/159954
        id="cuda-unknown-error",
        pattern=r"CUDA unknown error|Error 999|unknown error",
        title="The driver stopped answering",
        explanation="CUDA gave no reason. Most often the kernel module nvidia_uvm broke while the computer "
        "was suspended, or the driver was updated and not reloaded yet. Sometimes a program changed "
        "CUDA_VISIBLE_DEVICES too late.",
        steps=(
            "sudo modprobe -r nvidia_uvm && sudo modprobe nvidia_uvm",
            "sudo reboot   # if that does not help",
        ),
        certainty="likely",
    ),
    Complaint(  # https://github.com/pytorch/pytorch/issues/98885
        id="cuda-initialization",
        pattern=r"CUDA driver initialization failed|Error 3\b|Error 101\b|Error 100\b",
        title="The driver finds no GPU that it can initialize",
        explanation="The driver's library is there, but it cannot initialize a GPU. The GPU may have fallen "
        "off the bus, be passed to a virtual machine, be in MIG mode without any instance, or belong to "
        "another driver.",
        steps=("nvidia-smi   # does it list the GPU?", "sudo dmesg | grep -i -E 'nvrm|xid'", "sudo reboot"),
        certainty="possible",
    ),
    Complaint(
        id="gpu-busy",
        pattern=r"devices are busy or unavailable|Error 46\b|out of memory",
        title="Another program is using the GPU",
        explanation="The GPU's memory is full, or it allows only one program at a time (exclusive mode).",
        steps=(
            "nvidia-smi   # lists the programs on the GPU",
            "sudo nvidia-smi -c DEFAULT   # ends exclusive mode",
        ),
        certainty="likely",
    ),
)


def complained(found: Evidence) -> Diagnosis | None:
    """Explain the first known message."""
    if found.torch.cuda_available:
        return None
    for row in COMPLAINTS:
        text = said(found, row.pattern)
        if text is not None:
            return Diagnosis(
                id=row.id,
                severity="error",
                title=row.title,
                explanation=row.explanation,
                evidence=(torch_line(found), driver_line(found), f"it said: {text}"),
                steps=row.steps,
                certainty=row.certainty,
            )
    return None


def slices(found: Evidence) -> Diagnosis | None:
    """GPUs cut into slices (MIG), of which a program gets one."""
    cut = [gpu.name for gpu in found.nvidia.smi.gpus if gpu.mig == "Enabled"]
    if not cut or found.torch.cuda is None:
        return None
    is_stopped = wants_cuda(found)
    return Diagnosis(
        id="mig-slices",
        severity="error" if is_stopped else "note",
        title="The GPU is in MIG mode",
        explanation="A program sees one MIG instance, as cuda:0, however many there are. Where no instance "
        "was created, or none is selected, it sees no GPU. "
        "https://docs.nvidia.com/datacenter/tesla/mig-user-guide/",
        evidence=(gpus_line(found), f"MIG is on for {', '.join(cut[:8])}"),
        steps=(
            "nvidia-smi -L   # lists the instances as MIG-...",
            "export CUDA_VISIBLE_DEVICES=MIG-...   # the one to use; then restart Python",
        ),
        certainty="likely" if is_stopped else "certain",
    )


ERROR_RULES: tuple[MachineRule, ...] = (complained, slices)


# Rules of the GPU doctor about NVIDIA's Jetson boards.
#
# Their GPU is on no bus, their driver is part of the system, they often have neither nvidia-smi nor
# /dev/nvidia0, and torch needs a build for their chip: https://developer.nvidia.com/embedded/jetpack. The
# rules about other NVIDIA GPUs leave them alone.


def jetson_cpu_torch(found: Evidence) -> Diagnosis | None:
    """A torch without CUDA: pip's choice on Arm."""
    torch = found.torch
    if not is_jetson(found) or torch.state != "imported" or torch.cuda is not None:
        return None
    return Diagnosis(
        id="jetson-cpu-torch",
        severity="error",
        title="This torch was built without CUDA",
        explanation="On Arm, pip install torch without an index can get a build without GPU code, and builds "
        "for Arm servers have none for most Jetsons. NVIDIA publishes builds for each JetPack; a checkpoint "
        "has no part in this.",
        evidence=(torch_line(found), _board(found)),
        steps=install_steps(found),
    )


def jetson_out_of_reach(found: Evidence) -> Diagnosis | None:
    """A torch with CUDA that finds no GPU on a Jetson."""
    if not is_jetson(found) or not wants_cuda(found):
        return None
    wanted, offered = cuda_version(found.torch.cuda), driver_cuda(found)
    if wanted is not None and offered is not None and offered[0] < wanted[0]:
        return _too_old(found, offered)
    closed = [node.path for node in found.nvidia.nodes if not node.usable]
    if closed:
        return Diagnosis(
            id="jetson-no-permission",
            severity="error",
            title="No permission to use the GPU's device files",
            explanation="On a Jetson only the groups video and render may use the GPU, also inside of a "
            "container.",
            evidence=(torch_line(found), _board(found), f"not usable: {', '.join(closed[:8])}"),
            steps=("sudo usermod -aG video,render $USER   # then log in again",),
        )
    container = ("docker run --runtime nvidia ...   # on a Jetson, --gpus all is not enough",)
    return Diagnosis(
        id="jetson-no-gpu",
        severity="error",
        title="torch does not find the Jetson's GPU",
        explanation="A build of torch works with one JetPack only, and a container has to be started with "
        "NVIDIA's runtime and made for the JetPack of its host.",
        evidence=(torch_line(found), _board(found), *quoted("; ".join(found.torch.cuda_messages))),
        steps=(*(container if found.system.container else ()), *install_steps(found)),
        certainty="likely",
    )


def _too_old(found: Evidence, offered: tuple[int, int]) -> Diagnosis:
    return Diagnosis(
        id="jetson-jetpack-too-old",
        severity="error",
        title="The JetPack is too old for this torch",
        explanation=f"torch was built for CUDA {found.torch.cuda}, and the driver of this JetPack supports "
        f"CUDA up to {offered[0]}.{offered[1]}. It is part of the system: a Jetson gets a newer one only "
        "with a newer JetPack.",
        evidence=(torch_line(found), _board(found)),
        steps=(*install_steps(found), "or install a newer JetPack, if there is one for this board"),
    )


def _board(found: Evidence) -> str:
    jetpack = jetpack_of(found)
    named = "" if jetpack is None else f", JetPack {jetpack}"
    return f"a Jetson: kernel {found.system.release}{named}"


JETSON_RULES: tuple[MachineRule, ...] = (jetson_cpu_torch, jetson_out_of_reach)


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
