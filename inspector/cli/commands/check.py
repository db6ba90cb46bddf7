"""The command `check`: would `torch.load` work on a machine, is it safe, and what does an error mean here."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from inspector.cli.common import (
    DONE,
    NEGATIVE,
    UNREADABLE,
    as_checkpoint_error,
    complain_of,
    reader_may_leave,
    remark,
    say,
    say_json,
)
from inspector.cli.mapping import add_target_options, profile_of
from inspector.cli.several import FOLDERS, MANY, answer_each, walk
from inspector.errors import CancelledError, CheckpointError, ContainerError, PlanError, QueryError
from inspector.units import escape_text

if TYPE_CHECKING:
    from inspector.diagnose.errors.explanation import Explanation
    from inspector.doctor.diagnosis import Diagnosis
    from inspector.library.checking import Script
    from inspector.report.checking import Check
    from inspector.target.wish import Wish

SUMMARY = "Check whether torch.load works on a machine, and if not, why."
EXAMPLES = (
    "check best.pth",
    "check best.pth --target cuda@24gb",
    "check best.pth --error-file traceback.txt",
    "check best.pth --script train.py",
    'check best.pth --script train.py --args "--resume best.pth --gpu 0"',
    "check runs/ --target cpu --format concise",
    "check best.pth --filter role:optimizer",
    "check - < best.pth",
)
NOTES = (
    "Exits with 1 where a file does not load there, or holds more than weights; "
    f"with --script, where a line of it fails; with --filter, also where nothing matches. {FOLDERS} {MANY}"
)
_MOST_CHARS = 1 << 22
"""Of an error file: more than is looked at, and little enough to be read from anything."""


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "files", nargs="+", metavar="FILE", help="checkpoints, or folders of them; - is standard input"
    )
    parser.add_argument("--json", action="store_true", help="one JSON document for each FILE, one a line")
    parser.add_argument(
        "--full",
        action="store_true",
        help="all that is known: every finding, and torch's errors to their end",
    )
    parser.add_argument(
        "--format",
        choices=("concise",),
        help="a line for each FILE: whether it loads and is safe, and what makes it load or why not",
    )
    parser.add_argument(
        "--filter",
        metavar="QUERY",
        default="",
        help="only findings about tensors and values that match, as of show --filter; the verdict is about "
        "the whole file all the same",
    )
    add_target_options(parser.add_argument_group("where it is to be loaded"), "this")
    group = parser.add_argument_group("what is explained as well")
    group.add_argument("--beliefs", action="store_true", help=argparse.SUPPRESS)
    error = group.add_mutually_exclusive_group()
    error.add_argument("--error-text", metavar="TEXT", help="explain this error message or traceback")
    error.add_argument("--error-file", metavar="F", help="the same from a file; - is standard input")
    group.add_argument(
        "--script",
        metavar="F.py",
        help="which line of this Python script or notebook fails with the file; - is standard input",
    )
    group.add_argument("--args", metavar="WORDS", help="the words that the script is run with, in quotes")


def run(options: argparse.Namespace) -> int:
    from inspector.cli.streams import refuse_twice
    from inspector.pythons import name_python
    from inspector.target.wish import parse_wish

    if options.beliefs and not options.display.is_quiet:
        remark("--beliefs ended: what people believe and is not so stands in docs/guide/myths.md")
    target = parse_wish(options.target)
    refuse_twice(*options.files, options.error_file, options.script)
    _refuse_with_concise(options)
    if options.python is not None:
        name_python(options.python)  # a wrong one is told before any file is read
    text, script = _error_text(options), _script(options)
    files = walk(options.files, options.display.progress())
    options.has_several = len(files) > 1
    return answer_each(
        files,
        lambda path: _check(path, options, target, text, script),
        options,
        "check" if script is None else "script",
        apart=True,
        to_stderr=options.format is not None,
    )


def _refuse_with_concise(options: argparse.Namespace) -> None:
    others = ("json", "full", "filter", "error_text", "error_file", "script")
    given = next((name for name in others if getattr(options, name)), None)
    if options.format and given:
        what = f"--format {options.format} is a line for each file, and takes no --{given.replace('_', '-')}"
        raise PlanError(what, remedy="leave one out")


def _check(
    path: str, options: argparse.Namespace, target: Wish, text: str | None, script: Script | None
) -> int:
    try:
        found = _look(path, options, target, text, script)
    except (CancelledError, PlanError, QueryError):
        raise
    except Exception as error:  # noqa: BLE001 - the error text is explained even where the file cannot be read
        return _refused(path, options, as_checkpoint_error(error), text, target)
    with reader_may_leave():
        _tell(options, path, found)
    has_found = found.sought is None or bool(found.sought.paths)
    return DONE if found.is_good and has_found else NEGATIVE


def _tell(options: argparse.Namespace, path: str, found: Check) -> None:
    from inspector.cli.streams import is_stream
    from inspector.report.checking import check_document, check_page, concise_line

    if options.json:
        say_json(check_document(found))
        if found.sought is not None and not found.sought.paths:
            remark(f"{path}: nothing matches the filter: {found.sought.nothing}")
        return
    if options.format:
        say(f"{concise_line(found)}\n")
        return
    is_titled = _title(options, path)
    options.display.show(check_page(found, is_full=options.full), apart=not is_titled)
    if is_stream(path) and not options.display.is_quiet:
        remark("stdin stands for the file that was read from there: write its name instead")


def _title(options: argparse.Namespace, path: str) -> bool:
    """Write which of several files an answer is about that begins with something else; return whether."""
    if not options.has_several or not (options.script or options.error_text or options.error_file):
        return False
    from inspector.report.page import Line, page_of

    options.display.show(page_of([Line(escape_text(path), "file")]), apart=True)
    return True


def _error_text(options: argparse.Namespace) -> str | None:
    if options.error_file is None:
        given: str | None = options.error_text
        return given
    if options.error_file == "-":
        return sys.stdin.read(_MOST_CHARS)
    from inspector.containers.source import FileSource

    try:
        with FileSource(options.error_file) as source:
            data = source.read_upto(0, _MOST_CHARS)
    except ContainerError as error:
        what = f"the error text cannot be read: {error.what}"
        remedy = "for the output of a program, use a pipe and --error-file -"
        raise ContainerError(what, where=options.error_file, remedy=remedy) from error
    return data.decode("utf-8", "replace").replace("\r\n", "\n")


def _script(options: argparse.Namespace) -> Script | None:
    if options.script is None:
        return None
    from inspector.library.checking import read_script

    text = sys.stdin.read(_MOST_CHARS) if options.script == "-" else None
    return read_script(options.script, options.args, text)


def _look(
    path: str, options: argparse.Namespace, target: Wish, text: str | None, script: Script | None
) -> Check:
    from inspector.cli.streams import given
    from inspector.library.checking import look
    from inspector.model.build import open_checkpoint

    with given(path, options) as source:
        checkpoint = open_checkpoint(source, progress=options.display.progress())
    return look(checkpoint, profile_of(target, options), text, script, options.filter)


def _refused(
    path: str, options: argparse.Namespace, error: CheckpointError, text: str | None, target: Wish
) -> int:
    from inspector.records import as_document
    from inspector.report.checking import explanation_document, explanation_lines, machine_lines
    from inspector.report.jsonable import error_document
    from inspector.report.page import page_of

    explanation: Explanation | None = None
    if text is not None:
        from inspector.diagnose.errors.explain import explain_error

        explanation = explain_error(text, None, unread=error)
    diagnoses = _causes(explanation, target, options)
    if options.json:
        document = error_document(path, error)
        if explanation is not None:
            document |= {
                "explanation": explanation_document(explanation),
                "diagnoses": as_document(diagnoses),
            }
        say_json(document)
        return UNREADABLE
    if explanation is not None:
        blocks = (*explanation_lines(explanation), *machine_lines(diagnoses))
        is_titled = _title(options, path)
        options.display.show(page_of(blocks), apart=not is_titled)
    complain_of(error, path)
    return UNREADABLE


def _causes(
    explanation: Explanation | None, target: Wish, options: argparse.Namespace
) -> tuple[Diagnosis, ...]:
    from inspector.report.words.formats import is_about_machine

    if not is_about_machine(explanation):
        return ()
    from inspector.doctor.examine import examine

    try:
        machine = profile_of(target, options)
    except CheckpointError:
        return ()  # the file is what was asked about
    return () if machine.evidence is None else examine(machine)
