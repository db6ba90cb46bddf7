"""The command `recover`: what is intact in a damaged file, as a checkpoint that loads."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING

from inspector.cli.common import DONE, ended_by_signals, remark, say_json, tell

if TYPE_CHECKING:
    from inspector.remap.recover import Recovery

SUMMARY = "Save what is intact in a damaged file as a new one, and list the rest."
EXAMPLES = ("recover half.pth -o rest.pth",)


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="the checkpoint; - is standard input")
    parser.add_argument(
        "-o",
        "--output",
        required=True,
        metavar="OUT",
        help="the new file, for torch.load; - writes it to standard output",
    )
    parser.add_argument("--force", action="store_true", help="replace OUT if it exists")
    parser.add_argument("--json", action="store_true", help="one JSON document")


def run(options: argparse.Namespace) -> int:
    from inspector.cli.streams import is_stream, refuse_stdout, streamed

    if not is_stream(options.output):
        return _tell(options, _recover(options, options.output), options.output)
    refuse_stdout(options)
    with streamed("recovered.pth") as output:
        done = _recover(options, os.fspath(output))
    return _tell(options, done, "standard output")  # not before all of it is there


def _recover(options: argparse.Namespace, output: str) -> Recovery:
    from inspector.cli.streams import named
    from inspector.remap.recover import recover

    progress = options.display.progress()
    with named(options.file, options) as file, ended_by_signals(progress):
        return recover(file.path, Path(output), overwrite=options.force, progress=progress)


def _tell(options: argparse.Namespace, done: Recovery, name: str) -> int:
    from inspector.report.page import Line, plain_text
    from inspector.report.words.results import lost, lost_row, recovered, recovered_safety, result_page

    safety = recovered_safety(done)
    if options.json:
        from inspector.report.documents import recover_document

        say_json(recover_document(options.file, name, done))
        return DONE
    more = [Line(f"the new file: {safety}", "caution")] if safety else []
    more += [
        Line(lost(done), "caution" if done.lost else "text"),
        *(Line(lost_row(row), indent="  ", hang="      ") for row in done.lost),
    ]
    page = result_page(name, recovered(done), more)
    if name == options.output:
        options.display.show(page)
    else:
        tell(plain_text(page))
    if safety:
        remark(f"{name}: {safety}")
    return DONE
