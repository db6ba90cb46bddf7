"""A copy with other devices, the file itself changed, and that change taken back."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from inspector.cli.common import ended_by_signals, remark
from inspector.cli.remapping.opening import Answer, file_name, open_planned, output_name, remark_on_room
from inspector.errors import CheckpointError, ExportError, PlanError

if TYPE_CHECKING:
    from inspector.model.checkpoint import Checkpoint
    from inspector.progress import Progress
    from inspector.remap.export import Export, Verify
    from inspector.remap.plan import Plan
    from inspector.report.page import Line


def copy(options: argparse.Namespace) -> Answer:
    """Write a copy of the file with other devices."""
    from inspector.remap.export import export_copy
    from inspector.remap.files import copy_times
    from inspector.report.words.results import unchecked_by_torch

    checkpoint, plan = open_planned(options)
    remark_on_room(options, checkpoint, plan)
    if checkpoint.parts:
        return _copy_folder(options, checkpoint, plan)
    progress = options.display.progress()
    with ended_by_signals(progress):
        done = export_copy(
            options.file,
            Path(options.output),
            plan,
            overwrite=options.force,
            verify="none" if options.no_verify else options.verify,
            python=options.python,
            progress=progress,
        )
        if options.keep_times:
            copy_times(options.file, Path(options.output))
        if options.receipt is not None:
            _write_receipt(options, checkpoint, plan, done, progress)
    unchecked = unchecked_by_torch(done)
    remedy = "the copy was written, and compared by this program only"
    failure = ExportError(unchecked, where=output_name(options), remedy=remedy) if unchecked else None
    return _copied(options, checkpoint, done, failure)


def _copied(
    options: argparse.Namespace, checkpoint: Checkpoint, done: Export, failure: CheckpointError | None = None
) -> Answer:
    from inspector.report.words.results import copied, result_page

    name = output_name(options)

    def document() -> dict[str, Any]:
        from inspector.report.documents import copy_document

        return copy_document(file_name(options), name, done)

    page = result_page(name, copied(done), _still_refused(options, checkpoint))
    return Answer(page=page, document=document, failure=failure)


def _still_refused(options: argparse.Namespace, checkpoint: Checkpoint) -> Iterator[Line]:
    """Yield that other devices do not make torch.load take a file, and the line that does."""
    from inspector.report.page import Line, prose
    from inspector.report.remedies import weights_remedies
    from inspector.report.words.formats import BEFORE
    from inspector.report.words.results import still_refused

    why = still_refused(checkpoint)
    if not why:
        return
    yield from prose(f"{why}.", "  ")
    for one in weights_remedies(checkpoint) if file_name(options) == options.file else ():
        yield Line(f"{BEFORE[one.kind]}:", indent="     ")
        yield Line(one.text, "code", "       ")


def _copy_folder(options: argparse.Namespace, checkpoint: Checkpoint, plan: Plan) -> Answer:
    """Write a copy of a folder, whole or not at all."""
    from inspector.remap.export import export_folder

    if options.receipt is not None or options.keep_times or options.verify == "torch":
        raise PlanError(
            "--receipt, --keep-times and --verify torch are for single files",
            remedy="leave them out; the files of the folder are compared one by one",
        )
    progress = options.display.progress()
    verify: Verify = "none" if options.no_verify else options.verify
    with ended_by_signals(progress):
        done = export_folder(checkpoint, Path(options.output), plan, verify=verify, progress=progress)
    return _copied(options, checkpoint, done)


def _write_receipt(
    options: argparse.Namespace, checkpoint: Checkpoint, plan: Plan, done: Export, progress: Progress
) -> None:
    from inspector import __version__
    from inspector.remap.export import make_receipt, write_receipt

    receipt = make_receipt(checkpoint, plan, done, __version__, progress)
    write_receipt(receipt, Path(options.receipt), overwrite=options.force)


def change(options: argparse.Namespace) -> Answer:
    """Change the file itself."""
    from inspector.remap.in_place import patch_in_place
    from inspector.report.words.results import patched, result_page

    if options.receipt is not None or options.keep_times:
        raise PlanError("--receipt and --keep-times go with a copy", remedy="write a copy, with -o")
    checkpoint, plan = open_planned(options)
    remark_on_room(options, checkpoint, plan)
    progress = options.display.progress()
    with ended_by_signals(progress):
        done = patch_in_place(
            options.file, plan, force=options.force, verify=not options.no_verify, progress=progress
        )
    parts = patched(done, str(done.record))
    page = result_page(options.file, parts, _still_refused(options, checkpoint))

    def document() -> dict[str, Any]:
        from inspector.report.documents import patch_document

        return patch_document(options.file, done)

    return Answer(page=page, document=document)


def undo(options: argparse.Namespace) -> Answer:
    """Take a change of the file itself back."""
    from inspector.remap.in_place import undo_patch
    from inspector.report.words.results import result_page, undone

    if options.map or options.target:
        raise PlanError("--undo restores the file as it was, whatever the map", remedy="leave the map out")
    nbytes = undo_patch(options.file, force=options.force)
    if options.force:
        _remark_on_safety(options.file)
    page = result_page(options.file, [undone(nbytes)])

    def document() -> dict[str, Any]:
        from inspector.report.documents import undo_document

        return undo_document(options.file, nbytes)

    return Answer(page=page, document=document)


def _remark_on_safety(path: str) -> None:
    """Write to stderr what loading a file would run that was restored although its record looked wrong."""
    from inspector.model.build import open_checkpoint
    from inspector.safety.verdict import judge
    from inspector.safety.words import shouted, words_of

    try:
        verdict = judge(open_checkpoint(path)).verdict
    except CheckpointError as error:
        remark(f"{path}: it cannot be read: {error.what}")
    else:
        if verdict != "weights-only":
            remark(f"{path}: {shouted(words_of(verdict))}")
