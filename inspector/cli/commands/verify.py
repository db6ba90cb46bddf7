"""The command `verify`: is OUT what FILE was to become?"""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING

from inspector.cli.common import DONE, NEGATIVE, ended_by_signals, reader_may_leave, say_json
from inspector.cli.mapping import add_map_options, add_plan_options, parse_map, rules_of
from inspector.cli.several import MANY, answer_each, expand

if TYPE_CHECKING:
    from inspector.remap.verify import Comparison
    from inspector.report.page import Page

SUMMARY = "Compare a copy with the file it was made from, byte by byte."
EXAMPLES = ("verify cpu.pth --against best.pth", "verify cpu/*.pth --against runs/")
NOTES = f"Exits with 1 where a copy differs. {MANY}"


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("files", nargs="+", metavar="OUT", help="the copy, or several; - is standard input")
    parser.add_argument(
        "--against",
        required=True,
        metavar="FILE",
        help="the file that it was made from, or the folder in which the originals have the same names",
    )
    parser.add_argument("--json", action="store_true", help="one JSON document for each OUT, one a line")
    group = parser.add_argument_group("which devices were to change")
    add_map_options(group)
    add_plan_options(group)


def run(options: argparse.Namespace) -> int:
    from inspector.cli.streams import refuse_twice

    refuse_twice(*options.files, options.against)
    parse_map(options)  # a wrong rule is told before any file is read
    files = expand(options.files)
    return answer_each(files, lambda path: _verify(path, options), options, "verify")


def _verify(path: str, options: argparse.Namespace) -> int:
    from inspector.cli.streams import is_stream, named

    against = options.against if is_stream(path) else original_of(path, options.against)
    with named(path, options) as copy, named(against, options) as original:
        found, is_planned = _compare(copy.path, original.path, options)
    with reader_may_leave():
        if options.json:
            from inspector.report.documents import verify_document

            say_json(verify_document(path, against, found))
        else:
            options.display.show(_page(copy.name, found, planned=is_planned))
    return DONE if found.is_same else NEGATIVE


def _compare(copy: str, original: str, options: argparse.Namespace) -> tuple[Comparison, bool]:
    from inspector.model.build import open_checkpoint
    from inspector.remap.verify import compare_files

    said, target = parse_map(options)
    rules = None
    if options.map or options.target is not None:
        planned = open_checkpoint(original, progress=options.display.progress())
        rules = rules_of(planned, options, said, target)
    progress = options.display.progress()
    with ended_by_signals(progress):
        found = compare_files(
            copy,
            original,
            rules,
            move_all=options.move_all,
            hidden=options.hidden_devices,
            progress=progress,
        )
    return found, rules is not None


def original_of(path: str, against: str) -> str:
    """Return what a copy is compared with: in a folder that is no checkpoint itself, the file of its name."""
    if not Path(against).is_dir():
        return against
    from inspector.containers.formats import find_format
    from inspector.containers.opening import open_path
    from inspector.errors import CheckpointError

    beside = Path(against, Path(path).name)
    if not os.path.lexists(beside):
        return against
    try:
        with open_path(against) as source:
            find_format(source)
    except CheckpointError:
        return str(beside)
    return against


def _page(path: str, found: Comparison, *, planned: bool) -> Page:
    from inspector.report.page import Result, page_of
    from inspector.report.words.results import compared, result_page

    parts = compared(found, planned=planned)
    if found.is_same:
        return result_page(path, parts)
    return page_of([Result(path, (part,), is_good=False) for part in parts])
