"""What an export in another form would hold, in sentences."""

from __future__ import annotations

from inspector.errors import PlanError
from inspector.model.checkpoint import Checkpoint
from inspector.records import replace
from inspector.remap.convert.forms import Form, LeftOut
from inspector.session.export.page import ExportDraft
from inspector.units import cut_text, escape_text, format_count, format_nbytes

_MOST_LEFT_OUT = 4
_MOST_CHARS = 80


def with_preview(draft: ExportDraft, checkpoint: Checkpoint, form: Form) -> ExportDraft:
    """Complete a draft by what the form makes of the file."""
    from inspector.remap.convert.preview import preview_form  # noqa: PLC0415 - not before somebody exports

    try:
        preview = preview_form(checkpoint, form)
    except PlanError as error:
        return replace(draft, summary=(), refusal=escape_text(str(error)), size="")
    lines = [f"{format_count(preview.tensors, 'tensor')} of {len(checkpoint.tensors):,} are written"]
    if preview.model:
        lines.append(f"the model is {_short(preview.model)}")
    if preview.prefix:
        lines.append(f"the prefix {_short(preview.prefix)} is removed from every name")
    if form.cast:
        lines.append(f"float32 becomes {form.cast}, which keeps fewer digits")
    if not form.takes_model:
        lines += draft.summary[:-1]
    refusal = " ".join(map(escape_text, preview.refusals[:1]))
    return replace(
        draft,
        summary=() if refusal else tuple(line[:1].upper() + line[1:] for line in lines),
        warnings=tuple(left_out_lines(preview.left_out, preview.tied)),
        refusal=refusal,
        size=f"about {format_nbytes(preview.nbytes)}, the file has {format_nbytes(preview.source_nbytes)}",
        can_cast=form.takes_model,
        can_average=form.takes_model and any(tensor.role == "ema" for tensor in checkpoint.tensors),
        can_exclude=True,
    )


def left_out_lines(left_out: tuple[LeftOut, ...], tied: tuple[tuple[str, str], ...]) -> list[str]:
    """Say what an export does not hold, the largest first."""
    rows = sorted(left_out, key=lambda row: -row.nbytes)
    lines = [
        f"Left out: {_short(row.path)} ({_amount(row)}), {escape_text(row.why)}."
        for row in rows[:_MOST_LEFT_OUT]
    ]
    if len(rows) > _MOST_LEFT_OUT:
        rest = rows[_MOST_LEFT_OUT:]
        nbytes = format_nbytes(sum(row.nbytes for row in rest))
        lines.append(f"Left out as well: {len(rest):,} more entries, {nbytes}.")
    if tied:
        names = ", ".join(_short(name) for name, _ in tied[:_MOST_LEFT_OUT])
        lines.append(f"Tied weights are written once: {names} can be had from their twins.")
    return lines


def _amount(row: LeftOut) -> str:
    if not row.tensors:
        return "no tensors"
    return f"{format_count(row.tensors, 'tensor')}, {format_nbytes(row.nbytes)}"


def _short(text: str) -> str:
    return escape_text(cut_text(text, _MOST_CHARS))
