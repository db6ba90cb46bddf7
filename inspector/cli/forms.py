"""The forms of `remap`: the options that ask for one, and what is said of it afterwards."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from inspector.errors import PlanError

if TYPE_CHECKING:
    from inspector.model.checkpoint import Checkpoint
    from inspector.remap.convert.forms import Form, FormExport, FormPreview, LeftOut, Shape

_MOST_LEFT_OUT = 20


def add_form_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that ask for another form."""
    parser.add_argument(
        "--only", choices=("weights",), help="the model's weights alone, without training state"
    )
    parser.add_argument(
        "--exclude",
        action="append",
        default=[],
        metavar="GLOB",
        help="leave out what has this path, as show gives it: 'optimizer', 'model/head.*'; repeatable",
    )
    parser.add_argument(
        "--strip-prefix",
        metavar="P",
        help="remove P from the front of every name; of several models, the path of the one that is meant",
    )
    parser.add_argument(
        "--format",
        choices=("same", "state-dict", "safetensors"),
        help="a module's tensors by name, without its classes; or those as safetensors; else as OUT ends",
    )
    parser.add_argument("--compact", action="store_true", help="leave out bytes that no tensor views")


def read_form(options: argparse.Namespace) -> Form | None:
    """Give the form that is asked for; None for a plain copy.

    Raises:
        PlanError: What is asked for does not go together.
    """
    from inspector.remap.convert.forms import Form, check_form

    form = Form(
        only_weights=options.only == "weights",
        shape=_shape(options),
        exclude=tuple(options.exclude),
        strip_prefix=options.strip_prefix,
        compact=options.compact,
    )
    if form.is_plain:
        return None
    check_form(form)
    if options.output is None and not options.dry_run:
        raise PlanError("another form is a new file", remedy="name it with -o OUT")
    if options.receipt is not None or options.verify != "quick":
        raise PlanError(
            "--receipt and --verify compare a copy with its file byte by byte, and another form is no copy",
            remedy="leave them out: the names, types and shapes are compared anyway",
        )
    return form


def _shape(options: argparse.Namespace) -> Shape:
    """Return the shape that --format asks for, or that the name of OUT tells."""
    from inspector.remap.convert.forms import SUFFIX, refuse_suffix

    is_told = options.output is not None and options.output.lower().endswith(SUFFIX)
    shape: Shape = options.format or ("safetensors" if is_told else "same")
    if options.output is not None:
        refuse_suffix(Path(options.output), shape)
    return shape


def form_lines(output: str, done: FormExport) -> str:
    """Say what was written, and line by line what was not."""
    from inspector.units import escape_text

    parts = _contents(done, done.format)
    if done.verified:
        parts.append("opened again, its tensors compared")
    lines = [f"{escape_text(output)}: {', '.join(parts)}", *_left_out(done.left_out)]
    return "".join(f"{line}\n" for line in lines)


def preview_lines(checkpoint: Checkpoint, form: Form, left_out: tuple[LeftOut, ...] | None = None) -> str:
    """Return what would be written, and line by line what would not, unless that is known better.

    Raises:
        ExportError: It cannot be written.
        PlanError: The form cannot be had of this checkpoint.
    """
    from inspector.errors import ExportError
    from inspector.remap.convert.preview import preview_form

    found = preview_form(checkpoint, form)
    if found.refusals:
        raise ExportError(found.refusals[0], remedy="leave it out with --exclude, or choose another format")
    parts = _contents(found, form.format_from(checkpoint.format))
    lines = [f"Would write about {', '.join(parts)}", *_left_out(left_out or found.left_out)]
    return "".join(f"{line}\n" for line in [*lines, "", "Of what is written:"])


def _contents(made: FormExport | FormPreview, form: str) -> list[str]:
    """Say what is in a file of this format, or would be."""
    from inspector.units import escape_text, format_count, format_nbytes

    size = f"{format_nbytes(made.nbytes)} of {format_nbytes(made.source_nbytes)}"
    parts = [size, f"{format_count(made.tensors, 'tensor')} as {form}"]
    if made.model:
        parts.append(f"the model is {escape_text(made.model)}")
    if made.prefix:
        parts.append(f"{escape_text(made.prefix)} removed from every name")
    if made.tied:
        parts.append(f"{format_count(len(made.tied), 'name')} of tied weights in the metadata")
    return parts


def _left_out(rows: tuple[LeftOut, ...]) -> Iterator[str]:
    from inspector.units import escape_text, format_count, format_nbytes

    for row in rows[:_MOST_LEFT_OUT]:
        size = f" ({format_count(row.tensors, 'tensor')}, {format_nbytes(row.nbytes)})" if row.tensors else ""
        yield f"  left out: {escape_text(row.path) or 'around it'}: {row.why}{size}"
    if len(rows) > _MOST_LEFT_OUT:
        yield f"  left out as well: {len(rows) - _MOST_LEFT_OUT:,} more"
