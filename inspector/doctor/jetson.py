"""Rules of the GPU doctor about NVIDIA's Jetson boards.

Their GPU is on no bus, their driver is part of the system, they often have neither nvidia-smi nor
/dev/nvidia0, and torch needs a build for their chip: https://developer.nvidia.com/embedded/jetpack. The rules
about other NVIDIA GPUs leave them alone.
"""

from __future__ import annotations

from inspector.doctor.builds import install_steps, jetpack_of
from inspector.doctor.diagnosis import Diagnosis, MachineRule
from inspector.doctor.drivers import cuda_version
from inspector.doctor.symptoms import driver_cuda, is_jetson, quoted, torch_line, wants_cuda
from inspector.target.evidence import Evidence


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
