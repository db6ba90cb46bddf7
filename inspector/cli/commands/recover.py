"""The command `recover`: what is intact in a damaged file, as a checkpoint that loads."""

from __future__ import annotations

import argparse
from pathlib import Path

from inspector.cli.common import DONE, ended_by_signals, remark

SUMMARY = "Save what is intact in a damaged file as a new one, and list the rest."
EXAMPLES = ("recover half.pth -o rest.pth",)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `recover`."""
    parser.add_argument("file", metavar="FILE", help="the checkpoint")
    parser.add_argument("-o", "--output", required=True, metavar="OUT", help="the new file")
    parser.add_argument("--force", action="store_true", help="replace OUT if it exists")


def run(options: argparse.Namespace) -> int:
    """Save what is intact, and list the rest."""
    from inspector.remap.recover.recover import recover
    from inspector.report.page.blocks import Line
    from inspector.report.words.results import lost, lost_row, recovered, recovered_safety, result_page

    progress = options.display.progress()
    with ended_by_signals(progress):
        done = recover(options.file, Path(options.output), overwrite=options.force, progress=progress)
    safety = recovered_safety(done)
    more = [Line(f"the new file: {safety}", "caution")] if safety else []
    more += [Line(lost(done)), *(Line(lost_row(row), indent="  ") for row in done.lost)]
    options.display.show(result_page(options.output, recovered(done), more))
    if safety:
        remark(f"{options.output}: {safety}")
    return DONE
