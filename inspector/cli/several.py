"""Several files on one command line: an answer for each, the worst exit code, and one line at the end."""

from __future__ import annotations

import argparse
import os
from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from inspector.cli.common import (
    UNREADABLE,
    UnsaidError,
    as_checkpoint_error,
    complain_of,
    exit_code,
    hint,
    say_failure,
)
from inspector.errors import CancelledError, CheckpointError, ContainerError

if TYPE_CHECKING:
    from inspector.progress import Progress

MANY = (
    "Several files are answered one after the other; one that fails does not stop the others, and the exit "
    "code is the highest of all. With --json each has a document on a line of its own, in the order given."
)
"""The note of the commands that take several files."""


FOLDERS = (
    "A folder that is no checkpoint itself stands for those in it and below it, but for hidden names and "
    "links to folders."
)
"""The note of the commands that walk folders."""


def answer_each(
    paths: Sequence[str | CheckpointError],
    answer: Callable[[str], int],
    options: argparse.Namespace,
    command: str = "",
    *,
    apart: bool = False,
    to_stderr: bool = False,
) -> int:
    """Answer for each file, and return the worst exit code; for a single one errors are raised as ever.

    Args:
        paths: What to answer for; an error stands for a place that cannot be looked at.
        answer: Writes the answer for one of them and returns its exit code.
        command: Whose words the last line has, which counts the answers. Without one there is no such line,
            and the document of a file that cannot be read is all that is said of it.
        apart: Whether answers have several lines, so that an empty one stands between them.
        to_stderr: Whether stdout holds something else than text, so that the last line goes to stderr.
    """
    if command and len(paths) == 1:
        return _asked(paths[0], answer)
    codes = Counter(_answer(path, answer, options, complains=bool(command)) for path in paths)
    if command and not options.json:
        from inspector.report.page import lines_of, page_of
        from inspector.report.words.results import summary

        line = summary(command, codes)
        if to_stderr:
            hint(options, line)
        else:
            options.display.report(page_of(lines_of([line])), apart=apart)
    return max(codes)


def _asked(path: str | CheckpointError, answer: Callable[[str], int]) -> int:
    if isinstance(path, CheckpointError):
        raise path
    return answer(path)


def _answer(
    path: str | CheckpointError, answer: Callable[[str], int], options: argparse.Namespace, *, complains: bool
) -> int:
    try:
        return _asked(path, answer)
    except (CancelledError, UnsaidError, BrokenPipeError):
        raise
    except Exception as error:  # noqa: BLE001 - whatever it is, the other files are still answered
        failure = as_checkpoint_error(error)
        name = path if isinstance(path, str) else path.where
        if options.json:
            say_failure(failure, name)
        if complains or not options.json or exit_code(failure) != UNREADABLE:
            complain_of(failure, name)
        return exit_code(failure)


def expand(paths: Sequence[str]) -> list[str]:
    """Return the files that were named; shells of Windows leave patterns to the program, and quotes do."""
    found: list[str] = []
    for path in paths:
        found += [path] if os.path.lexists(path) or not set("*?[").intersection(path) else _matches(path)
    return found


def walk(paths: Sequence[str], progress: Progress) -> list[str | CheckpointError]:
    """Return the files that were named, and for each folder that is none itself the checkpoints in it."""
    found: list[str | CheckpointError] = []
    for path in expand(paths):
        found += _within(path, progress) if os.path.isdir(path) else [path]  # noqa: PTH112 - a text
    return found


def _within(folder: str, progress: Progress) -> Sequence[str | CheckpointError]:
    from inspector.containers.walking import checkpoints_in, is_one_checkpoint

    if is_one_checkpoint(folder):
        return [folder]
    progress.start("looking for checkpoints")
    found: list[str | CheckpointError] = [
        ContainerError(row.problem, where=row.path) if row.problem else row.path
        for row in checkpoints_in(folder, progress)
    ]
    return found or [ContainerError("no checkpoint is in this folder or below it", where=folder)]


def _matches(pattern: str) -> list[str]:
    import glob

    return sorted(glob.glob(pattern)) or [pattern]  # noqa: PTH207 - a `Path` would spell the names in its own way
