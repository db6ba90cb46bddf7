"""The command `remap`: a copy with other devices, the file itself changed, or that change taken back."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from inspector.cli.common import DONE, NEGATIVE, ended_by_signals, remark
from inspector.cli.mapping import add_map_options, add_plan_options, parse_map, plan_of
from inspector.errors import CheckpointError, ExportError, PlanError

if TYPE_CHECKING:
    from inspector.model.checkpoint import Checkpoint
    from inspector.progress import Progress
    from inspector.remap.convert.forms import Form, LeftOut
    from inspector.remap.plan import Plan
    from inspector.remap.relabel.export import Export, Verify
    from inspector.report.page.blocks import Line

SUMMARY = "Write a copy with other devices; weights stay the same."
EXAMPLES = (
    "remap best.pth -o cpu.pth --map 'cuda:*=cpu'",
    "remap best.pth -o weights.safetensors --only weights",
    "remap best.pth --in-place --map 'cuda:1=cuda:0'",
    "remap best.pth --undo",
)
NOTES = "Without --map and --target, everything goes to the CPU."
_MOST_LEFT_OUT = 20


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `remap`."""
    parser.add_argument("file", metavar="FILE", help="the checkpoint")
    where = parser.add_mutually_exclusive_group()
    where.add_argument("-o", "--output", metavar="OUT", help="the new file")
    where.add_argument("--in-place", action="store_true", help="change FILE itself; keeps an undo record")
    where.add_argument("--undo", action="store_true", help="undo --in-place, bit for bit")
    parser.add_argument("--dry-run", action="store_true", help="print what would change; write nothing")
    add_map_options(parser)
    _add_form_options(parser)
    add_plan_options(parser)
    parser.add_argument("--force", action="store_true", help="replace OUT; change a protected FILE")
    parser.add_argument("--receipt", metavar="FILE", help="write a JSON record of what was done and checked")
    parser.add_argument("--keep-times", action="store_true", help="copy the timestamps of FILE to OUT")
    parser.add_argument(
        "--verify",
        choices=("quick", "full", "torch"),
        default="quick",
        help="compare samples, or every byte, or also have torch load the copy",
    )
    parser.add_argument("--no-verify", action="store_true", help="do not reopen and compare the output")


def _add_form_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options that ask for another form."""
    parser.add_argument(
        "--only", choices=("weights",), help="the model's weights alone, without training state"
    )
    parser.add_argument(
        "--exclude",
        action="append",
        default=[],
        metavar="GLOB",
        help="leave out this path, as show prints it: 'optimizer', 'model/head.*'; repeatable",
    )
    parser.add_argument(
        "--strip-prefix",
        metavar="P",
        help="remove P from the front of every name; of several models, the path of the one to take",
    )
    parser.add_argument(
        "--format",
        choices=("same", "state-dict", "safetensors"),
        help="state-dict: a module's tensors by name, without its classes; default: as OUT ends",
    )
    parser.add_argument("--compact", action="store_true", help="leave out bytes that no tensor views")
    parser.add_argument(
        "--strict",
        action="store_true",
        help="exit with 1 when the form cannot hold all tensors of the model",
    )


def run(options: argparse.Namespace) -> int:
    """Describe, copy, change or undo, as the options ask."""
    parse_map(options)  # a wrong rule is told before any file is read
    form = _read_form(options)
    if options.dry_run:
        return _describe(options, form)
    if not (options.output or options.in_place or options.undo):
        raise PlanError(
            "remap was not told where to write",
            remedy="add -o and the name of a new file, --in-place or --dry-run",
        )
    if form is not None:
        return _convert(options, form)
    if options.undo:
        return _undo(options)
    return _change(options) if options.in_place else _copy(options)


def _open(options: argparse.Namespace) -> tuple[Checkpoint, Plan]:
    """Read the file, refuse an output that must not be written, and make the plan."""
    from inspector.model.build import open_checkpoint
    from inspector.remap.compare.receipt import refuse_receipt
    from inspector.remap.files.destination import refuse_destination

    said, target = parse_map(options)
    checkpoint = open_checkpoint(options.file, progress=options.display.progress())
    if options.output is not None and not options.dry_run:
        refuse_destination(options.file, Path(options.output), overwrite=options.force)
        if options.receipt is not None:
            refuse_receipt(Path(options.receipt), Path(options.output))
            refuse_destination(options.file, Path(options.receipt), overwrite=options.force)
    return checkpoint, plan_of(checkpoint, options, said, target)


def _describe(options: argparse.Namespace, form: Form | None) -> int:
    """Print what another form holds, what the plan changes, what stays, and why."""
    from inspector.remap.describe import describe_plan, format_hidden, format_plan
    from inspector.report.page.blocks import lines_of, page_of

    if options.undo:
        raise PlanError("--undo restores the file as it was: there is no plan to describe")
    checkpoint, plan = _open(options)
    blocks = []
    if form is not None:
        blocks = _preview(checkpoint, form, _left_out(options.file, plan, form))
    text = format_plan(describe_plan(checkpoint, plan)) + format_hidden(checkpoint, plan)
    options.display.show(page_of([*blocks, *lines_of(text.split("\n")[:-1])]))
    return DONE


def _copy(options: argparse.Namespace) -> int:
    """Write a copy of the file with other devices."""
    from inspector.remap.files.destination import copy_times
    from inspector.remap.relabel.export import export_copy
    from inspector.report.words.results import copied, result_page, unchecked_by_torch

    checkpoint, plan = _open(options)
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
    options.display.show(result_page(options.output, copied(done)))
    unchecked = unchecked_by_torch(done)
    if unchecked:
        remedy = "the copy was written, and compared by this program only"
        raise ExportError(unchecked, where=options.output, remedy=remedy)
    return DONE


def _copy_folder(options: argparse.Namespace, checkpoint: Checkpoint, plan: Plan) -> int:
    """Write a copy of a folder, whole or not at all."""
    from inspector.remap.folders.export import export_folder
    from inspector.report.words.results import copied, result_page

    if options.receipt is not None or options.keep_times or options.verify == "torch":
        raise PlanError(
            "--receipt, --keep-times and --verify torch are for single files",
            remedy="leave them out; the files of the folder are compared one by one",
        )
    progress = options.display.progress()
    verify: Verify = "none" if options.no_verify else options.verify
    with ended_by_signals(progress):
        done = export_folder(checkpoint, Path(options.output), plan, verify=verify, progress=progress)
    options.display.show(result_page(options.output, copied(done)))
    return DONE


def _write_receipt(
    options: argparse.Namespace, checkpoint: Checkpoint, plan: Plan, done: Export, progress: Progress
) -> None:
    from inspector import __version__
    from inspector.remap.compare.receipt import make_receipt, write_receipt

    receipt = make_receipt(checkpoint, plan, done, __version__, progress)
    write_receipt(receipt, Path(options.receipt), overwrite=options.force)


def _change(options: argparse.Namespace) -> int:
    """Change the file itself."""
    from inspector.remap.relabel.in_place import patch_in_place
    from inspector.report.words.results import patched, result_page

    if options.receipt is not None or options.keep_times:
        raise PlanError("--receipt and --keep-times go with a copy", remedy="write a copy, with -o")
    _, plan = _open(options)
    progress = options.display.progress()
    with ended_by_signals(progress):
        done = patch_in_place(
            options.file, plan, force=options.force, verify=not options.no_verify, progress=progress
        )
    options.display.show(result_page(options.file, patched(done, str(done.record))))
    return DONE


def _undo(options: argparse.Namespace) -> int:
    """Take a change of the file itself back."""
    from inspector.remap.relabel.in_place import undo_patch
    from inspector.report.words.results import result_page, undone

    if options.map or options.target:
        raise PlanError("--undo restores the file as it was, whatever the map", remedy="leave the map out")
    options.display.show(result_page(options.file, [undone(undo_patch(options.file, force=options.force))]))
    if options.force:
        _remark_on_safety(options.file)
    return DONE


def _remark_on_safety(path: str) -> None:
    """Write to stderr what loading a file would run that was restored although its record looked wrong."""
    from inspector.model.build import open_checkpoint
    from inspector.report.words.verdicts import SAFETY
    from inspector.safety.verdict import judge

    try:
        verdict = judge(open_checkpoint(path)).verdict
    except CheckpointError as error:
        remark(f"{path}: it cannot be read: {error.what}")
    else:
        if verdict != "weights-only":
            remark(f"{path}: {SAFETY[verdict]}")


# --- other forms --------------------------------------------------------------------------------------------


def _read_form(options: argparse.Namespace) -> Form | None:
    """Return the form that is asked for; None for a plain copy.

    Raises:
        PlanError: The options contradict each other.
    """
    from inspector.remap.convert.choosing import choose_shape
    from inspector.remap.convert.forms import Form, check_form

    shape, container = choose_shape(options.file, options.output, options.format, in_place=options.in_place)
    form = Form(
        only_weights=options.only == "weights",
        shape=shape,
        exclude=tuple(options.exclude),
        strip_prefix=options.strip_prefix,
        compact=options.compact,
        container=container,
    )
    if form.is_plain:
        return None
    check_form(form)
    if options.output is None and not options.dry_run:
        raise PlanError("another form is a new file", remedy="name it with -o")
    if options.receipt is not None or options.verify != "quick":
        raise PlanError(
            "--receipt and --verify compare a copy with its file byte by byte, and another form is no copy",
            remedy="leave them out: the names, types and shapes are compared anyway",
        )
    return form


def _convert(options: argparse.Namespace, form: Form) -> int:
    """Write the checkpoint in another form."""
    from inspector.containers.formats import refuse_step
    from inspector.remap.convert.export import export_form
    from inspector.remap.files.destination import copy_times
    from inspector.report.page.blocks import Line
    from inspector.report.words.results import converted, left_out, result_page

    checkpoint, plan = _open(options)
    if form.shape == "safetensors" and (options.map or options.target):
        refuse_step(checkpoint.format, "remap", options.file)
    progress = options.display.progress()
    with ended_by_signals(progress):
        done = export_form(
            options.file,
            Path(options.output),
            plan,
            form,
            progress,
            overwrite=options.force,
            verify=not options.no_verify,
        )
        if options.keep_times:
            copy_times(options.file, Path(options.output))
    more = [Line(line, indent="  ") for line in left_out(done.left_out, _MOST_LEFT_OUT)]
    options.display.show(result_page(options.output, converted(done), more))
    return NEGATIVE if options.strict and any(row.is_lost for row in done.left_out) else DONE


def _preview(checkpoint: Checkpoint, form: Form, known: tuple[LeftOut, ...] | None) -> list[Line]:
    """Return what would be written, and line by line what would not.

    Raises:
        ExportError: It cannot be written.
        PlanError: This checkpoint has no such form.
    """
    from inspector.remap.convert.preview import preview_form
    from inspector.report.page.blocks import Line
    from inspector.report.words.results import form_contents, left_out

    found = preview_form(checkpoint, form)
    if found.refusals:
        raise ExportError(found.refusals[0], remedy="leave it out with --exclude, or choose another format")
    contents = "; ".join(form_contents(found, form.format_from(checkpoint.format)))
    return [
        Line(f"Would write about {contents}"),
        *(Line(line, indent="  ") for line in left_out(known or found.left_out, _MOST_LEFT_OUT)),
        Line(""),
        Line("Of what is written:", "heading"),
    ]


def _left_out(path: str, plan: Plan, form: Form) -> tuple[LeftOut, ...] | None:
    """Return what --exclude leaves out, asked of the objects: rows do not show two names of one object."""
    if not form.exclude:
        return None
    from inspector.remap.convert.export import list_left_out

    return list_left_out(path, plan, form)
