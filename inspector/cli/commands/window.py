"""Without a command: the files in a window, this program's or that of one that already runs."""

from __future__ import annotations

import argparse

from inspector import __version__
from inspector.cli.common import DONE, PROGRAM
from inspector.cli.mapping import PYTHONS

SUMMARY = (
    "Open PyTorch checkpoints without executing them, and fix the devices they name.\n"
    "Without a command, the files open in the window."
)
EXAMPLES = ("", "best.pth last.pth", "--demo")
NOTES = "ckpti is a shorter name of the same program."


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("files", nargs="*", metavar="FILE", help="checkpoints to open in the window")
    parser.add_argument("--demo", action="store_true", help="open the demo checkpoint")
    parser.add_argument("--fresh", action="store_true", help="ignore remembered settings")
    parser.add_argument("--python", metavar="PATH", help=PYTHONS)
    parser.add_argument(
        "-V", "--version", action="version", version=f"{PROGRAM} {__version__}", help="print the version"
    )


def run(options: argparse.Namespace) -> int:
    from inspector.cli.streams import refuse_stdin
    from inspector.desktop.handover import hand_over
    from inspector.pythons import name_python

    refuse_stdin("the window shows files by their names", *options.files)

    if options.python is not None:
        options.python = name_python(options.python).path  # the window leaves this folder
    elif not options.demo and hand_over(options.files):
        return DONE
    from inspector.cli.screen import require_display, window_libraries  # not for a running program's window

    require_display(options.files)
    with window_libraries():
        from inspector.gui.app import main

        return main(options.files, demo=options.demo, fresh=options.fresh, python=options.python or "")
