"""The export of a fixed copy as the session words it: proposal, work, and what to say afterwards."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from inspector.report.colours import device_name
from inspector.session.mapping import DeviceMap, Pairs
from inspector.session.screen import ExportDraft
from inspector.units import format_count, format_nbytes

if TYPE_CHECKING:
    from inspector.remap.export import Export

_MOST_MOVES = 16
_MOST_SUFFIX = 16
_MOST_STEM_NBYTES = 200
"""File systems take 255 for a name; the rest is for what is added."""


def draft_of(device_map: DeviceMap) -> ExportDraft:
    """Give what the export dialog starts with."""
    checkpoint = device_map.checkpoint
    return ExportDraft(
        destination=str(propose_destination(Path(checkpoint.path).absolute(), device_map.moves)),
        summary=tuple(_summary(device_map)),
        size=format_nbytes(checkpoint.file_nbytes),
    )


def propose_destination(source: Path, moves: Pairs) -> Path:
    """Give a path beside the source that is free: `best.cpu.pth`, then `best.cpu-2.pth`, ..."""
    kinds = {to.partition(":")[0] for _, to in moves}
    word = kinds.pop() if len(kinds) == 1 else "fixed"
    name = source.name.removesuffix(".gz")
    stem, dot, suffix = name.rpartition(".")
    if not dot or len(suffix) > _MOST_SUFFIX:
        stem, suffix = name, "pth"
    while len(os.fsencode(stem)) > _MOST_STEM_NBYTES:
        stem = stem[:-1]
    candidate = source.with_name(f"{stem}.{word}.{suffix}")
    number = 2
    while os.path.lexists(candidate):
        candidate = source.with_name(f"{stem}.{word}-{number}.{suffix}")
        number += 1
    return candidate


def done_lines(export: Export) -> tuple[str, ...]:
    """Say what was written and how it was checked."""
    lines = [
        f"{format_nbytes(export.nbytes)} written, {format_count(export.moved_tensors, 'tensor')} relabelled."
    ]
    if export.verified:
        lines.append("Opened again and compared: the same tensors and values, devices as planned.")
    if export.kept_tensors:
        lines.append(f"{format_count(export.kept_tensors, 'tensor')} kept on the CPU by design.")
    return tuple(lines)


def _summary(device_map: DeviceMap) -> list[str]:
    plan, tensors = device_map.plan, device_map.checkpoint.tensors
    counts = Counter(tensors[index].device for index in plan.tensors)
    kept = {tensors[index].device for index in plan.kept}
    moves = [(device, to) for device, to in device_map.moves if counts[device] or device not in kept]
    lines = [
        f"{format_count(counts[device], 'tensor')} from {device_name(device)} to {to}"
        for device, to in moves[:_MOST_MOVES]
    ]
    if len(moves) > _MOST_MOVES:
        lines.append(f"and those of {len(moves) - _MOST_MOVES:,} more devices")
    if plan.kept:
        lines.append(f"{format_count(len(plan.kept), 'tensor')} kept on the CPU by design (step, RNG state)")
    if not lines:
        lines.append("Nothing changes: the copy equals the file. Choose destinations in the device map.")
    lines.append("Weights, names and all other values stay as they are, byte for byte.")
    return lines
