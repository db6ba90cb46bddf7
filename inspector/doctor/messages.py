"""Rules of the GPU doctor about what CUDA itself complains of: a table of its messages.

The texts are those of `cudaGetErrorString`, as torch hands them on (c10/cuda/CUDAFunctions.cpp); rows name a
report of a user who met them.
"""

from __future__ import annotations

from inspector.doctor.diagnosis import Certainty, Diagnosis, MachineRule
from inspector.doctor.symptoms import driver_line, gpus_line, said, torch_line, wants_cuda
from inspector.records import dataclass
from inspector.target.evidence import Evidence


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
