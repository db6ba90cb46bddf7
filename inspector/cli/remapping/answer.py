"""What `remap` has to say about one file, and where it says it."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

from inspector.cli.common import DONE, complain_of, exit_code, reader_may_leave, say_json, tell
from inspector.cli.streams import is_stream
from inspector.errors import CheckpointError
from inspector.records import dataclass
from inspector.report.page.blocks import Page, plain_text


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """An answer, for people and as JSON.

    Attributes:
        document: Returns the same as JSON; what makes it is imported where it is asked for.
        failure: What could not be done although the file was written; it decides the exit code.
    """

    page: Page
    document: Callable[[], dict[str, Any]]
    code: int = DONE
    failure: CheckpointError | None = None


def file_name(options: argparse.Namespace) -> str:
    """Return what the file is called in the answer, wherever it is read."""
    name: str = getattr(options, "file_name", options.file)
    return name


def output_name(options: argparse.Namespace) -> str:
    """Return what the output is called in the answer."""
    stream: str | None = getattr(options, "output_name", None)
    name: str = options.output if stream is None else "standard output"
    return name


def give(answer: Answer, options: argparse.Namespace) -> int:
    """Write an answer, to stderr where stdout takes the file itself; return the exit code."""
    with reader_may_leave():
        if options.json:
            say_json(answer.document())
        elif is_stream(getattr(options, "output_name", None)):
            tell(plain_text(answer.page))
        else:
            options.display.show(answer.page, apart=options.dry_run)
    if answer.failure is None:
        return answer.code
    complain_of(answer.failure)
    return exit_code(answer.failure)
