"""Asking a child process of this very Python, which may use torch: `python -m inspector.worker...`.

Importing torch takes seconds and 300 MB and may end the process that does it, so nobody does it here.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence

from inspector.progress import Progress

_POLL_S = 0.1


def ask_child(
    module: str, *arguments: str, timeout_s: float, progress: Progress, pass_fds: Sequence[int] = ()
) -> str:
    """Run a module in a child process and give what it prints; an empty text when it takes too long.

    Args:
        module: What to run.
        arguments: What to tell it.
        timeout_s: How long it may take.
        progress: Asked for cancellation, which ends the child.
        pass_fds: Open files that it inherits.

    Raises:
        OSError: It cannot be started.
        CancelledError: The work was cancelled.
    """
    # The command is made of this interpreter, a fixed name and arguments that it takes for no options.
    with subprocess.Popen(  # noqa: S603
        [sys.executable, "-m", module, *arguments],
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
