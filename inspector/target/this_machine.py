"""What torch finds on this machine, asked in a child process: importing torch takes seconds and 300 MB."""

from __future__ import annotations

import json
import subprocess
import sys

from inspector.errors import CheckpointError
from inspector.progress import Progress
from inspector.target.profile import Profile

_TIMEOUT_S = 120.0
_POLL_S = 0.1


def probe_this_machine(progress: Progress) -> Profile:
    """Ask the installed torch about this machine.

    Raises:
        CheckpointError: torch is not installed, or gave no answer.
        CancelledError: The work was cancelled.
    """
    command = [sys.executable, "-m", "inspector.worker.probe"]
    # The command is made of this interpreter and a fixed name.
    with subprocess.Popen(  # noqa: S603
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as child:
        try:
            output = _wait(child, progress)
        finally:
            child.kill()
    try:
        found = json.loads(output)
        return profile_of(found)
    except (ValueError, KeyError, TypeError) as error:
        raise CheckpointError("torch gave no answer about this machine") from error


def _wait(child: subprocess.Popen[str], progress: Progress) -> str:
    waited_s = 0.0
    while waited_s < _TIMEOUT_S:
        progress.advance(0)
        try:
            return child.communicate(timeout=_POLL_S)[0]
        except subprocess.TimeoutExpired:
            waited_s += _POLL_S
    return ""


def profile_of(found: dict[str, object]) -> Profile:
    """Read the probe's answer."""
    cuda, xpu = int(str(found["cuda"])), int(str(found["xpu"]))
    mps, version = found["mps"] is True, str(found["torch"])
    what = _names(cuda, xpu, mps=mps)
    return Profile(
        id="this", label=f"this machine ({what})", cuda=cuda, xpu=xpu, mps=mps, torch_version=version
    )


def _names(cuda: int, xpu: int, *, mps: bool) -> str:
    parts = []
    if cuda:
        parts.append("1 CUDA GPU" if cuda == 1 else f"{cuda} CUDA GPUs")
    if xpu:
        parts.append("1 Intel GPU" if xpu == 1 else f"{xpu} Intel GPUs")
    if mps:
        parts.append("Apple GPU")
    return ", ".join(parts) or "CPU only"
