"""The report of `show` as text: verdict, devices, tree, optimizers and findings in plain text."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from inspector.containers.formats import format_of
from inspector.containers.notes import sentences
from inspector.model.checkpoint import Checkpoint
from inspector.model.findings import Finding
from inspector.model.totals import device_totals
from inspector.quoting import command, file_word
from inspector.report.colors import device_name
from inspector.report.contents import summary_of
from inspector.report.details import hidden_texts, naming_text, written_by
from inspector.report.page import (
    LINE,
    MARKS,
    Block,
    DeviceRow,
    Line,
    Page,
    Role,
    cut_middle,
    page_of,
    plain_text,
    prose,
    tree_rows,
)
from inspector.report.tree import Tree
from inspector.report.words.formats import before
from inspector.safety.verdict import SafetyVerdict
from inspector.safety.words import verdict_words
from inspector.units import escape_text, format_count, format_nbytes, shown_path, unescaped_path

_MOST_PATHS = 3
_WITH_CODE = frozenset({"needs-allow-list", "runs-code"})


def format_report(
    checkpoint: Checkpoint,
    safety: SafetyVerdict,
    findings: Collection[Finding],
    tree: Tree,
    *,
    depth: int | None = None,
    only: Collection[int] | None = None,
) -> str:
    """Return the report on one file as plain text, see `report_page`."""
    return plain_text(report_page(checkpoint, safety, findings, tree, depth=depth, only=only))


def report_page(
    checkpoint: Checkpoint,
    safety: SafetyVerdict,
    findings: Collection[Finding],
    tree: Tree,
    *,
    depth: int | None = None,
    only: Collection[int] | None = None,
) -> Page:
    """Return the report on one file.

    Args:
        depth: How many levels of the tree to show; None for all.
        only: Ids of the rows to show, together with their ancestors; None for all.
    """
    return page_of(
        _head(checkpoint, safety, is_lost=any(one.fix and one.fix.recovers for one in findings)),
        _devices(checkpoint),
        [tree_rows(tree, depth, only)],
        _optimizers(checkpoint),
        _findings(findings),
    )


def _head(checkpoint: Checkpoint, safety: SafetyVerdict, *, is_lost: bool) -> Iterator[Block]:
    written = written_by(checkpoint)
    form = f"{checkpoint.format}, {written}" if written else checkpoint.format
    tensors = format_count(len(checkpoint.tensors), "tensor")
    yield Line(escape_text(checkpoint.path), "file")
    yield Line(f"{form}, {tensors}, {format_nbytes(checkpoint.file_nbytes)}", indent="  ")
    yield Line(verdict_words(safety), verdict_role(safety), "  ")
    if not is_lost and safety.verdict in _WITH_CODE and format_of(checkpoint.format).torch_loads:
        yield Line(before("code", is_first=True), indent="     ")
        yield Line(command("snippet", file_word(checkpoint.path)), "code", "       ")
    for note in sentences(checkpoint.notes):
        yield from prose(note, "  ")
    summary = summary_of(checkpoint)
    if summary:
        yield Line(summary, indent="  ")


def verdict_role(safety: SafetyVerdict) -> Role:
    """Return whether a verdict is good news."""
    if safety.may_harm:
        return "bad"
    return "good" if safety.verdict == "weights-only" else "caution"


def _devices(checkpoint: Checkpoint) -> Iterator[Block]:
    totals = device_totals(checkpoint)
    if totals:
        yield Line("Saved on", "heading")
    for total in totals:
        tensors, size = format_count(total.tensors, "tensor"), format_nbytes(total.nbytes)
        yield DeviceRow(total.device, device_name(total.device), tensors, size)
    for text, places in hidden_texts(checkpoint):
        yield Line(f"{text}, outside of tensors, {places}", indent="  ")


def _optimizers(checkpoint: Checkpoint) -> Iterator[Block]:
    shown = [optimizer for optimizer in checkpoint.optimizers if optimizer.with_state]
    if shown:
        yield Line("Parameter names of optimizer state", "heading")
    for optimizer in shown:
        yield from prose(
            f"{unescaped_path(shown_path(optimizer.path)) or '(root)'}: {naming_text(optimizer)}", "  "
        )


def _findings(findings: Collection[Finding]) -> Iterator[Block]:
    if findings:
        yield Line("Findings", "heading")
    for finding in findings:
        yield from finding_lines(finding)


def finding_lines(finding: Finding) -> Iterator[Line]:
    """Yield one finding: a mark and the title, why it matters, and the first tensors it is about."""
    yield Line(escape_text(finding.title), finding.severity, f"{MARKS[finding.severity]} ")
    yield from prose(finding.detail, "     ")
    yield from path_lines(finding.paths, finding.count)


def path_lines(paths: Sequence[str], count: int) -> Iterator[Line]:
    """Yield the first of these tensors, one a line, and how many more there are."""
    named = [cut_middle(unescaped_path(shown_path(path)), LINE - 10) for path in paths[:_MOST_PATHS]]
    yield from (Line(path, "bullet", "     - ") for path in named)
    if named and count > len(named):
        yield Line(f"and {count - len(named):,} more", "bullet", "     - ")
