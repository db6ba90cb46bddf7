"""What torch finds on this machine, asked in a child process."""

from __future__ import annotations

from inspector.child import Worker, worker_script
from inspector.errors import CheckpointError, ContainerError, WorkerError
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
    head = {"script": str(resource_path(PROBE))}
    try:
        with Worker() as worker:
            answer = worker.ask(worker_script("probe"), head, progress=progress, timeout_s=_TIMEOUT_S)
        evidence = parse_evidence(answer.block)
    except (WorkerError, ContainerError) as error:
        remedy = "see whether python -c 'import torch' works"
        raise CheckpointError("torch gave no answer about this machine", remedy=remedy) from error
    return build_profile(evidence, id="this", name="this machine")
