"""The report of `show` as text: verdict, devices, tree, optimizers and findings in plain text."""

from __future__ import annotations

import re
import textwrap
import unicodedata
from collections.abc import Collection, Iterator, Sequence
from functools import lru_cache

from inspector.containers.formats import format_of
from inspector.containers.notes import sentences
from inspector.model.checkpoint import Checkpoint
from inspector.model.findings import Finding
from inspector.model.totals import device_totals
from inspector.quoting import command, file_word
from inspector.report.colors import device_name
from inspector.report.details import hidden_texts, naming_text, written_by
from inspector.report.tree import Node, Tree
from inspector.report.words.fixes import before
from inspector.report.words.verdicts import verdict_words
from inspector.safety.verdict import SafetyVerdict
from inspector.units import escape_text, format_count, format_nbytes

_MARKS = {"error": "!!", "warning": " !", "note": "  "}
_HEADER = ("Name", "Device", "Shape or value", "Type", "Size")
_MOST_WIDE = (48, 24, 40, 32, 12)
_MOST_LEVELS = 12
_LINE = 100
_MOST_PATHS = 3
_WITH_CODE = frozenset({"needs-allow-list", "runs-code"})
_NOT_ASCII = re.compile(r"[^\x00-\x7f]")
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
    """Return the report on one file.

    Args:
        checkpoint: The file.
        safety: The verdict on its pickle.
        findings: Its findings.
        tree: Its rows.
        depth: How many levels of the tree to show; None for all.
        only: Ids of the rows to show, together with their ancestors; None for all.
    """
    sections = (
        _head(checkpoint, safety),
        _devices(checkpoint),
        _table(list(_rows(tree, depth, only)), sought=only is not None),
        _optimizers(checkpoint),
        _findings(findings),
    )
    texts = ("\n".join(section) for section in sections)
    return "\n\n".join(text for text in texts if text) + "\n"


def _head(checkpoint: Checkpoint, safety: SafetyVerdict) -> Iterator[str]:
    written = written_by(checkpoint)
    form = f"{checkpoint.format}, {written}" if written else checkpoint.format
    tensors = format_count(len(checkpoint.tensors), "tensor")
    yield escape_text(checkpoint.path)
    yield f"  {form}, {tensors}, {format_nbytes(checkpoint.file_nbytes)}"
    yield f"  {verdict_words(safety)}"
    if safety.verdict in _WITH_CODE and format_of(checkpoint.format).torch_loads:
        yield f"     {before('code', is_first=True)}"
        yield f"       {command('snippet', file_word(checkpoint.path))}"
    for note in sentences(checkpoint.notes):
        yield from wrapped_lines(note, "  ")


def _devices(checkpoint: Checkpoint) -> Iterator[str]:
    totals = device_totals(checkpoint)
    if totals:
        yield "Saved on"
    for total in totals:
        device = device_name(total.device)
        tensors, size = format_count(total.tensors, "tensor"), format_nbytes(total.nbytes)
        yield f"  {device:<10} {tensors:>16} {size:>10}"
    for text, places in hidden_texts(checkpoint):
        yield f"  {text}, outside of tensors, {places}"


def _optimizers(checkpoint: Checkpoint) -> Iterator[str]:
    shown = [optimizer for optimizer in checkpoint.optimizers if optimizer.with_state]
    if shown:
        yield "Parameter names of optimizer state"
    for optimizer in shown:
        yield from wrapped_lines(f"{optimizer.path or '(root)'}: {naming_text(optimizer)}", "  ")


def _findings(findings: Collection[Finding]) -> Iterator[str]:
    if findings:
        yield "Findings"
    for finding in findings:
        yield from finding_lines(finding)


def finding_lines(finding: Finding) -> Iterator[str]:
    """Yield one finding: a mark and the title, why it matters, and the first tensors it is about."""
    yield f"{_MARKS[finding.severity]} {escape_text(finding.title)}"
    yield from wrapped_lines(finding.detail, "     ")
    yield from path_lines(finding.paths, finding.count)


def path_lines(paths: Sequence[str], count: int) -> Iterator[str]:
    """Yield the first of these tensors, one a line, and how many more there are."""
    named = [_cut_middle(path, _LINE - 10) for path in paths[:_MOST_PATHS]]
    yield from (f"     - {path}" for path in named)
    if named and count > len(named):
        yield f"     - and {count - len(named):,} more"


def wrapped_lines(text: str, indent: str) -> list[str]:
    """Wrap a text for a terminal."""
    return textwrap.wrap(escape_text(text), _LINE, initial_indent=indent, subsequent_indent=indent)


# --- the tree -----------------------------------------------------------------------------------------------


def _rows(tree: Tree, depth: int | None, only: Collection[int] | None) -> Iterator[_Row]:
    shown = None if only is None else _with_ancestors(tree, only)
    stack = [(id_, 0) for id_ in reversed(tree.nodes[0].children)]
    while stack:
        id_, level = stack.pop()
        node = tree.nodes[id_]
        if (shown is None or id_ in shown) and (depth is None or level < depth):
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
    indent = "  " * min(level, _MOST_LEVELS)
    name = indent + _cut_middle(node.name, _MOST_WIDE[0] - len(indent))
    if node.kind == "value":
        return name, "", node.text, node.type_text, ""
    if not node.tensors:
        return name, "", "", "", ""
    if node.kind == "tensor":
        return name, node.device_text, node.shape_text, node.type_text, format_nbytes(node.nbytes)
    below = ", ".join(filter(None, (node.type_text, node.shape_text)))
    return name, node.device_text, below, "", format_nbytes(node.nbytes)


def _table(rows: list[_Row], *, sought: bool) -> Iterator[str]:
    """Align the columns; a column is as wide as its widest text, up to a limit, and longer texts are cut."""
    if not rows:
        if sought:
            yield "Nothing matches the filter."
        return
    cut = [_HEADER, *(tuple(map(_cut_end, row, _MOST_WIDE)) for row in rows)]
    widths = [max(map(_width, column)) for column in zip(*cut, strict=True)]
    for *cells, size in cut:
        padded = [cell + " " * (width - _width(cell)) for cell, width in zip(cells, widths[:-1], strict=True)]
        yield "  ".join([*padded, size.rjust(widths[-1])]).rstrip()


def _cut_end(text: str, most: int) -> str:
    """Cut a text to this many columns of a terminal."""
    if _width(text) <= most:
        return text
    text = text[:most]
    while _width(text) >= most:
        text = text[:-1]
    return f"{text}\u2026"


def _cut_middle(text: str, most: int) -> str:
    """Cut the middle out of a name: its beginning and its end say most."""
    if _width(text) <= most:
        return text
    begin, end = text[: most // 2], text[-(most // 2) :]
    while _width(begin) + _width(end) >= most:
        begin, end = (begin[:-1], end) if _width(begin) >= _width(end) else (begin, end[1:])
    return f"{begin}\u2026{end}"


def _width(text: str) -> int:
    """Return the columns of a text in a terminal: two for East Asian characters, none for combining ones."""
    if text.isascii():
        return len(text)
    return len(text) + sum(map(_excess, _NOT_ASCII.findall(text)))


@lru_cache(maxsize=4096)
def _excess(char: str) -> int:
    """Return the columns of a character beyond one; the same few (\u00d7, \u2026) stand in every line."""
    return -1 if unicodedata.combining(char) else int(unicodedata.east_asian_width(char) in "WF")
