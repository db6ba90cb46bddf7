"""A checkpoint in another form, and what would be written of it."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from inspector.cli.common import DONE, NEGATIVE, ended_by_signals
from inspector.cli.remapping.opening import Answer, file_name, open_planned, output_name, remark_on_room
from inspector.errors import ExportError, PlanError
from inspector.records import replace
from inspector.units import escape_text

if TYPE_CHECKING:
    from inspector.model.checkpoint import Checkpoint
    from inspector.remap.forms import Form, FormPreview, LeftOut
    from inspector.remap.plan import Plan
    from inspector.report.page import Line

_MOST_LEFT_OUT = 20


def read_form(options: argparse.Namespace) -> Form | None:
    """Return the form that is asked for; None for a plain copy."""
    from inspector.remap.forms import Form, check_form, choose_shape

    shape, container = choose_shape(options.file, options.output, options.format, in_place=options.in_place)
    form = Form(
        only_weights=options.only == "weights",
        shape=shape,
        exclude=tuple(options.exclude),
        strip_prefix=options.strip_prefix,
        compact=options.compact,
        container=options.container or container,
        cast=options.cast,
        ema=options.ema,
    )
    if form.is_plain:
        return None
    check_form(form)
    if form.ema and not form.takes_model:
        remedy = "add --only weights, or a --format"
        raise PlanError("--ema chooses which of the weights are written, and all are copied", remedy=remedy)
    if options.output is None and not options.dry_run:
        raise PlanError("another form is a new file", remedy="name it with -o")
    if options.receipt is not None or options.verify != "quick":
        raise PlanError(
            "--receipt and --verify compare a copy with its file byte by byte, and another form is no copy",
            remedy="leave them out: the names, types and shapes are compared anyway",
        )
    return form


def convert(options: argparse.Namespace, form: Form) -> Answer:
    """Write the checkpoint in another form."""
    from inspector.containers.formats import refuse_step
    from inspector.remap.export_form import export_form
    from inspector.remap.files import copy_times
    from inspector.report.page import Line
    from inspector.report.words.results import converted, left_out, overflowed, result_page

    checkpoint, plan = open_planned(options)
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
            python=options.python,
        )
        if options.keep_times:
            copy_times(options.file, Path(options.output))
    infinite = overflowed(done)
    parts = [*converted(done), *([infinite] if infinite else [])]
    more = [Line(line, indent="  ", hang="    ") for line in left_out(done.left_out, _MOST_LEFT_OUT)]
    is_short = options.strict and any(row.is_lost for row in done.left_out)

    def document() -> dict[str, Any]:
        from inspector.report.documents import form_document

        return form_document(file_name(options), output_name(options), done)

    return Answer(
        page=result_page(output_name(options), parts, more),
        document=document,
        code=NEGATIVE if is_short else DONE,
    )


def describe(options: argparse.Namespace, form: Form | None) -> Answer:
    """Return what another form holds, what the plan changes, what stays, and why; nothing is written."""
    from inspector.remap.describe import describe_plan, format_hidden, format_plan
    from inspector.report.page import Line, page_of

    if options.undo:
        raise PlanError("--undo restores the file as it was: there is no plan to describe")
    checkpoint, plan = open_planned(options)
    title = [Line(escape_text(file_name(options)), "file")] if len(options.files) > 1 else []
    blocks, made = list[Line](), None
    if form is None:
        remark_on_room(options, checkpoint, plan)
        rows = describe_plan(checkpoint, plan)
    else:
        found = _preview(checkpoint, form)
        left = _left_out(options.file, plan, form) or found.left_out
        # What is written as safetensors has no device to be on.
        rows = () if form.shape == "safetensors" else describe_plan(checkpoint, plan, found.fates)
        blocks, made = _preview_lines(checkpoint, form, found, left), (form, found, left)
        blocks += [Line(""), Line("Of what is written:", "heading")] * bool(rows)
    is_whole = form is None or not form.takes_model
    text = format_plan(rows) + format_hidden(checkpoint, plan) * is_whole

    def document() -> dict[str, Any]:
        from inspector.report.documents import plan_document

        shown = replace(checkpoint, path=file_name(options))
        return plan_document(shown, options.output, plan, rows, made)

    plans = [Line(line, hang="  ") for line in text.split("\n")[:-1]]
    page = page_of([*title, *blocks, *plans])
    return Answer(page=page, document=document)


def _preview(checkpoint: Checkpoint, form: Form) -> FormPreview:
    """Return what would be written."""
    from inspector.remap.preview import preview_form

    found = preview_form(checkpoint, form)
    if found.refusals:
        raise ExportError(found.refusals[0], remedy="leave it out with --exclude, or choose another format")
    return found


def _preview_lines(
    checkpoint: Checkpoint, form: Form, found: FormPreview, left: tuple[LeftOut, ...]
) -> list[Line]:
    """Return what would be written, and line by line what would not."""
    from inspector.report.page import Line
    from inspector.report.words.results import form_contents, left_out

    contents = "; ".join(form_contents(found, form.format_from(checkpoint.format)))
    return [
        Line(f"Would write about {contents}"),
        *(Line(line, indent="  ", hang="    ") for line in left_out(left, _MOST_LEFT_OUT)),
    ]


def _left_out(path: str, plan: Plan, form: Form) -> tuple[LeftOut, ...] | None:
    """Return what --exclude leaves out, asked of the objects: rows do not show two names of one object."""
    if not form.exclude:
        return None
    from inspector.remap.export_form import list_left_out

    return list_left_out(path, plan, form)
