"""Several files on one command line: an answer for each, the worst exit code, and one line at the end."""

from __future__ import annotations

import argparse
import os
from collections import Counter
from collections.abc import Callable, Sequence

from inspector.cli.common import (
    UnsaidError,
    as_checkpoint_error,
    complain_of,
    exit_code,
    hint,
    say_failure,
)
from inspector.errors import CancelledError
from inspector.quoting import IS_WINDOWS

MANY = (
    "Several files are answered one after the other; one that fails does not stop the others, and the exit "
    "code is the highest of all. With --json each has a document on a line of its own, in the order given."
)
"""The note of the commands that take several files."""


def answer_each(
    paths: Sequence[str],
    answer: Callable[[str], int],
    options: argparse.Namespace,
    command: str,
    *,
    apart: bool = False,
    to_stderr: bool = False,
) -> int:
    """Answer for each file, and return the worst exit code; for a single one errors are raised as ever.

    Args:
        answer: Writes the answer for one of them and returns its exit code.
        apart: Whether answers have several lines, so that an empty one stands between them.
        to_stderr: Whether stdout holds something else than text, so that the last line goes to stderr.
    """
    if len(paths) == 1:
        return answer(paths[0])
    codes = Counter(_answer(path, answer, options) for path in paths)
    if not options.json:
        from inspector.report.page import lines_of, page_of
        from inspector.report.words.results import summary

        line = summary(command, codes)
        if to_stderr:
            hint(options, line)
        else:
            options.display.report(page_of(lines_of([line])), apart=apart)
    return max(codes)


def _answer(path: str, answer: Callable[[str], int], options: argparse.Namespace) -> int:
    try:
        return answer(path)
    except (CancelledError, UnsaidError, BrokenPipeError):
        raise
    except Exception as error:  # noqa: BLE001 - whatever it is, the other files are still answered
        failure = as_checkpoint_error(error)
        if options.json:
            say_failure(failure, path)
        complain_of(failure, path)
        return exit_code(failure)


def expand(paths: Sequence[str], *, windows: bool = IS_WINDOWS) -> list[str]:
    """Return the files that were named; shells of Windows leave patterns to the program."""
    found: list[str] = []
    for path in paths:
        matches = _matches(path) if windows and not os.path.lexists(path) else []
        found += matches or [path]
    return found


def _matches(pattern: str) -> list[str]:
    import glob

    return sorted(glob.glob(pattern))  # noqa: PTH207 - a `Path` would spell the names in its own way
