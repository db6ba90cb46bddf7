"""The command `recover`: what is intact in a damaged file, as a checkpoint that loads."""

from __future__ import annotations

import argparse
from pathlib import Path

from inspector.cli.common import DONE, ended_by_signals, remark, say

SUMMARY = "Save what is intact in a damaged file as a new one, and list the rest."
EXAMPLES = ("recover half.pth -o rest.pth",)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `recover`."""
    parser.add_argument("file", metavar="FILE", help="the checkpoint")
    parser.add_argument("-o", "--output", required=True, metavar="OUT", help="the new file")
    parser.add_argument("--force", action="store_true", help="replace OUT if it exists")


def run(options: argparse.Namespace) -> int:
    """Save what is intact, and list the rest."""
    from inspector.progress import Progress
    from inspector.remap.recover.recover import recover
    from inspector.report.words.results import joined, lost, lost_row, recovered, recovered_safety

    progress = Progress()
    with ended_by_signals(progress):
        done = recover(options.file, Path(options.output), overwrite=options.force, progress=progress)
    safety = recovered_safety(done)
    lines = [f"the new file: {safety}"] if safety else []
    lines += [lost(done), *(f"  {lost_row(row)}" for row in done.lost)]
    say(joined(options.output, recovered(done)) + "".join(f"{line}\n" for line in lines))
    if safety:
        remark(f"{options.output}: {safety}")
    return DONE
