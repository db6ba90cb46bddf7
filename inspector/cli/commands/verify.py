"""The command `verify`: is OUT what FILE was to become?"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from inspector.cli.common import DONE, NEGATIVE, ended_by_signals, say_json
from inspector.cli.mapping import add_map_options, add_plan_options, parse_map, rules_of

if TYPE_CHECKING:
    from inspector.remap.compare.files import Comparison
    from inspector.report.page.blocks import Page

SUMMARY = "Compare a copy with the file it was made from, byte by byte."
EXAMPLES = ("verify cpu.pth --against best.pth",)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `verify`."""
    parser.add_argument("file", metavar="OUT", help="the copy")
    parser.add_argument("--against", required=True, metavar="FILE", help="the file that it was made from")
    add_map_options(parser)
    add_plan_options(parser)
    parser.add_argument("--json", action="store_true", help="one JSON document")


def run(options: argparse.Namespace) -> int:
    """Compare every tensor, value and byte of a copy with the original's; 1 means that it failed."""
    from inspector.model.build import open_checkpoint
    from inspector.remap.compare.files import compare_files

    said, target = parse_map(options)
    rules = None
    if options.map or options.target is not None:
        rules = rules_of(
            open_checkpoint(options.against, progress=options.display.progress()), options, said, target
        )
    progress = options.display.progress()
    with ended_by_signals(progress):
        found = compare_files(
            options.file,
            options.against,
            rules,
            move_all=options.move_all,
            hidden=options.hidden_devices,
            progress=progress,
        )
    if options.json:
        say_json(_document(options, found))
    else:
        options.display.show(_page(options, found, planned=rules is not None))
    return DONE if found.is_same else NEGATIVE


def _document(options: argparse.Namespace, found: Comparison) -> dict[str, object]:
    return {
        "schema": 1,
        "path": options.file,
        "against": options.against,
        "same": found.is_same,
        "tensors": found.tensors,
        "compared_nbytes": found.compared_nbytes,
        "moves": [{"from": there, "to": here, "tensors": count} for there, here, count in found.moves],
        "differences": list(found.differences),
    }


def _page(options: argparse.Namespace, found: Comparison, *, planned: bool) -> Page:
    from inspector.report.page.blocks import page_of
    from inspector.report.page.facts import Result
    from inspector.report.words.results import compared, result_page

    parts = compared(found, planned=planned)
    if found.is_same:
        return result_page(options.file, parts)
    return page_of([Result(options.file, (part,), is_good=False) for part in parts])
