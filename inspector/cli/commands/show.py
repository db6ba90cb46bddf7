"""The command `show`: what files hold, as text or JSON."""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING

from inspector.cli.common import DONE, NEGATIVE, plain_number, remark, say
from inspector.cli.several import FOLDERS, MANY, answer_each, walk

if TYPE_CHECKING:
    from collections.abc import Collection

    from inspector.model.checkpoint import Checkpoint
    from inspector.report.jsonable import Listed
    from inspector.report.outline.node import Tree
    from inspector.report.page import Page
    from inspector.report.query import Query, Rows

SUMMARY = "Show what checkpoints contain; nothing in them is executed."
EXAMPLES = (
    "show best.pth",
    "show best.pth --depth 2",
    'show best.pth --filter "device:cuda:1 size>10MB"',
    "show --json best.pth",
    "show runs/ --filter role:optimizer",
    "show - < best.pth",
)
NOTES = f"With --filter, exits with 1 where nothing matches. {FOLDERS} {MANY}"


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "files", nargs="+", metavar="FILE", help="checkpoints, or folders of them; - is standard input"
    )
    parser.add_argument("--json", action="store_true", help="one JSON document for each FILE, one a line")
    parser.add_argument(
        "--filter",
        metavar="QUERY",
        default="",
        help='words (* ? "whole path" -not), device:, dtype:, role:, shape:, storage:, size>10MB, params>1M',
    )
    parser.add_argument(
        "--depth",
        type=_depth,
        metavar="N",
        help="levels of the tree to show; with --json, groups below are summed up",
    )


def _depth(text: str) -> int:
    if plain_number(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of levels")
    return plain_number(text)


def run(options: argparse.Namespace) -> int:
    from inspector.cli.streams import refuse_twice

    refuse_twice(*options.files)
    files = walk(options.files, options.display.progress())
    return answer_each(files, lambda path: _show(path, options), options)


def _show(path: str, options: argparse.Namespace) -> int:
    if not options.json:
        page, is_found = _page(path, options)
        options.display.show(page, apart=True)
        return DONE if is_found else NEGATIVE
    text, is_found = _json(path, options)
    say(text)
    if not is_found:
        remark(f"{path}: nothing matches the filter")
    return DONE if is_found else NEGATIVE


def _json(path: str, options: argparse.Namespace) -> tuple[str, bool]:
    """Return the document, and whether the filter finds anything."""
    from inspector.cli.streams import given, is_stream
    from inspector.containers.collector import collector_paused
    from inspector.diagnose.run import diagnose
    from inspector.model.build import open_checkpoint
    from inspector.report.jsonable import write_show
    from inspector.safety.verdict import judge

    with collector_paused():  # also while the rows are written: all of them live to the end
        started = time.perf_counter()
        with given(path, options) as source:
            checkpoint = open_checkpoint(
                source, beside=not is_stream(path), progress=options.display.progress()
            )
        seconds = time.perf_counter() - started
        safety = judge(checkpoint)
        findings = diagnose(checkpoint, safety)
        listed = None if options.depth is None else _listed(checkpoint, options)
        if options.filter:
            checkpoint = _searched(checkpoint, options.filter)[0].narrow(checkpoint)
        pieces = write_show(checkpoint, safety, findings, open_seconds=seconds, listed=listed)
        is_found = not options.filter or bool(checkpoint.tensors or checkpoint.values)
        return "".join(pieces) + "\n", is_found


def _page(path: str, options: argparse.Namespace) -> tuple[Page, bool]:
    from inspector.cli.streams import given, is_stream
    from inspector.diagnose.run import diagnose
    from inspector.model.build import open_checkpoint
    from inspector.report.text import report_page
    from inspector.safety.verdict import judge

    with given(path, options) as source:
        checkpoint = open_checkpoint(source, beside=not is_stream(path), progress=options.display.progress())
    safety = judge(checkpoint)
    tree, only = _tree(checkpoint, options)
    findings = diagnose(checkpoint, safety)
    page = report_page(checkpoint, safety, findings, tree, depth=options.depth, only=only)
    return page, only is None or bool(only)


def _listed(checkpoint: Checkpoint, options: argparse.Namespace) -> Listed:
    from inspector.report.jsonable import cut_at

    tree, only = _tree(checkpoint, options)
    return cut_at(checkpoint, tree, options.depth, only)


def _tree(checkpoint: Checkpoint, options: argparse.Namespace) -> tuple[Tree, Collection[int] | None]:
    from inspector.model.totals import device_totals
    from inspector.report.colors import device_colors
    from inspector.report.tree import build_tree

    tree = build_tree(checkpoint, device_colors(total.device for total in device_totals(checkpoint)))
    if not options.filter:
        return tree, None
    from inspector.report.query import matching_nodes

    return tree, matching_nodes(*_searched(checkpoint, options.filter), tree)


def _searched(checkpoint: Checkpoint, text: str) -> tuple[Query, Rows]:
    from inspector.report.query import parse_query, refuse_mistakes, searchable

    rows = searchable(checkpoint)
    refuse_mistakes(text, rows)
    return parse_query(text), rows
