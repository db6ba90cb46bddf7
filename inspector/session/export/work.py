"""Carrying an export out, away from the main thread, and wording what came of it."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from inspector import __version__
from inspector.progress import Progress
from inspector.records import dataclass, replace
from inspector.remap.export import (
    Export,
    export_copy,
    export_folder,
    make_receipt,
    refuse_receipt,
    write_receipt,
)
from inspector.remap.export_form import export_form
from inspector.remap.files import refuse_destination
from inspector.remap.forms import Form, FormExport
from inspector.remap.in_place import Patched, patch_in_place, undo_patch
from inspector.remap.plan import Plan
from inspector.remap.recover import Recovery, recover
from inspector.remap.torch_check import TorchCheck
from inspector.report.words import results as words
from inspector.session.device_map import DeviceMap
from inspector.session.export.draft import left_out_lines, omission_lines
from inspector.session.export.kinds import IN_PLACE, RECOVER, form_of, kind_of
from inspector.session.export.outlook import outlook_at
from inspector.session.export.page import ExportResult, ExportWish
from inspector.session.state import THIS
from inspector.target.profile import Profile

_VERIFIES: dict[str, Literal["quick", "full", "torch"]] = {"quick": "quick", "full": "full", "torch": "torch"}
_MOST_LOST = 6
_CHANGED, _AS_IS = "The file is changed", "The file is unchanged"
_ELSEWHERE = "The target is not this machine."
_SAME = "The copy changes nothing"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Order:
    """What to write where.

    Attributes:
        destination: Where; the file's own path for a change in place.
        target: The machine that what was written is judged for.
        python: What names the Python whose torch casts and loads; None for the one that counts.
    """

    device_map: DeviceMap
    wish: ExportWish
    destination: str
    overwrite: bool
    target: Profile
    python: str | None = None

    @property
    def plan(self) -> Plan:
        """What changes."""
        return self.device_map.plan_for(self.wish)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Copied:
    """What a receipt is made of: what was to be written, and what was."""

    order: Order
    export: Export


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Outcome:
    """What was done, in words and for a receipt.

    Attributes:
        changed: Whether the open file itself was.
        can_be_tried: Whether torch may load what was written, and has not yet.
    """

    result: ExportResult
    copied: Copied | None = None
    changed: bool = False
    can_be_tried: bool = False


def carry_out(order: Order, progress: Progress) -> Outcome:
    """Write what was asked for, and judge what was written."""
    return _judged(_carry_out(order, progress), order.target, progress)


def _judged(outcome: Outcome, target: Profile, progress: Progress) -> Outcome:
    result, export = outcome.result, None if outcome.copied is None else outcome.copied.export
    outlook = outlook_at(result.destination, target, progress)
    sentence = f"{outlook.sentence[:1].upper()}{outlook.sentence[1:]}"
    if outlook.loads:
        result = replace(result, loads=True, lines=(*result.lines, sentence))
        if target.id != THIS:
            result = replace(result, warnings=(*result.warnings, _ELSEWHERE))
    else:
        result = replace(result, warnings=(sentence, *result.warnings))
    is_loaded = export is not None and export.torch is not None and export.torch.verdict == "equal"
    return replace(outcome, result=result, can_be_tried=outlook.can_be_tried and not is_loaded)


def _carry_out(order: Order, progress: Progress) -> Outcome:
    form = form_of(order.wish)
    if kind_of(order.wish).id == IN_PLACE:
        return _patch(order, progress)
    if kind_of(order.wish).id == RECOVER:
        return _recover(order, progress)
    if form is not None:
        return _write_form(order, form, progress)
    if order.device_map.checkpoint.parts:
        return _copy_folder(order, progress)
    export = export_copy(
        order.device_map.checkpoint.path,
        Path(order.destination),
        order.plan,
        overwrite=order.overwrite,
        verify=_VERIFIES.get(order.wish.verify, "quick"),
        progress=progress,
        python=order.python,
    )
    return Outcome(result=copy_result(export), copied=Copied(order=order, export=export))


def _copy_folder(order: Order, progress: Progress) -> Outcome:
    verify = _VERIFIES.get(order.wish.verify, "quick")
    export = export_folder(
        order.device_map.checkpoint,
        Path(order.destination),
        order.plan,
        verify="quick" if verify == "torch" else verify,
        progress=progress,
    )
    return Outcome(result=copy_result(export))


def undo(path: str, target: Profile, progress: Progress) -> Outcome:
    """Restore a file that was changed in place."""
    nbytes = undo_patch(path, progress=progress)
    lines = tuple(words.as_lines([words.undone(nbytes)]))
    result = ExportResult(destination=path, lines=lines, done="The change is undone", is_copy=False)
    return _judged(Outcome(result=result, changed=True), target, progress)


def save_receipt(copied: Copied, destination: str, progress: Progress) -> None:
    """Write the receipt of a copy; both files are read for their hashes."""
    device_map, export = copied.order.device_map, copied.export
    refuse_receipt(Path(destination), device_map.checkpoint.path, export.destination)
    refuse_destination(device_map.checkpoint.path, Path(destination), overwrite=True)
    receipt = make_receipt(device_map.checkpoint, copied.order.plan, export, __version__, progress)
    write_receipt(receipt, Path(destination), overwrite=True)


def _patch(order: Order, progress: Progress) -> Outcome:
    device_map = order.device_map
    patched = patch_in_place(device_map.checkpoint.path, order.plan, progress=progress)
    return Outcome(result=patch_result(patched), changed=patched.record is not None)


def _recover(order: Order, progress: Progress) -> Outcome:
    path = order.device_map.checkpoint.path
    saved = recover(path, Path(order.destination), overwrite=order.overwrite, progress=progress)
    return Outcome(result=recovery_result(saved))


def _write_form(order: Order, form: Form, progress: Progress) -> Outcome:
    device_map = order.device_map
    written = export_form(
        device_map.checkpoint.path,
        Path(order.destination),
        order.plan,
        form,
        overwrite=order.overwrite,
        progress=progress,
        python=order.python,
    )
    return Outcome(result=form_result(written))


# --- in words -----------------------------------------------------------------------------------------------


def copy_result(export: Export) -> ExportResult:
    """Return what was copied, and how it was checked."""
    unchecked = words.unchecked_by_torch(export)
    return ExportResult(
        destination=str(export.destination),
        done="" if export.moved_tensors or export.moved_hidden else _SAME,
        lines=tuple(words.as_lines(words.copied(export))),
        warnings=tuple(words.as_lines([unchecked] if unchecked else [])),
        has_receipt=True,
    )


def patch_result(patched: Patched) -> ExportResult:
    """Return what was changed in the file itself."""
    lines = words.as_lines(words.patched(patched, patched.record.name if patched.record else ""))
    is_changed = patched.record is not None
    return ExportResult(
        destination=str(patched.path),
        lines=tuple(lines),
        done=_CHANGED if is_changed else _AS_IS,
        is_copy=False,
        can_undo=is_changed,
    )


def tried_result(result: ExportResult, found: TorchCheck) -> ExportResult:
    """Return a result with what torch itself made of the file on this machine, where it said anything."""
    if found.verdict == "loads":
        return replace(result, lines=(*result.lines, f"Tried: torch {found.torch} loaded it here."))
    if found.is_bad:
        said = f"Tried: torch {found.torch} does not load it here: {found.detail}"
        return replace(result, loads=False, warnings=(said, *result.warnings))
    return result


def form_result(written: FormExport) -> ExportResult:
    """Return what an export in another form holds."""
    overflowed = words.overflowed(written)
    lost = tuple(row for row in written.left_out if row.is_lost)
    return ExportResult(
        destination=str(written.destination),
        lines=tuple(words.as_lines(words.converted(written))),
        omissions=omission_lines(tuple(row for row in written.left_out if not row.is_lost)),
        warnings=(*words.as_lines([overflowed] if overflowed else []), *left_out_lines(lost)),
    )


def recovery_result(saved: Recovery) -> ExportResult:
    """Return what was saved of a damaged file, and what is lost."""
    warnings = words.as_lines([words.lost(saved)]) if saved.lost else []
    warnings += [f"{words.lost_row(row)}." for row in saved.lost[:_MOST_LOST]]
    if len(saved.lost) > _MOST_LOST:
        warnings.append(f"And {len(saved.lost) - _MOST_LOST:,} more.")
    safety = words.recovered_safety(saved)
    if safety:
        warnings.append(f"The new file: {safety}.")
    return ExportResult(
        destination=str(saved.destination),
        lines=tuple(words.as_lines(words.recovered(saved))),
        done="The intact tensors are saved",
        warnings=tuple(warnings),
    )
