"""What torch finds on this machine, asked in a child process: in the Python that counts."""

from __future__ import annotations

from inspector.child import Worker, worker_script
from inspector.errors import CheckpointError, ContainerError, WorkerError
from inspector.progress import Progress
from inspector.pythons import choose_python
from inspector.records import replace
from inspector.resources import PROBE, resource_path
from inspector.target.machine.profile import Profile
from inspector.target.machine.profile_file import build_profile, parse_evidence

_TIMEOUT_S = 120.0


def probe_this_machine(progress: Progress, python: str | None = None) -> Profile:
    """Ask the installed torch about this machine; where it is missing or broken, the profile says so.

    Args:
        progress: Asked for cancellation.
        python: What names the Python whose torch is asked; None for the one that counts.
    """
    chosen = choose_python(python, progress)
    head = {"script": str(resource_path(PROBE))}
    try:
        with Worker(python=chosen.path) as worker:
            answer = worker.ask(worker_script("probe"), head, progress=progress, timeout_s=_TIMEOUT_S)
        evidence = parse_evidence(answer.block)
    except (WorkerError, ContainerError) as error:
        what, remedy = "torch gave no answer about this machine", "see whether python -c 'import torch' works"
        raise CheckpointError(what, where=chosen.path, remedy=remedy) from error
    return replace(build_profile(evidence, id="this", name="this machine"), python=chosen)
