"""The values of the selected tensor, and the scan of all, as they are shown."""

from __future__ import annotations

from typing import cast

from inspector.errors import CheckpointError, ValuesError
from inspector.model.checkpoint import Tensor
from inspector.model.findings import Finding
from inspector.progress import Progress
from inspector.remap.safetensors import refusal_of as safetensors_refusal
from inspector.report.damage import WORDS as DAMAGE
from inspector.report.damage import Marks, damage_of
from inspector.report.details import python_expression
from inspector.report.words.values import (
    THRESHOLDS,
    chart_summary,
    rank_lines,
    scan_sentence,
    scanned_words,
    statistics_lines,
)
from inspector.safety.verdict import SafetyVerdict
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
from inspector.snippet.tensor import Wanted, why_no_code
from inspector.units import cut_text, escape_text, format_nbytes, unescaped_path
from inspector.values.request import Request, Requests, read_nbytes
from inspector.values.statistics import Oddity, Ranks, Scan, Statistics

AUTOMATIC_NBYTES = 64 << 20
"""Up to here values are read without being asked for."""
_MOST_LISTED = 200
_MOST_TITLE = 200
_CANCELLED = "Cancelled."
_NO_FORM = "Neither NumPy nor safetensors holds such tensors: save the parts of it, which are below it."
_NAN_LEVEL = 255


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
    if "layout" in request or is_packed(tensor.dtype):
        return ()
    shape = tuple(request["shape"])
    return shape if all(shape) else ()


def choice_of(state: State, shape: tuple[int, ...]) -> SliceChoice:
    """Return the slice that is looked at."""
    return state.slice if state.slice is not None else first_choice(shape)


NPY, SAFETENSORS = ".npy", ".safetensors"
_NOT_NUMPYS = {"bfloat16": "float32", "complex32": "complex64"}


def forms_of(tensor: Tensor, request: Request) -> tuple[tuple[str, str], ...]:
    """Return what a tensor can be saved as: the suffix of each kind of file, and what it is."""
    found = []
    is_quantized = request.get("axis") is not None or request.get("scale") is not None
    if "layout" not in request and not is_packed(tensor.dtype) and request.get("axis") is None:
        is_decoded = is_quantized or "blocks" in request["place"] or tensor.dtype.startswith("float8")
        other = "float32" if is_decoded else None
        other = other or _NOT_NUMPYS.get(tensor.dtype)
        found.append((NPY, f"NumPy array, as {other}" if other else "NumPy array"))
    is_changed = is_quantized or request["conj"] or request["neg"] or "part" in request
    is_plain = not (is_changed or is_packed(tensor.dtype))  # whose halves of bytes are read apart
    if is_plain and not safetensors_refusal(saved_name(tensor), tensor.dtype, tensor.layout, is_stored=True):
        found.append((SAFETENSORS, "safetensors"))
    return tuple(found)


def saved_name(tensor: Tensor) -> str:
    """Return the name of a tensor that is saved alone: that which it has in its state dict."""
    name = str(tensor.keys[-1]) if tensor.keys else ""
    return name.removeprefix(".") or "tensor"


def is_packed(dtype: str) -> bool:
    """Return whether elements of a type share bytes."""
    return dtype.startswith(("quint4", "quint2")) or dtype.endswith("_x2")


def wanted_code(document: Document, row: int, request: Request | str) -> Wanted:
    """Return what `snippet.tensor` writes code for."""
    tensor = document.checkpoint.tensors[row]
    part = "" if isinstance(request, str) else request["place"]["part"]
    expression = python_expression(tensor)
    damage = damage_of(document.checkpoint).get(row)
    return Wanted(
        checkpoint=document.checkpoint,
        tensor=tensor,
        expression=expression,
        part=part,
        damage="" if damage is None else _lowered(DAMAGE[damage]).rstrip("."),
    )


def values_page(
    state: State,
    document: Document,
    requests: Requests,
    finished_scan: ScanPage | None,
    verdict: SafetyVerdict,
) -> ValuesPage:
    """Return what is shown of the values of the selected tensor, and of the scan of all."""
    row = selected_row(state)
    scan = finished_scan or _unfinished_scan(state)
    if row is None:
        return ValuesPage(scan=scan)
    tensor = document.checkpoint.tensors[row]
    title = escape_text(cut_text(unescaped_path(tensor.path), _MOST_TITLE)) or "the root"
    request = request_for(requests, row)
    no_code = why_no_code(wanted_code(document, row, request), verdict)
    no_code = f"No code for this tensor: {no_code}." if no_code else ""
    if isinstance(request, str):
        return ValuesPage(
            row=row,
            title=title,
            refusal=request,
            scan=scan,
            no_forms=f"Not to be saved: {_lowered(request)}",
            no_code=no_code,
        )
    job = state.job(STATISTICS)
    found = None if job is None else cast("Statistics | None", job.result)
    shape = slice_shape(tensor, request)
    ranked = state.job(RANK)
    ranks = None if ranked is None else cast("Ranks | None", ranked.result)
    pictured, cells = state.job(PICTURE), state.job(CELLS)
    picture = None if pictured is None else cast("Picture | None", pictured.result)
    forms = forms_of(tensor, request)
    return ValuesPage(
        row=row,
        title=title,
        facts=f"{format_nbytes(read_nbytes(request))} to read",
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
        picture=picture,
        picture_note=job_error(pictured) if picture is None else picture_note(picture),
        forms=forms,
        no_forms="" if forms else _NO_FORM,
        no_code=no_code,
        cells=None if cells is None else cast("CellBlock | None", cells.result),
        scan=scan,
        is_saving=_progress(state.job(SAVE)) is not None,
        saved=_saved(state.job(SAVE)),
    )


def picture_note(picture: Picture) -> str:
    """Return how to read a picture, but for what its colors stand for."""
    parts = []
    if picture.seen != picture.shape:
        seen, whole = (f"{rows:,} \u00d7 {columns:,}" for rows, columns in (picture.seen, picture.shape))
        parts.append(f"Only the first {seen} of {whole}.")
    if _NAN_LEVEL in picture.levels:
        parts.append("Yellow is NaN.")
    if picture.is_clipped:
        parts.append("Larger numbers look like the ends.")
    if picture.steps != (1, 1):
        block = f"{picture.steps[0]:,} \u00d7 {picture.steps[1]:,}"
        parts.append(f"A cell is the one of {block} that is farthest from zero.")
    return " ".join(parts)


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


def _lowered(sentence: str) -> str:
    return sentence[:1].lower() + sentence[1:]


def _said(text: str) -> str:
    return escape_text(f"{text[:1].upper()}{text[1:].rstrip('.')}.")
