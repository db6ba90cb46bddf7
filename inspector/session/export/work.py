"""Carrying an export out, away from the main thread, and wording what came of it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

from inspector import __version__
from inspector.progress import Progress
from inspector.records import dataclass
from inspector.report.words.verdicts import SAFETY
from inspector.session.device_map import DeviceMap
from inspector.session.export.draft import left_out_lines
from inspector.session.export.kinds import IN_PLACE, RECOVER, form_of, kind_of
from inspector.session.screen import ExportResult, ExportWish
from inspector.units import escape_text, format_count, format_nbytes

if TYPE_CHECKING:
    from inspector.remap.convert.forms import Form, FormExport
    from inspector.remap.recover.recover import Recovery
    from inspector.remap.relabel.export import Export
    from inspector.remap.relabel.in_place import Patched

_VERIFIES: dict[str, Literal["quick", "full", "torch"]] = {"quick": "quick", "full": "full", "torch": "torch"}
_MOST_LOST = 6
_CHANGED, _AS_IS = "The file is changed", "The file is as it was"
_OPENED = "Opened again and compared: the same tensors and values, devices as planned."


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Order:
    """What shall be written where.

    Attributes:
        device_map: The file and its new devices.
        wish: What is asked for.
        destination: Where; the file's own path for a change in place.
        overwrite: Whether a file that stands there may be replaced.
    """

    device_map: DeviceMap
    wish: ExportWish
    destination: str
    overwrite: bool


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Copied:
    """What a receipt is made of: what was to be written, and what was."""

    order: Order
    export: Export


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Outcome:
    """What was done, in words and for a receipt, and whether the open file itself was changed."""

    result: ExportResult
    copied: Copied | None = None
    changed: bool = False


def carry_out(order: Order, progress: Progress) -> Outcome:
    """Write what was asked for.

    Raises:
        CheckpointError: It cannot be written; nothing is left behind.
        CancelledError: The work was cancelled; nothing is left behind.
    """
    form = form_of(order.wish)
    if kind_of(order.wish).id == IN_PLACE:
        return _patch(order, progress)
    if kind_of(order.wish).id == RECOVER:
        return _recover(order, progress)
    if form is not None:
        return _write_form(order, form, progress)
    from inspector.remap.relabel.export import export_copy  # noqa: PLC0415 - not before somebody exports

    export = export_copy(
        order.device_map.checkpoint.path,
        Path(order.destination),
        order.device_map.plan,
        overwrite=order.overwrite,
        verify=_VERIFIES.get(order.wish.verify, "quick"),
        progress=progress,
    )
    return Outcome(result=copy_result(export), copied=Copied(order=order, export=export))


def undo(path: str, progress: Progress) -> Outcome:
    """Restore a file that was changed in place.

    Raises:
        CheckpointError: There is no record of the change, or the file was changed since.
        CancelledError: The work was cancelled; the file is as it was.
    """
    from inspector.remap.relabel.in_place import undo_patch  # noqa: PLC0415 - seldom asked for

    nbytes = undo_patch(path, progress=progress)
    lines = (f"The file is what it was before the change: {format_nbytes(nbytes)}.",)
    result = ExportResult(destination=path, lines=lines, title="The change is undone", is_copy=False)
    return Outcome(result=result, changed=True)


def save_receipt(copied: Copied, destination: str, progress: Progress) -> None:
    """Write the receipt of a copy; both files are read for their hashes.

    Raises:
        CheckpointError: A file cannot be read, or the receipt not written.
        CancelledError: The work was cancelled.
    """
    from inspector.remap.compare.receipt import make_receipt, refuse_receipt, write_receipt  # noqa: PLC0415 - seldom asked for
    from inspector.remap.files.destination import refuse_destination  # noqa: PLC0415 - seldom asked for

    device_map, export = copied.order.device_map, copied.export
    refuse_receipt(Path(destination), export.destination)
    refuse_destination(device_map.checkpoint.path, Path(destination), overwrite=True)
    receipt = make_receipt(device_map.checkpoint, device_map.plan, export, __version__, progress)
    write_receipt(receipt, Path(destination), overwrite=True)


def _patch(order: Order, progress: Progress) -> Outcome:
    from inspector.remap.relabel.in_place import patch_in_place  # noqa: PLC0415 - not before somebody asks for it

    device_map = order.device_map
    patched = patch_in_place(device_map.checkpoint.path, device_map.plan, progress=progress)
    return Outcome(result=patch_result(patched), changed=patched.record is not None)


def _recover(order: Order, progress: Progress) -> Outcome:
    from inspector.remap.recover.recover import recover  # noqa: PLC0415 - seldom needed

    path = order.device_map.checkpoint.path
    saved = recover(path, Path(order.destination), overwrite=order.overwrite, progress=progress)
    return Outcome(result=recovery_result(saved))


def _write_form(order: Order, form: Form, progress: Progress) -> Outcome:
    from inspector.remap.convert.export import export_form  # noqa: PLC0415 - not before somebody asks for it

    device_map = order.device_map
    written = export_form(
        device_map.checkpoint.path,
        Path(order.destination),
        device_map.plan,
        form,
        overwrite=order.overwrite,
        progress=progress,
    )
    return Outcome(result=form_result(written))


# --- what is said -------------------------------------------------------------------------------------------


def copy_result(export: Export) -> ExportResult:
    """Say what was copied and how it was checked."""
    moved, nbytes = format_count(export.moved_tensors, "tensor"), format_nbytes(export.nbytes)
    lines = [f"{nbytes} written, {moved} relabelled."]
    if export.verified:
        lines.append(_OPENED)
    if export.kept_tensors:
        lines.append(f"{format_count(export.kept_tensors, 'tensor')} kept on the CPU by design.")
    if export.compared_nbytes and export.compared_nbytes == export.copied_nbytes:
        lines.append("Every copied byte was compared with the file's.")
    warnings = []
    torch = export.torch
    if torch is not None and torch.verdict == "equal":
        lines.append(f"torch {escape_text(torch.torch)} loads it, with equal tensors.")
    elif torch is not None:
        said = escape_text(torch.detail).rstrip(".")
        warnings.append(f"torch was {'not asked' if not torch.is_bad else 'not content'}: {said}.")
    return ExportResult(
        destination=str(export.destination), lines=tuple(lines), warnings=tuple(warnings), has_receipt=True
    )


def patch_result(patched: Patched) -> ExportResult:
    """Say what was changed in the file itself."""
    if patched.record is None:
        lines = ["There was nothing to change."]
        return ExportResult(destination=str(patched.path), lines=tuple(lines), title=_AS_IS, is_copy=False)
    moved, nbytes = format_count(patched.moved_tensors, "tensor"), format_nbytes(patched.written_nbytes)
    lines = [f"{moved} relabelled, {nbytes} written."]
    if patched.verified:
        lines.append(_OPENED)
    lines.append(f"It can be undone for as long as {escape_text(patched.record.name)} stands beside it.")
    return ExportResult(
        destination=str(patched.path), lines=tuple(lines), title=_CHANGED, is_copy=False, can_undo=True
    )


def form_result(written: FormExport) -> ExportResult:
    """Say what an export in another form holds."""
    held, nbytes = format_count(written.tensors, "tensor"), format_nbytes(written.nbytes)
    lines = [f"{held} in {nbytes}; the file has {format_nbytes(written.source_nbytes)}."]
    if written.verified:
        lines.append("Opened again and compared: the tensors are those of the file.")
    lines += left_out_lines(written.left_out, written.tied)  # as it was asked for: nothing to worry about
    warnings = []
    if written.overflowed:
        warnings.append(f"{format_count(written.overflowed, 'number')} became infinite when they were cast.")
    return ExportResult(destination=str(written.destination), lines=tuple(lines), warnings=tuple(warnings))


def recovery_result(saved: Recovery) -> ExportResult:
    """Say what was saved of a damaged file, and what is lost."""
    lines = [f"{format_count(saved.tensors, 'tensor')} saved, {format_nbytes(saved.storage_nbytes)}."]
    if saved.unchecked:
        lines.append(f"{format_count(saved.unchecked, 'storage')} had no checksum to compare.")
    warnings = [f"Lost: {escape_text(row.path)}, {row.why}." for row in saved.lost[:_MOST_LOST]]
    if len(saved.lost) > _MOST_LOST:
        warnings.append(f"Lost as well: {len(saved.lost) - _MOST_LOST:,} more tensors.")
    if saved.verdict != "weights-only":
        warnings.append(f"The new file: {SAFETY[saved.verdict]}.")
    return ExportResult(
        destination=str(saved.destination),
        lines=tuple(lines),
        title="What was intact is saved",
        warnings=tuple(warnings),
    )
