"""The command `stats`: the numbers in tensors."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator, Sequence
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
from inspector.cli.several import FOLDERS, MANY, answer_each, walk
from inspector.errors import PlanError

if TYPE_CHECKING:
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
    "stats epoch-1.pth epoch-2.pth '**.weight'",
    "stats runs/ --scan",
)
NOTES = (
    "PATH is a path as show lists it, a group, or a pattern (* within a step, ** across steps). Min, max, "
    "mean, deviation and norm are over finite values, in double precision. --scan ends with 1 where it finds "
    "NaN or infinities (best scores may begin at infinity), or cannot read a tensor. "
    f"{FOLDERS} {MANY}"
)


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="a checkpoint, or a folder of them; - is standard input")
    parser.add_argument(
        "paths",
        nargs="*",
        metavar="PATH",
        help="the tensors, by path or pattern; further checkpoints may stand before them",
    )
    parser.add_argument(
        "--scan", action="store_true", help="read all tensors, and list what is odd about them"
    )
    parser.add_argument("--rank", action="store_true", help="also compute the effective rank of each matrix")
    parser.add_argument(
        "--json", action="store_true", help="one JSON document for each tensor, or for the scan"
    )


def run(options: argparse.Namespace) -> int:
    from inspector.values.asking import ValueReader, require_numpy

    named = [options.file, *_further_files(options)]
    options.paths = options.paths[len(named) - 1 :]
    if options.scan == bool(options.paths):
        raise PlanError("name the tensors, or use --scan for all of them", remedy="see stats --help")
    require_numpy()
    progress = options.display.progress()
    with ended_by_signals(progress), ValueReader() as reader:
        files = walk(named, progress)
        options.has_several = len(files) > 1
        command = "scan" if options.scan else "stats"
        return answer_each(
            files, lambda path: _answer(path, options, reader, progress), options, command, apart=True
        )


def _further_files(options: argparse.Namespace) -> Iterator[str]:
    """Yield the words behind the first that are files: all for a scan, else those before the tensors.

    A tensor's path can be the name of a folder or a file here, but hardly that of a checkpoint.
    """
    from inspector.containers.walking import is_named_like_one

    for word in options.paths:
        if not os.path.lexists(word) or not (options.scan or is_named_like_one(word)):
            return
        yield word


def _answer(path: str, options: argparse.Namespace, reader: ValueReader, progress: Progress) -> int:
    from inspector.cli.streams import named
    from inspector.model.build import open_checkpoint

    with named(path, options) as file:
        checkpoint = open_checkpoint(file.path, progress=progress)
        if options.scan:
            return _scan(options, checkpoint, file, reader, progress)
        from inspector.report.values import choose_tensors

        rows = choose_tensors(checkpoint, options.paths)
        return _stats(options, checkpoint, file, rows, reader=reader, progress=progress)


def _title(options: argparse.Namespace, file: Given) -> None:
    """Write which of several files is answered for."""
    if options.has_several and not options.json:
        from inspector.report.page import Line, page_of
        from inspector.units import escape_text

        options.display.show(page_of([Line(escape_text(file.name), "file")]), apart=True)


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
    _title(options, file)
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
        _title(options, file)
        if options.json:
            say_json(scan_document(checkpoint, scan, findings))
        else:
            options.display.show(scan_page(checkpoint, scan))
    return DONE if is_sound(scan, findings) else NEGATIVE
