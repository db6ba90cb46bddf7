"""The command `diff`: what two checkpoints differ in, whatever their formats."""

from __future__ import annotations

import argparse
import math
from typing import TYPE_CHECKING

from inspector.cli.common import (
    DONE,
    NEGATIVE,
    PROGRAM,
    UNREADABLE,
    UnsaidError,
    as_checkpoint_error,
    complain_of,
    ended_by_signals,
    exit_code,
    reader_may_leave,
    say_json,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from inspector.diff.compare import Chosen, Wish
    from inspector.diff.records import Diff, Mode
    from inspector.model.checkpoint import Checkpoint
    from inspector.progress import Progress

SUMMARY = "Compare two checkpoints: names, devices, dtypes, shapes, values, and what loading them runs."
EXAMPLES = (
    "diff epoch-1.pth epoch-2.pth",
    "diff model.safetensors best.pth --compare numbers --filter role:parameter",
    "diff --series epochs/",
)
NOTES = "Exits with 0 where they are equal, with 1 where they differ."
_MODES = {"facts": "none", "equal": "equal", "numbers": "numbers"}


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "files",
        nargs="+",
        metavar="FILE",
        help="two checkpoints of any format: files or folders; one of them can be - for standard input",
    )
    parser.add_argument("--json", action="store_true", help="one JSON document")
    group = parser.add_argument_group("what is compared")
    group.add_argument(
        "--compare",
        choices=tuple(_MODES),
        help="tensors by what is said of them alone, by their bytes as well (the default), or by how much "
        "their numbers differ",
    )
    group.add_argument("--rtol", type=_tolerance, metavar="R", help="numbers are equal if |a-b| <= A + R*|b|")
    group.add_argument("--atol", type=_tolerance, metavar="A", help="the same; both default to 0")
    group.add_argument(
        "--filter", metavar="QUERY", default="", help="only these: words, device:, dtype:, role:, size>10MB"
    )
    group = parser.add_argument_group("what is listed")
    shown = group.add_mutually_exclusive_group()
    shown.add_argument(
        "--all", action="store_true", help="list the tensors that are equal as well, not only what differs"
    )
    group.add_argument(
        "--series",
        action="store_true",
        help="how far each module went over several checkpoints: those named, in their order, or those in a "
        "folder, 2 before 10",
    )
    group.add_argument("--each", action="store_true", help="list each tensor of a change that many share")
    # Spellings of before: what --compare numbers says, and what is the default.
    parser.add_argument("--values", action="store_true", help=argparse.SUPPRESS)
    shown.add_argument("--only-differences", action="store_true", help=argparse.SUPPRESS)


def _tolerance(text: str) -> float:
    try:
        found = float(text)
    except ValueError:
        found = -1.0
    if not 0 <= found < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is not a tolerance")
    return found


def run(options: argparse.Namespace) -> int:
    from inspector.cli.streams import refuse_twice
    from inspector.errors import CancelledError, PlanError

    refuse_twice(*options.files)
    if len(options.files) != 2 and not options.series:
        remedy = "for several, say --series" if options.files[1:] else f"{PROGRAM} {EXAMPLES[0]}"
        raise PlanError("two checkpoints are compared, A and B", remedy=remedy)
    progress: Progress = options.display.progress()
    try:
        with ended_by_signals(progress):
            return _run_series(options, progress) if options.series else _run(options, progress)
    except (CancelledError, BrokenPipeError, UnsaidError):
        raise
    except Exception as error:  # noqa: BLE001 - whatever it is, the document names both files
        failure = as_checkpoint_error(error)
        if options.json:
            say_json(
                {
                    "schema": 1,
                    "a": options.files[0],
                    "b": options.files[-1],
                    "error": {"kind": failure.kind, "message": failure.what, "where": failure.where},
                }
            )
        complain_of(failure)
        return exit_code(failure)


def _run(options: argparse.Namespace, progress: Progress) -> int:
    from inspector.cli.streams import named
    from inspector.diff.compare import compare_paths
    from inspector.records import replace

    (first, second), wish = options.files, _wish(options)
    if wish.mode == "numbers":
        from inspector.values.asking import require_numpy

        require_numpy()
    with named(first, options) as a, named(second, options) as b:
        found = compare_paths(a.path, b.path, wish, progress)
    found = replace(found, a=replace(found.a, path=a.name), b=replace(found.b, path=b.name))
    with reader_may_leave():
        _say(found, options)
    return DONE if found.is_equal else NEGATIVE


def _run_series(options: argparse.Namespace, progress: Progress) -> int:
    from inspector.cli.several import expand
    from inspector.cli.streams import refuse_stdin
    from inspector.diff.series import compare_series, series_paths
    from inspector.errors import PlanError
    from inspector.report.comparing.series import series_document, series_page
    from inspector.values.asking import require_numpy

    refuse_stdin("a series is listed by the names of its files", *options.files)
    unused = [name for name, value in _others(options) if value]
    if unused:
        raise PlanError(f"--series takes no {' and no '.join(unused)}", remedy="leave it out")
    require_numpy()
    found = compare_series(series_paths(expand(options.files)), progress, _choice(options))
    if options.json:
        say_json(series_document(found))
    else:
        options.display.show(series_page(found))
    return UNREADABLE if found.problems else DONE


def _others(options: argparse.Namespace) -> tuple[tuple[str, object], ...]:
    """Return the options of a comparison of two, which a series has no use for, with what was given."""
    return (
        ("--compare", options.compare),
        ("--values", options.values),
        ("--rtol", options.rtol is not None),
        ("--atol", options.atol is not None),
        ("--only-differences", options.only_differences),
        ("--all", options.all),
        ("--each", options.each),
    )


def _say(found: Diff, options: argparse.Namespace) -> None:
    if options.json:
        from inspector.report.comparing.document import diff_document

        say_json(diff_document(found))
    else:
        from inspector.report.comparing.text import diff_page

        options.display.show(diff_page(found, equal=options.all, every=options.each))


def _choice(options: argparse.Namespace) -> Callable[[Checkpoint], Chosen] | None:
    if not options.filter:
        return None
    from inspector.library.comparing import chooser

    return chooser(options.filter)


def _wish(options: argparse.Namespace) -> Wish:
    from inspector.diff.compare import Wish
    from inspector.diff.content import Tolerance
    from inspector.errors import PlanError

    tolerance = Tolerance(rtol=options.rtol or 0.0, atol=options.atol or 0.0)
    has_tolerance = options.rtol is not None or options.atol is not None
    asked = options.compare or ("numbers" if options.values or has_tolerance else "equal")
    if asked != "numbers" and (options.values or has_tolerance):
        raise PlanError(
            f"--compare {asked} compares no numbers", remedy="leave it out, or say --compare numbers"
        )
    mode: Mode = _MODES[asked]  # type: ignore[assignment]
    return Wish(mode=mode, tolerance=tolerance, choose=_choice(options))
