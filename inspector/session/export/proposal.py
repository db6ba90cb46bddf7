"""What the export dialog proposes: where to, what changes, and what to think of."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

from inspector.model.checkpoint import Checkpoint
from inspector.records import replace
from inspector.report.colours import device_name
from inspector.session.device_map import DeviceMap, Pairs
from inspector.session.export.kinds import IN_PLACE, KINDS, RECOVER, Kind, form_of, kind_of, offered_kinds
from inspector.session.export.page import ExportDraft, ExportWish
from inspector.session.export.previews import with_preview
from inspector.units import escape_text, format_count, format_nbytes

_PLAIN = ExportWish()
_IN_PLACE = (
    "The file itself is changed: some kilobytes of it, whatever its size. What they were before is kept in a "
    "small file beside it, so that the change can be undone."
)
_MOST_MOVES = 16
_MOST_SUFFIX = 16
_MOST_STEM_NBYTES = 200
"""File systems take 255 for a name; the rest is for what is added."""


def draft_of(device_map: DeviceMap, wish: ExportWish = _PLAIN) -> ExportDraft:
    """Give what the export dialog shows of a wish."""
    checkpoint, kind, form = device_map.checkpoint, kind_of(wish), form_of(wish)
    source = Path(checkpoint.path).absolute()
    in_place = kind.id == IN_PLACE
    draft = ExportDraft(
        wish=wish,
        kinds=offered_kinds(checkpoint),
        destination="" if in_place else str(propose_destination(source, device_map.moves, kind)),
        summary=tuple(_summary(device_map, in_place=in_place)),
        size=format_nbytes(checkpoint.file_nbytes),
        can_exclude=not in_place,
        can_verify=form is None and not in_place,
    )
    if in_place:
        return replace(draft, warnings=(_IN_PLACE,), size="")
    if kind.id == RECOVER:
        intact = tuple(_intact(checkpoint))
        return replace(draft, summary=intact, size="", can_exclude=False, can_verify=False)
    return draft if form is None else with_preview(draft, checkpoint, form)


def propose_destination(source: Path, moves: Pairs, kind: Kind = KINDS[0]) -> Path:
    """Give a path beside the source that is free: `best.cpu.pth`, then `best.cpu-2.pth`, ..."""
    devices = {to.partition(":")[0] for _, to in moves}
    word = kind.word or (devices.pop() if len(devices) == 1 else "fixed")
    name = source.name.removesuffix(".gz")
    stem, dot, suffix = name.rpartition(".")
    if not dot or len(suffix) > _MOST_SUFFIX:
        stem, suffix = name, "pth"
    suffix = kind.suffix or suffix
    while len(os.fsencode(stem)) > _MOST_STEM_NBYTES:
        stem = stem[:-1]
    candidate = source.with_name(f"{stem}.{word}.{suffix}")
    number = 2
    while os.path.lexists(candidate):
        candidate = source.with_name(f"{stem}.{word}-{number}.{suffix}")
        number += 1
    return candidate


def _summary(device_map: DeviceMap, *, in_place: bool) -> list[str]:
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
    branches = device_map.branches[:_MOST_MOVES]
    lines += [f"{escape_text(rule.path)} to {rule.to}" for rule in branches if rule.path]
    if not lines and in_place:
        lines.append("Nothing changes. Choose destinations in the device map.")
    elif not lines:
        lines.append("Nothing changes: the copy equals the file. Choose destinations in the device map.")
    lines.append("Weights, names and all other values stay as they are, byte for byte.")
    return lines


def _intact(checkpoint: Checkpoint) -> list[str]:
    gone = {storage.key for storage in checkpoint.storages if storage.missing}
    lost = sum(tensor.storage in gone for tensor in checkpoint.tensors)
    return [
        f"{format_count(len(checkpoint.tensors) - lost, 'tensor')} seem to be intact; each is checked",
        f"{format_count(lost, 'tensor')} cannot be saved, and their entries are left out",
        "Devices, names and all other values stay as they are",
    ]
