"""The values of the selected tensor, and the scan of all, as they are shown."""

from __future__ import annotations

from typing import cast

from inspector.errors import CheckpointError, ValuesError
from inspector.model.checkpoint import Tensor
from inspector.model.findings import Finding
from inspector.progress import Progress
from inspector.report.damage import Marks
from inspector.report.words.values import (
    THRESHOLDS,
    chart_summary,
    rank_lines,
    scan_sentence,
    scanned_words,
    statistics_lines,
)
from inspector.session.document import Document
from inspector.session.operations import Job
from inspector.session.state import State
from inspector.session.values.kinds import CELLS, PICTURE, RANK, SAVE, SCAN, STATISTICS, selected_row
from inspector.session.values.page import (
    CellBlock,
    Picture,
    ScanPage,
    ScanRow,
    SliceChoice,
    ValuesPage,
    first_choice,
)
from inspector.units import cut_text, escape_text, format_nbytes, format_shape, unescaped_path
from inspector.values.request import Request, Requests, read_nbytes
from inspector.values.statistics import Oddity, Ranks, Scan, Statistics

AUTOMATIC_NBYTES = 64 << 20
"""Up to here values are read without being asked for."""
_MOST_LISTED = 200
_MOST_TITLE = 200
_CANCELLED = "Cancelled."


def requests_of(document: Document) -> Requests:
    """Return what words the requests; it looks all storages up, once."""

    def prepared() -> Requests:
        requests = Requests(document.checkpoint)
        requests.prepare()
        return requests

    return document.recall("requests", (), prepared)


def request_for(requests: Requests, row: int) -> Request | str:
    """Return what is asked about a tensor, or why it has no values."""
    try:
        return requests.of(row)
    except ValuesError as error:
        return _said(error.what)


def slice_shape(tensor: Tensor, request: Request) -> tuple[int, ...]:
    """Return the shape that slices are taken of; empty where there are none."""
    if "layout" in request or tensor.dtype.startswith(("quint4", "quint2")) or tensor.dtype.endswith("_x2"):
        return ()
    shape = tuple(request["shape"])
    return shape if all(shape) else ()


def choice_of(state: State, shape: tuple[int, ...]) -> SliceChoice:
    """Return the slice that is looked at."""
    return state.slice if state.slice is not None else first_choice(shape)


def values_page(
    state: State, document: Document, requests: Requests, finished_scan: ScanPage | None
) -> ValuesPage:
    """Return what is shown of the values of the selected tensor, and of the scan of all."""
    row = selected_row(state)
    scan = finished_scan or _unfinished_scan(state)
    if row is None:
        return ValuesPage(scan=scan)
    tensor = document.checkpoint.tensors[row]
    title = escape_text(cut_text(unescaped_path(tensor.path), _MOST_TITLE)) or "the root"
    facts = f"{tensor.dtype}, {format_shape(tensor.shape)}"
    request = request_for(requests, row)
    if isinstance(request, str):
        return ValuesPage(row=row, title=title, facts=facts, refusal=request, scan=scan)
    job = state.job(STATISTICS)
    found = None if job is None else cast("Statistics | None", job.result)
    shape = slice_shape(tensor, request)
    ranked = state.job(RANK)
    ranks = None if ranked is None else cast("Ranks | None", ranked.result)
    pictured, cells = state.job(PICTURE), state.job(CELLS)
    return ValuesPage(
        row=row,
        title=title,
        facts=f"{facts}; {format_nbytes(read_nbytes(request))} to read",
        progress=_progress(job) or _progress(ranked),
        error=job_error(job) or job_error(ranked),
        lines=(
            *(() if found is None else statistics_lines(found)),
            *(() if ranks is None else rank_lines(ranks)),
        ),
        has_rank=len(shape) > 1 and ranks is None,
        statistics=found,
        summary="" if found is None else chart_summary(found),
        shape=shape,
        choice=choice_of(state, shape) if shape else None,
        picture=None if pictured is None else cast("Picture | None", pictured.result),
        picture_error=job_error(pictured),
        cells=None if cells is None else cast("CellBlock | None", cells.result),
        scan=scan,
        saved=_saved(state.job(SAVE)),
    )


def _saved(job: Job | None) -> str:
    if job is None:
        return ""
    if job.status == "running":
        return "Saving \u2026"
    return job_error(job) or f"Saved as {escape_text(str(job.result))}."


def _unfinished_scan(state: State) -> ScanPage:
    job = state.job(SCAN)
    return ScanPage() if job is None else ScanPage(progress=_progress(job), sentence=job_error(job))


def finished_scan(document: Document, scan: Scan | None) -> ScanPage | None:
    """Return what is shown of the scan of all tensors when it has ended."""
    if scan is None:
        return None
    nodes, tensors = document.tree.tensor_nodes, document.checkpoint.tensors
    odd = [one for one in scan.tensors if one.oddities or one.statistics is None]
    rows = tuple(
        ScanRow(
            path=escape_text(cut_text(unescaped_path(tensors[one.row].path), _MOST_TITLE)),
            node=nodes[one.row],
            words=escape_text(scanned_words(one)),
        )
        for one in sorted(odd, key=lambda one: not one.oddities)[:_MOST_LISTED]
    )
    return ScanPage(
        sentence=scan_sentence(scan),
        is_odd=any(one.oddities for one in scan.tensors),
        rows=rows,
        more=len(odd) - len(rows),
        note=THRESHOLDS,
    )


def scan_findings(document: Document, scan: Scan | None) -> tuple[Finding, ...]:
    """Return what a scan found, as findings."""
    if scan is None:
        return ()
    from inspector.diagnose.findings.values import value_findings  # noqa: PLC0415 - few files are scanned

    return value_findings(document.checkpoint, scan)


def sparks_of(document: Document, scan: Scan | None) -> tuple[tuple[int, ...], ...]:
    """Return a small histogram for each tensor row, as heights from 0 to 8; empty before a scan."""
    if scan is None:
        return ()
    found: list[tuple[int, ...]] = [()] * len(document.checkpoint.tensors)
    for one in scan.tensors:
        found[one.row] = one.spark
    return tuple(found)


def row_marks(document: Document, sampled: Scan | None) -> Marks:
    """Return the rows that something is wrong with: damaged ones, and those in which NaN was read."""
    if sampled is None:
        return document.tree.marks
    from inspector.diagnose.findings.values import spoiled  # noqa: PLC0415 - few files are scanned

    nodes = document.tree.tensor_nodes
    found = {nodes[one.row]: one for one in spoiled(document.checkpoint, sampled)}
    words = {node: "NaN" if Oddity.NAN in one.oddities else "Inf" for node, one in found.items() if node >= 0}
    return Marks({**words, **document.tree.marks.words})


def _progress(job: Job | None) -> Progress | None:
    return job.progress if job is not None and job.status == "running" else None


def job_error(job: Job | None) -> str:
    """Return why a job failed, or that it was cancelled; empty for one that did not."""
    if job is None or job.status == "running" or (job.error is None and job.status != "cancelled"):
        return ""
    if job.status == "cancelled":
        return _CANCELLED
    # What was not foreseen is a mistake of this program, and is reported as such.
    if not isinstance(job.error, CheckpointError):
        return f"Unexpected {type(job.error).__name__}: {escape_text(str(job.error))}"
    return _said(str(job.error))


def _said(text: str) -> str:
    return escape_text(f"{text[:1].upper()}{text[1:].rstrip('.')}.")
