"""The report of `show` for people: verdict, devices, tree and findings in plain text."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from inspector.model.checkpoint import Checkpoint
from inspector.model.findings import Finding
from inspector.model.totals import device_totals
from inspector.report.details import written_by
from inspector.report.tree import Node, Tree
from inspector.safety.verdict import SafetyVerdict
from inspector.units import escape_text, format_count, format_nbytes

_SAFETY = {
    "weights-only": "loads with weights_only=True, runs no code",
    "needs-allow-list": "needs names allowed for weights_only=True",
    "runs-code": "loads only with weights_only=False",
    "dangerous": "DANGEROUS: can run commands when loaded",
}
_MARKS = {"error": "!!", "warning": " !", "note": "  "}
_MOST_NAME = 48
_Row = tuple[str, str, str, str, str]


def format_report(
    checkpoint: Checkpoint,
    safety: SafetyVerdict,
    findings: Collection[Finding],
    tree: Tree,
    *,
    depth: int | None = None,
    only: Collection[int] | None = None,
) -> str:
    """Give the report on one file.

    Args:
        checkpoint: The file.
        safety: The verdict on its pickle.
        findings: Its findings.
        tree: Its rows.
        depth: How many levels of the tree to show; None for all.
        only: Ids of the tree's rows to show, with the way to them; None for all.
    """
    lines = [*_head(checkpoint, safety), "", *_devices(checkpoint), ""]
    lines += _table(list(_rows(tree, depth, only)))
    if findings:
        lines += ["", "Findings"]
        lines += [f"{_MARKS[finding.severity]} {finding.title}" for finding in findings]
    return "\n".join(lines) + "\n"


def _head(checkpoint: Checkpoint, safety: SafetyVerdict) -> Iterator[str]:
    written = written_by(checkpoint)
    form = f"{checkpoint.format}, {written}" if written else checkpoint.format
    tensors = format_count(len(checkpoint.tensors), "tensor")
    yield escape_text(checkpoint.path)
    yield f"  {form}, {tensors}, {format_nbytes(checkpoint.file_nbytes)}"
    yield f"  {_SAFETY[safety.verdict]}"
    for note in checkpoint.notes:
        yield f"  {note}"


def _devices(checkpoint: Checkpoint) -> Iterator[str]:
    yield "Saved on"
    for total in device_totals(checkpoint):
        tensors, size = format_count(total.tensors, "tensor"), format_nbytes(total.nbytes)
        yield f"  {escape_text(total.device):<10} {tensors:>16} {size:>10}"


def _rows(tree: Tree, depth: int | None, only: Collection[int] | None) -> Iterator[_Row]:
    shown = None if only is None else _with_ancestors(tree, only)
    stack = [(id_, 0) for id_ in reversed(tree.nodes[0].children)]
    while stack:
        id_, level = stack.pop()
        node = tree.nodes[id_]
        if shown is not None and id_ not in shown:
            continue
        if depth is None or level < depth:
            yield _row(node, level)
            stack.extend((child, level + 1) for child in reversed(node.children))


def _with_ancestors(tree: Tree, only: Collection[int]) -> set[int]:
    shown: set[int] = set()
    for found in only:
        id_ = found
        while id_ >= 0 and id_ not in shown:
            shown.add(id_)
            id_ = tree.nodes[id_].parent
    return shown


def _row(node: Node, level: int) -> _Row:
    name = "  " * level + node.name
    if node.kind == "value":
        return name, "", node.text, node.type_text, ""
    shape = (
        node.shape_text
        if node.kind == "tensor"
        else format_count(node.tensors, "tensor")
        if node.tensors
        else ""
    )
    return name, node.device_text, shape, node.type_text, format_nbytes(node.nbytes) if node.tensors else ""


def _table(rows: list[_Row]) -> Iterator[str]:
    """Align the columns; a column is as wide as its widest text, within reason."""
    header = ("Name", "Device", "Shape or value", "Type", "Size")
    widths = [
        min(max((len(row[column]) for row in [header, *rows]), default=0), _MOST_NAME)
        for column in range(len(header))
    ]
    for row in [header, *rows]:
        *cells, size = row
        line = "  ".join(f"{cell:<{width}}" for cell, width in zip(cells, widths, strict=False))
        yield f"{line}  {size:>{widths[-1]}}".rstrip()
