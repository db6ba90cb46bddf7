"""What all commands share: writing to the two streams, exit codes, and ending at a signal."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from inspector.errors import CancelledError, CheckpointError, ExportError, PlanError, QueryError
from inspector.units import escape_text

if TYPE_CHECKING:
    import argparse

    from inspector.progress import Progress
    from inspector.safety.unread import Unread

PROGRAM = "checkpoint-inspector"
DONE, NEGATIVE, USAGE, UNREADABLE, UNWRITTEN, INTERRUPTED = 0, 1, 2, 3, 4, 130


bars: list[Callable[[], None]] = []
"""What takes the progress bar off the screen, while there is one: nothing is written beside it."""


class UnsaidError(ExportError):
    """An answer could not be written to stdout: nothing more is said there."""


def hide_bars() -> None:
    """Take a progress bar off the screen, so that something else can be written."""
    while bars:
        bars.pop()()


def prepare_streams() -> None:
    """Make both streams take any text: a name may hold what the terminal's encoding does not know.

    A stream that the caller closed is None in Python; what is written there is dropped, as was asked for.
    """
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115, PTH123 - for good
        stream = getattr(sys, name)
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def say(text: str) -> None:
    hide_bars()
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except OSError as error:
        # Python must not try to write the rest of the buffer again, and complain, while it exits.
        with suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):
            raise
        raise UnsaidError(f"the output cannot be written: {error.strerror}") from error


@contextmanager
def reader_may_leave() -> Iterator[None]:
    """Let the reader of a pipe leave: the exit code is part of the answer, and still tells the truth."""
    with suppress(BrokenPipeError):
        yield


def say_json(document: dict[str, Any]) -> None:
    import json

    say(json.dumps(document) + "\n")


def tell(text: str) -> None:
    """Write text to stderr as it is, where stdout takes something else.

    Where nothing can be written the exit code says it alone.
    """
    hide_bars()
    with suppress(OSError):
        sys.stderr.write(text)
        sys.stderr.flush()


def complain(text: str) -> None:
    """Write one line to stderr; what a file made the text contain cannot break it into several.

    On a terminal it is broken between words.
    """
    _write_line(f"{PROGRAM}: error: {escape_text(text)}")


def remark(text: str) -> None:
    _write_line(f"{PROGRAM}: {escape_text(text)}")


def hint(options: argparse.Namespace, text: str) -> None:
    """Write one line to stderr that nobody asked for; not with --quiet."""
    if not options.display.is_quiet:
        remark(text)


def _write_line(text: str) -> None:
    columns = _columns() if sys.stderr.isatty() else 0
    if 0 < columns < len(text):
        from inspector.cli.terminal.wrapping import wrap_message

        text = wrap_message(text, columns)
    tell(f"{text}\n")


def _columns() -> int:
    said = plain_number(os.environ.get("COLUMNS", ""))
    if said > 0:
        return said
    try:
        return os.get_terminal_size(sys.stderr.fileno()).columns
    except (OSError, ValueError):
        return 0


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
        from inspector.safety.words import LEVELS

        remark(f"{LEVELS[seen.verdict].upper()}: {seen.sentence}")


def _unread(error: CheckpointError) -> Unread | None:
    if not error.programs:
        return None
    from inspector.safety.unread import judge_unread

    return judge_unread(error)


def as_checkpoint_error(error: Exception) -> CheckpointError:
    """Return any error as one that fits on a line; a bug of this program is reported as such.

    Under `python -P -X dev -m inspector` such a bug is raised as it is, with its traceback.
    """
    if isinstance(error, CheckpointError):
        return error
    if sys.flags.dev_mode:
        raise error
    remedy = "please report this; python -P -X dev -m inspector shows where it comes from"
    return CheckpointError(f"unexpected {type(error).__name__}: {error}", remedy=remedy)


def say_failure(error: CheckpointError, path: str | None) -> None:
    from inspector.report.jsonable import error_document

    say_json(error_document(path, error))


def exit_code(error: CheckpointError) -> int:
    if isinstance(error, CancelledError):
        return INTERRUPTED
    if isinstance(error, (PlanError, QueryError)):
        return USAGE
    return UNWRITTEN if isinstance(error, ExportError) else UNREADABLE


def plain_number(text: str) -> int:
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= 6 else -1


@contextmanager
def ended_by_signals(progress: Progress) -> Iterator[None]:
    """Let Ctrl+C and SIGTERM end the work at its next step, so that nothing half-written is left.

    The second Ctrl+C ends it at once.
    """
    import signal

    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def stop(number: int, _frame: object) -> None:
        progress.cancel()
        signal.signal(number, before[signal.Signals(number)])

    for number in before:
        signal.signal(number, stop)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
