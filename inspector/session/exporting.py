"""The export of a fixed copy as the session words it: proposal, work, and what to say afterwards."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from inspector.errors import CheckpointError
from inspector.model.checkpoint import Checkpoint
from inspector.remap.export import Export
from inspector.remap.plan import Plan
from inspector.session.mapping import Destinations, moves_of
from inspector.session.screen import ExportDraft, FailurePage
from inspector.units import format_count, format_nbytes


def draft_of(checkpoint: Checkpoint, going: Destinations, plan: Plan) -> ExportDraft:
    """Give what the export dialog starts with."""
    return ExportDraft(
        destination=str(propose_destination(Path(checkpoint.path).absolute(), going)),
        summary=tuple(_summary(checkpoint, going, plan)),
        size=format_nbytes(checkpoint.file_nbytes),
    )


def propose_destination(source: Path, going: Destinations) -> Path:
    """Give a path beside the source that is free: `best.cpu.pth`, then `best.cpu-2.pth`, ..."""
    kinds = {to.partition(":")[0] for _, to in moves_of(going)}
    word = kinds.pop() if len(kinds) == 1 else "fixed"
    name = source.name.removesuffix(".gz")
    stem, dot, suffix = name.rpartition(".")
    if not dot:
        stem, suffix = name, "pth"
    candidate = source.with_name(f"{stem}.{word}.{suffix}")
    number = 2
    while candidate.exists():
        candidate = source.with_name(f"{stem}.{word}-{number}.{suffix}")
        number += 1
    return candidate


def done_lines(export: Export) -> tuple[str, ...]:
    """Say what was written and how it was checked."""
    lines = [
        f"{format_nbytes(export.nbytes)} written, {format_count(export.moved_tensors, 'tensor')} relabelled.",
        "Opened again and compared: the same tensors and values, devices as planned.",
    ]
    if export.kept_tensors:
        lines.append(f"{format_count(export.kept_tensors, 'tensor')} stayed on the CPU by design.")
    return tuple(lines)


def failure_of(error: CheckpointError, title: str) -> FailurePage:
    """Give the page that explains an error."""
    return FailurePage(title=title, what=error.what, where=error.where or "", remedy=error.remedy or "")


def _summary(checkpoint: Checkpoint, going: Destinations, plan: Plan) -> list[str]:
    counts = Counter(checkpoint.tensors[index].device for index in plan.tensors)
    lines = [
        f"{format_count(counts[device], 'tensor')} from {device} to {to}" for device, to in moves_of(going)
    ]
    if plan.kept:
        lines.append(f"{format_count(len(plan.kept), 'tensor')} stay on the CPU by design (step, RNG state)")
    if not lines:
        lines.append("Nothing changes: the copy equals the file. Choose destinations in the device map.")
    lines.append("Weights, names and all other values stay as they are, byte for byte.")
    return lines
