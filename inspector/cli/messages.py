"""What the command line says when something goes wrong: one line on stderr, and an exit code."""

from __future__ import annotations

import sys

from inspector.errors import CheckpointError, ExportError, PlanError
from inspector.units import escape_text

PROGRAM = "checkpoint-inspector"
DONE, USAGE, UNREADABLE, UNWRITTEN, INTERRUPTED = 0, 2, 3, 4, 130


def complain(text: str) -> None:
    """Write one line to stderr; what a file made the text contain cannot break it into several."""
    sys.stderr.write(f"{PROGRAM}: error: {escape_text(text)}\n")


def exit_code(error: CheckpointError) -> int:
    """Give the exit code of an error, as the contract fixes it."""
    if isinstance(error, PlanError):
        return USAGE
    return UNWRITTEN if isinstance(error, ExportError) else UNREADABLE
