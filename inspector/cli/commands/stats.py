"""The command `stats`: the numbers in tensors."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from inspector.cli.common import (
    DONE,
    NEGATIVE,
    UNREADABLE,
    complain_of,
    ended_by_signals,
    reader_may_leave,
    remark,
    say_json,
)
from inspector.errors import PlanError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from inspector.cli.streams import Given
    from inspector.model.checkpoint import Checkpoint
    from inspector.progress import Progress
    from inspector.values.asking import ValueReader
    from inspector.values.request import Requests
    from inspector.values.statistics import Ranks

SUMMARY = "Compute the statistics of tensors, read from just their bytes."
EXAMPLES = (
    "stats best.pth model/layer1.0.conv1.weight",
    "stats best.pth 'model/**.bias' --json",
    "stats best.pth --scan",
)
NOTES = (
    "PATH is a path as show lists it, a group, or a pattern (* within a step, ** across steps). Min, max, "
    "mean, deviation and norm are over finite values, in double precision. --scan ends with 1 where it finds "
    "NaN or infinities (best scores may begin at infinity), or cannot read a tensor."
)


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="the checkpoint; - is standard input")
    parser.add_argument("paths", nargs="*", metavar="PATH", help="the tensors, by path or pattern")
    parser.add_argument(
        "--scan", action="store_true", help="read all tensors, and list what is odd about them"
    )
    parser.add_argument("--rank", action="store_true", help="also compute the effective rank of each matrix")
    parser.add_argument(
        "--json", action="store_true", help="one JSON document for each tensor, or for the scan"
    )


def run(options: argparse.Namespace) -> int:
    if options.scan == bool(options.paths):
        raise PlanError("name the tensors, or use --scan for all of them", remedy="see stats --help")
    from inspector.cli.streams import named
    from inspector.model.build import open_checkpoint
    from inspector.values.asking import ValueReader, require_numpy

    require_numpy()
    progress = options.display.progress()
    with named(options.file, options) as file, ended_by_signals(progress), ValueReader() as reader:
        checkpoint = open_checkpoint(file.path, progress=progress)
        if options.scan:
            return _scan(options, checkpoint, file, reader, progress)
        from inspector.report.values import choose_tensors

        rows = choose_tensors(checkpoint, options.paths)
        return _stats(options, checkpoint, file, rows, reader=reader, progress=progress)


def _stats(
    options: argparse.Namespace,
    checkpoint: Checkpoint,
    file: Given,
    rows: Sequence[int],
    *,
    reader: ValueReader,
    progress: Progress,
) -> int:
    from inspector.cli.streams import rename
    from inspector.errors import ValuesError
    from inspector.records import replace
    from inspector.report.jsonable import error_document
    from inspector.report.values import statistics_document, statistics_page
    from inspector.values.request import Requests

    code, shown, requests = DONE, replace(checkpoint, path=file.name), Requests(checkpoint)
    for row in rows:
        path = checkpoint.tensors[row].path
        try:
            found = reader.statistics(requests, row, progress)
            ranks = _ranks(requests, row, reader, progress, path) if options.rank else None
        except ValuesError as error:
            code = UNREADABLE
            rename(error, file)
            if options.json:
                say_json({**error_document(file.name, error), "tensor": path})
            complain_of(error, path)
            continue
        if options.json:
            say_json(statistics_document(shown, row, found, ranks))
        else:
            options.display.show(statistics_page(checkpoint.tensors[row], found, ranks))
    return code


def _ranks(requests: Requests, row: int, reader: ValueReader, progress: Progress, path: str) -> Ranks | None:
    from inspector.errors import ValuesError

    try:
        return reader.ranks(requests, row, progress)
    except ValuesError as error:
        remark(f"{path}: no rank: {error.what}")
        return None


def _scan(
    options: argparse.Namespace, checkpoint: Checkpoint, file: Given, reader: ValueReader, progress: Progress
) -> int:
    from inspector.diagnose.findings.values import is_sound, value_findings
    from inspector.records import replace
    from inspector.report.values import scan_document, scan_page
    from inspector.values.statistics import scan_checkpoint

    scan = scan_checkpoint(checkpoint, reader, progress)
    checkpoint = replace(checkpoint, path=file.name)
    findings = value_findings(checkpoint, scan)
    with reader_may_leave():
        if options.json:
            say_json(scan_document(checkpoint, scan, findings))
        else:
            options.display.show(scan_page(checkpoint, scan))
    return DONE if is_sound(scan, findings) else NEGATIVE
