"""What the command line says, and the exit code that goes with it."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

from inspector.errors import CancelledError, CheckpointError, ExportError, PlanError
from inspector.units import escape_text

if TYPE_CHECKING:
    from inspector.safety.unread import Unread

PROGRAM = "checkpoint-inspector"
DONE, NEGATIVE, USAGE, UNREADABLE, UNWRITTEN, INTERRUPTED = 0, 1, 2, 3, 4, 130


def prepare_streams() -> None:
    """Make streams that take any text: a name may hold what the terminal's encoding does not know.

    A stream that was closed by the caller is None in Python; what is said there is lost, as was wished.
    """
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115, PTH123 - for good
        stream = getattr(sys, name)
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def say(text: str) -> None:
    """Write an answer to stdout.

    Raises:
        BrokenPipeError: The reader of a pipe has seen enough.
        ExportError: There is no room for it.
    """
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except OSError as error:
        # What is still in the buffer must not be tried again, and complained about, while Python ends.
        with suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):
            raise
        raise ExportError(f"the answer cannot be written: {error.strerror}") from error


def complain(text: str) -> None:
    """Write one line to stderr; what a file made the text contain cannot break it into several."""
    sys.stderr.write(f"{PROGRAM}: error: {escape_text(text)}\n")


def remark(text: str) -> None:
    """Write one line to stderr that is no error."""
    sys.stderr.write(f"{PROGRAM}: {escape_text(text)}\n")


def complain_of(error: CheckpointError, path: str | None = None) -> None:
    """Write an error to stderr, and in a line of its own what loading the file would run all the same."""
    seen = _unread(error)
    if seen is not None:
        from inspector.safety.unread import advice

        error.remedy = advice(error, seen) or None
    complain(str(error) if path in {None, error.where} else f"{error} [{path}]")
    remark_runs(error)


def remark_runs(error: CheckpointError) -> None:
    """Write to stderr what loading a file would run that could not be read, if any of it was seen."""
    seen = _unread(error)
    if seen is not None and seen.sentence:
        remark(f"{'DANGEROUS' if seen.verdict == 'dangerous' else 'NOT SAFE'}: {seen.sentence}")


def _unread(error: CheckpointError) -> Unread | None:
    if not error.programs:
        return None
    from inspector.safety.unread import judge_unread

    return judge_unread(error)


def as_checkpoint_error(error: Exception) -> CheckpointError:
    """Give any error as one that can be said in a line; a mistake of this program's is said as such.

    With `python -P -X dev -m inspector` such a mistake leaves as it is, with its traceback.
    """
    if isinstance(error, CheckpointError):
        return error
    if sys.flags.dev_mode:
        raise error
    remedy = "please report this; python -P -X dev -m inspector shows where it comes from"
    return CheckpointError(f"unexpected {type(error).__name__}: {error}", remedy=remedy)


def exit_code(error: CheckpointError) -> int:
    """Give the exit code of an error, as the contract fixes it."""
    if isinstance(error, CancelledError):
        return INTERRUPTED
    if isinstance(error, PlanError):
        return USAGE
    return UNWRITTEN if isinstance(error, ExportError) else UNREADABLE
