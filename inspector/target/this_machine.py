"""What torch finds on this machine, asked in a child process: importing torch takes seconds and 300 MB."""

from __future__ import annotations

import subprocess
import sys

from inspector.errors import CheckpointError, ContainerError
from inspector.progress import Progress
from inspector.target.profile import Profile
from inspector.target.profile_file import build_profile, parse_evidence

_TIMEOUT_S = 120.0
_POLL_S = 0.1


def probe_this_machine(progress: Progress) -> Profile:
    """Ask the installed torch about this machine; where it is missing or broken, the profile says so.

    Raises:
        CheckpointError: There was no answer.
        CancelledError: The work was cancelled.
    """
    try:
        evidence = parse_evidence(_ask(progress).encode())
    except (OSError, ContainerError) as error:
        remedy = "see whether python -c 'import torch' works"
        raise CheckpointError("torch gave no answer about this machine", remedy=remedy) from error
    return build_profile(evidence, id="this", name="this machine")


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
