"""The command line, as fixed in its contract; the only module that writes to stdout.

Every command imports what it needs when it runs: `show` must not pay for Qt, nor the window for argparse's
other commands. Exit codes: 0 done, 2 wrong usage, 3 input unreadable, 4 output not written, 130 interrupted.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence

from inspector.errors import CheckpointError

PROGRAM = "checkpoint-inspector"
DONE, USAGE, UNREADABLE, UNWRITTEN, INTERRUPTED = 0, 2, 3, 4, 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and give its exit code."""
    return _show(_parser().parse_args(arguments))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=PROGRAM)
    commands = parser.add_subparsers(dest="command")
    show = commands.add_parser("show")
    show.add_argument("files", nargs="+")
    show.add_argument("--json", action="store_true")
    return parser


def _show(options: argparse.Namespace) -> int:
    from inspector.diagnose.rules import diagnose
    from inspector.model.build import open_checkpoint
    from inspector.report.jsonable import error_document, show_document
    from inspector.safety.verdict import judge

    code = DONE
    for path in options.files:
        started = time.perf_counter()
        try:
            checkpoint = open_checkpoint(path)
            seconds = time.perf_counter() - started
            safety = judge(checkpoint)
            document = show_document(checkpoint, safety, diagnose(checkpoint, safety), open_seconds=seconds)
        except CheckpointError as error:
            document, code = error_document(path, error), UNREADABLE
        sys.stdout.write(json.dumps(document) + "\n")
    return code
