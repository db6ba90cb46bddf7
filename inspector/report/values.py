"""Statistics as JSON, and the tensors that a command line names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from inspector.diagnose.findings.values import is_sound, value_findings
from inspector.errors import PlanError
from inspector.model.checkpoint import Checkpoint, Tensor
from inspector.model.findings import Finding
from inspector.quoting import command, file_word
from inspector.records import as_document
from inspector.remap.rules import Rule, as_meant, path_of
from inspector.report.jsonable import finding_document, finite
from inspector.report.page import Bars, Block, Fact, Line, Page, Pointed, page_of, plain_text
from inspector.report.words.formats import shown_place
from inspector.report.words.values import (
    THRESHOLDS,
    rank_lines,
    scan_sentence,
    scanned_words,
    statistics_lines,
)
from inspector.units import cut_text, escape_text, format_shape, unescaped_path
from inspector.values.statistics import Index, Ranks, Scan, Scanned, Statistics

Document = dict[str, Any]
_MOST_CHARS = 80
_MOST_COMPARED = 2000


def choose_tensors(checkpoint: Checkpoint, patterns: Sequence[str]) -> list[int]:
    """Return the rows that paths or patterns mean, in the order of the file; a group means all below it."""
    paths = [tensor.path for tensor in checkpoint.tensors]
    found: set[int] = set()
    for given, pattern in as_meant(patterns, checkpoint).items():
        path = path_of(pattern)
        rows = [] if path is None else _exactly(paths, path)
        rows = rows or _matching(paths, pattern) or _matching(paths, f"{pattern}/**")
        rows = rows or _exactly([*map(unescaped_path, paths)], given)  # as answers for people name it
        if not rows:
            raise _unknown(checkpoint, paths, given)
        found.update(rows)
    return sorted(found)


def _exactly(paths: list[str], pattern: str) -> list[int]:
    return [row for row, path in enumerate(paths) if path == pattern]


def _matching(paths: list[str], pattern: str) -> list[int]:
    rule = Rule(path=pattern, to="cpu")
    return [row for row, path in enumerate(paths) if rule.matches("", (path,))]


def _unknown(checkpoint: Checkpoint, paths: list[str], pattern: str) -> PlanError:
    from difflib import get_close_matches  # noqa: PLC0415 - only mistakes need it

    shown = escape_text(cut_text(pattern, _MOST_CHARS))
    if any(row.path == pattern for row in checkpoint.values):
        return PlanError("this is a value and no tensor", where=shown)
    near = get_close_matches(pattern, paths[:_MOST_COMPARED], 1, 0.6)
    meant = f"did you mean {escape_text(cut_text(near[0], _MOST_CHARS))}? " if near else ""
    see = f"{meant}see the paths with: {command('show', file_word(checkpoint.path))}"
    return PlanError("no tensor of the file has this path", where=shown, remedy=see)


# --- documents ----------------------------------------------------------------------------------------------


def statistics_document(
    checkpoint: Checkpoint, row: int, found: Statistics, ranks: Ranks | None = None
) -> Document:
    """Return the statistics of a tensor as JSON has them."""
    tensor = checkpoint.tensors[row]
    head = {
        "schema": 1,
        "path": checkpoint.path,
        "tensor": tensor.path,
        "dtype": tensor.dtype,
        "shape": list(tensor.shape),
    }
    more = {} if ranks is None else {"ranks": as_document(ranks)}
    document: Document = finite({**head, **_figures(found), **_histograms(found)} | _more(found) | more)
    return document


def _figures(found: Statistics) -> Document:
    return {
        "numel": found.numel,
        "finite": found.finite,
        "min": None if found.is_complex else found.low,
        "max": None if found.is_complex else found.high,
        "mean": found.mean,
        "std": found.std,
        "norm": found.norm,
        "zeros": found.zeros,
        "sparsity": found.sparsity,
        "nan": found.nan,
        "posinf": found.posinf,
        "neginf": found.neginf,
        "first_nan": _index(found.first_nan),
        "first_posinf": _index(found.first_posinf),
        "first_neginf": _index(found.first_neginf),
        "unique": found.unique,
        "dead_rows": found.dead_rows,
    }


def _histograms(found: Statistics) -> Document:
    return {
        "histogram": {"edges": list(found.edges), "counts": list(found.counts)},
        "magnitudes": {"exponent": found.exponent, "counts": list(found.octaves)},
    }


def _more(found: Statistics) -> Document:
    more: Document = {}
    if found.is_complex:
        more = {
            "min_abs": found.low,
            "max_abs": found.high,
            "complex_mean": list(found.complex_mean or ()) or None,
        }
    if found.part:
        more["of"] = found.part
    if found.only_stored:
        more["of"] = "stored"
    if found.is_dequantized:
        more["dequantized"] = True
    if found.stored is not None:
        more["stored"] = {**_figures(found.stored), **_histograms(found.stored)}
    return more


def _index(index: Index | None) -> list[int] | None:
    return None if index is None else list(index)


def scan_document(checkpoint: Checkpoint, scan: Scan, findings: Sequence[Finding]) -> Document:
    """Return a scan as JSON has it: what is odd or could not be read, and the figures of all tensors."""
    return {
        "schema": 1,
        "path": checkpoint.path,
        "scanned": len(scan.tensors) - len(scan.unread),
        "nbytes": scan.nbytes,
        "odd": [
            {"path": checkpoint.tensors[one.row].path, "what": [oddity.value for oddity in one.oddities]}
            for one in scan.tensors
            if one.oddities
        ],
        "unread": [{"path": checkpoint.tensors[one.row].path, "why": one.why} for one in scan.unread],
        "tensors": [_scanned(checkpoint, one, one.statistics) for one in scan.tensors if one.statistics],
        "findings": [finding_document(finding) for finding in findings],
    }


def _scanned(checkpoint: Checkpoint, one: Scanned, found: Statistics) -> Document:
    figures: Document = finite(_figures(found))
    return {"path": checkpoint.tensors[one.row].path, **figures, "spark": list(one.spark)}


# --- text ---------------------------------------------------------------------------------------------------


def statistics_text(tensor: Tensor, found: Statistics, ranks: Ranks | None = None) -> str:
    """Return the statistics of a tensor as plain text, see `statistics_page`."""
    return plain_text(statistics_page(tensor, found, ranks))


def statistics_page(tensor: Tensor, found: Statistics, ranks: Ranks | None = None) -> Page:
    """Return the statistics of a tensor."""
    said = f"{tensor.dtype}  {format_shape(tensor.shape)}"
    lines = statistics_lines(found) + ([] if ranks is None else rank_lines(ranks))
    width = max(len(caption) for caption, _ in lines)
    blocks: list[Block] = [Pointed(unescaped_path(shown_place(tensor)), said, "", is_title=True)]
    blocks += (Fact(caption, escape_text(text), width) for caption, text in lines)
    if found.counts:
        blocks.append(Bars("Histogram", found.counts, found.edges, width))
    return page_of(blocks)


def scan_text(checkpoint: Checkpoint, scan: Scan) -> str:
    """Return what a scan found as plain text, see `scan_page`."""
    return plain_text(scan_page(checkpoint, scan))


def scan_page(checkpoint: Checkpoint, scan: Scan) -> Page:
    """Return what a scan found: a sentence, then each odd tensor with what is odd."""
    is_bad = not is_sound(scan, value_findings(checkpoint, scan))
    is_odd = any(one.oddities for one in scan.tensors)
    blocks: list[Block] = [Line(scan_sentence(scan), "bad" if is_bad else "caution" if is_odd else "good")]
    blocks += (
        Pointed(unescaped_path(shown_place(checkpoint.tensors[one.row])), scanned_words(one))
        for one in scan.tensors
        if one.oddities or one.statistics is None
    )
    return page_of([*blocks, Line(THRESHOLDS, "aside")])
