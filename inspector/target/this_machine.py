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
_MOST_DEVICES = 1024


def probe_this_machine(progress: Progress) -> Profile:
    """Ask the installed torch about this machine.

    Raises:
        CheckpointError: torch is not installed, or gave no answer.
        CancelledError: The work was cancelled.
    """
    try:
        said = _ask(progress).splitlines()
        return profile_of(json.loads(said[-1]))  # what torch and its plugins say before is none of ours
    except (OSError, ValueError, LookupError, TypeError) as error:
        remedy = "see whether python -c 'import torch' works"
        raise CheckpointError("torch gave no answer about this machine", remedy=remedy) from error


def _ask(progress: Progress) -> str:
    command = [sys.executable, "-m", "inspector.worker.probe"]
    # The command is made of this interpreter and a fixed name.
    with subprocess.Popen(  # noqa: S603
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as child:
        try:
            return _wait(child, progress)
        finally:
            child.kill()


def _wait(child: subprocess.Popen[str], progress: Progress) -> str:
    waited_s = 0.0
    while waited_s < _TIMEOUT_S:
        progress.advance()
        try:
            return child.communicate(timeout=_POLL_S)[0]
        except subprocess.TimeoutExpired:
            waited_s += _POLL_S
    return ""


def profile_of(found: dict[str, object]) -> Profile:
    """Read the probe's answer.

    Raises:
        ValueError, KeyError, TypeError: It is none.
    """
    cuda, xpu = _count(found["cuda"]), _count(found["xpu"])
    mps, version = found["mps"] is True, str(found["torch"])
    what = _names(cuda, xpu, mps=mps)
    return Profile(
        id="this", label=f"this machine ({what})", cuda=cuda, xpu=xpu, mps=mps, torch_version=version
    )


def _count(said: object) -> int:
    if not isinstance(said, int) or not 0 <= said <= _MOST_DEVICES:
        raise ValueError("no number of devices")
    return said


def _names(cuda: int, xpu: int, *, mps: bool) -> str:
    parts = []
    if cuda:
        parts.append("1 CUDA GPU" if cuda == 1 else f"{cuda} CUDA GPUs")
    if xpu:
        parts.append("1 Intel GPU" if xpu == 1 else f"{xpu} Intel GPUs")
    if mps:
        parts.append("Apple GPU")
    return ", ".join(parts) or "CPU only"
