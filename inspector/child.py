"""Starting other programs: this very Python for what needs torch, and the tools of the system.

Importing torch takes seconds and 300 MB and may end the process that does it, so nobody does it here.

A checkpoint comes in a folder that somebody else filled, and the program is often started in it. Python looks
for modules in the working directory, where a `json.py` or `torch.py` would run; entries of `PATH` and of the
linker's paths may be relative; Windows looks for programs there first. So every child works in a folder that
is as trusted as the interpreter, is started by an absolute path, and imports nothing from beside its script.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from inspector.progress import Progress

SAFE_FOLDER = sys.prefix
"""Where children work: what lies in there belongs to the Python that runs them."""

_WORKER = Path(__file__).resolve().with_name("worker")
_POLL_S = 0.1


def worker_script(name: str) -> Path:
    """Return the path of a script in `inspector/worker`."""
    return _WORKER / f"{name}.py"


def python_command(script: Path, *arguments: str) -> list[str]:
    """Return the command line that runs a script of ours; `-P` keeps folders of no installation off its path.

    A script and not `-m`, which would look for `inspector` wherever the child looks for modules.
    """
    return [sys.executable, "-P", os.fspath(script), *arguments]


def find_program(name: str) -> str | None:
    """Return the path of an installed program; None where there is none.

    Relative entries of `PATH` mean the folder of the checkpoint and are passed over, and so is the working
    directory, which Windows adds by itself.
    """
    for folder in os.environ.get("PATH", os.defpath).split(os.pathsep):
        if os.path.isabs(folder) and (found := shutil.which(os.path.join(folder, name))):  # noqa: PTH117, PTH118
            return found
    return None


def ask_child(
    script: Path, *arguments: str, timeout_s: float, progress: Progress, pass_fds: Sequence[int] = ()
) -> str:
    """Run a script in a child process and return what it prints; an empty text when it takes too long.

    Args:
        script: What to run.
        arguments: What to tell it; a path must be absolute.
        timeout_s: How long it may take.
        progress: Asked for cancellation, which ends the child.
        pass_fds: Open files that it inherits.

    Raises:
        OSError: It cannot be started.
        CancelledError: The work was cancelled.
    """
    # The command is made of this interpreter, a fixed script and arguments that it takes for no options.
    with subprocess.Popen(  # noqa: S603
        python_command(script, *arguments),
        cwd=SAFE_FOLDER,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        pass_fds=pass_fds,
    ) as child:
        try:
            return _wait(child, timeout_s, progress)
        finally:
            child.kill()


def _wait(child: subprocess.Popen[str], timeout_s: float, progress: Progress) -> str:
    waited_s = 0.0
    while waited_s < timeout_s:
        progress.advance()
        try:
            return child.communicate(timeout=_POLL_S)[0]
        except subprocess.TimeoutExpired:
            waited_s += _POLL_S
    return ""
