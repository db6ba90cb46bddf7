"""What torch finds on this machine, asked in a child process: importing torch takes seconds and 300 MB."""

from __future__ import annotations

from inspector.child import ask_child
from inspector.errors import CheckpointError, ContainerError
from inspector.progress import Progress
from inspector.resources import PROBE, resource_path
from inspector.target.machine.profile import Profile
from inspector.target.machine.profile_file import build_profile, parse_evidence

_TIMEOUT_S = 120.0


def probe_this_machine(progress: Progress) -> Profile:
    """Ask the installed torch about this machine; where it is missing or broken, the profile says so.

    Raises:
        CheckpointError: There was no answer.
        CancelledError: The work was cancelled.
    """
    try:
        said = ask_child(resource_path(PROBE), timeout_s=_TIMEOUT_S, progress=progress)
        evidence = parse_evidence(said.encode())
    except (OSError, ContainerError) as error:
        remedy = "see whether python -c 'import torch' works"
        raise CheckpointError("torch gave no answer about this machine", remedy=remedy) from error
    return build_profile(evidence, id="this", name="this machine")
