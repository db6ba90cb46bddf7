"""What is said with `--json` of what was done with a file.

Those of `remap` have `action`, which tells them apart, and `output`, the file that now holds the answer.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from inspector.records import as_document
from inspector.remap.describe import PlanRow
from inspector.remap.plan import Plan
from inspector.report.jsonable import SCHEMA, Document
from inspector.units import escape_text

if TYPE_CHECKING:
    from inspector.model.checkpoint import Checkpoint
    from inspector.remap.export import Export
    from inspector.remap.forms import Form, FormExport, FormPreview, LeftOut
    from inspector.remap.in_place import Patched
    from inspector.remap.recover import Recovery
    from inspector.remap.torch_check import TorchCheck
    from inspector.remap.verify import Comparison


def copy_document(path: str, output: str, done: Export) -> Document:
    """Return what was copied with other devices, and how the copy was checked."""
    return {
        **_head(path, output, "copy"),
        "nbytes": done.nbytes,
        "moved_tensors": done.moved_tensors,
        "moved_hidden": done.moved_hidden,
        "kept_tensors": done.kept_tensors,
        "verified": done.verified,
        "compared_nbytes": done.compared_nbytes,
        "copied_nbytes": done.copied_nbytes,
        "torch": None if done.torch is None else torch_document(done.torch),
    }


def torch_document(found: TorchCheck) -> Document:
    """Return what torch made of a copy; `missing` are the devices that this machine does not have."""
    return {
        "version": found.torch,
        "verdict": found.verdict,
        "detail": found.detail,
        "missing": list(found.missing),
    }


def form_document(path: str, output: str, done: FormExport) -> Document:
    """Return what was written in another form, what it does not hold, and why."""
    return {
        **_head(path, output, "form"),
        "format": done.format,
        "nbytes": done.nbytes,
        "source_nbytes": done.source_nbytes,
        **_contents(done),
        "overflowed": done.overflowed,
        "verified": done.verified,
        "left_out": left_out_documents(done.left_out),
    }


def patch_document(path: str, done: Patched) -> Document:
    """Return what was changed in the file itself; `record` is the undo record, null if nothing changed."""
    return {
        **_head(path, path, "in-place"),
        "nbytes": done.nbytes,
        "written_nbytes": done.written_nbytes,
        "moved_tensors": done.moved_tensors,
        "moved_hidden": done.moved_hidden,
        "kept_tensors": done.kept_tensors,
        "verified": done.verified,
        "record": None if done.record is None else str(done.record),
    }


def undo_document(path: str, nbytes: int) -> Document:
    """Return that a change in place was taken back."""
    return {**_head(path, path, "undo"), "nbytes": nbytes}


def plan_document(
    checkpoint: Checkpoint,
    output: str | None,
    plan: Plan,
    rows: Iterable[PlanRow],
    form: tuple[Form, FormPreview, Iterable[LeftOut]] | None = None,
) -> Document:
    """Return what would be done: the form, where one was asked for, and the way of each group of tensors."""
    from inspector.remap.plan import could_move, hidden_stay  # noqa: PLC0415 - not for what was done

    hidden = checkpoint.hidden_devices
    moves = [{**as_document(hidden[index]), "to": to} for index, to in plan.hidden.items()]
    stays = [*hidden_stay(checkpoint, plan), *could_move(checkpoint, plan)]
    if form is not None and form[0].takes_model:  # weights alone have nothing beside them
        moves, stays = [], []
    return {
        **_head(checkpoint.path, output, "plan"),
        "form": None if form is None else _form(checkpoint, *form),
        "plan": [as_document(row) for row in rows],
        "hidden": [*moves, *({**as_document(row), "to": None} for row in stays)],
    }


def left_out_documents(rows: Iterable[LeftOut]) -> list[Document]:
    """Return what an export does not hold: `is_lost` where it is part of the model that was asked for."""
    return [
        {
            "path": row.path,
            "why": escape_text(row.why),
            "tensors": row.tensors,
            "nbytes": row.nbytes,
            "is_lost": row.is_lost,
        }
        for row in rows
    ]


def _head(path: str, output: str | None, action: str) -> Document:
    return {"schema": SCHEMA, "path": path, "output": output, "action": action}


def _form(checkpoint: Checkpoint, form: Form, made: FormPreview, left: Iterable[LeftOut]) -> Document:
    return {
        "format": form.format_from(checkpoint.format),
        "nbytes": made.nbytes,
        "source_nbytes": made.source_nbytes,
        **_contents(made),
        "left_out": left_out_documents(left),
    }


def _contents(made: FormExport | FormPreview) -> Document:
    return {
        "tensors": made.tensors,
        "model": made.model,
        "prefix": made.prefix,
        "tied": [{"name": name, "kept": kept} for name, kept in made.tied],
    }


# --- other commands -----------------------------------------------------------------------------------------


def recover_document(path: str, output: str, done: Recovery) -> Document:
    """Return what was saved of a damaged file, and what is lost; `verdict` is that of the new file."""
    return {
        "schema": SCHEMA,
        "path": path,
        "output": output,
        "nbytes": done.nbytes,
        "tensors": done.tensors,
        "storages": done.storages,
        "storage_nbytes": done.storage_nbytes,
        "unchecked": done.unchecked,
        "verdict": done.verdict,
        "is_cut": done.is_cut,
        "lost_nbytes": done.lost_nbytes,
        "lost": [{**row._asdict(), "shape": list(row.shape)} for row in done.lost],
    }


def verify_document(path: str, against: str, found: Comparison) -> Document:
    """Return whether a copy is one, with the devices that differ."""
    return {
        "schema": SCHEMA,
        "path": path,
        "against": against,
        "same": found.is_same,
        "tensors": found.tensors,
        "compared_nbytes": found.compared_nbytes,
        "moves": [{"from": there, "to": here, "tensors": count} for there, here, count in found.moves],
        "moved_hidden": found.moved_hidden,
        "differences": list(found.differences),
    }


def snippet_document(
    path: str,
    code: str,
    *,
    style: str | None,
    styles: Iterable[str],
    unread: str | None = None,
) -> Document:
    """Return code that loads a file.

    Args:
        style: Its style; None where only one way of loading the file is known.
        unread: Why the file itself was not read, where the code is by its format alone.
    """
    return {
        "schema": SCHEMA,
        "path": path,
        "style": style,
        "styles": list(styles),
        "code": code,
        "unread": unread,
    }
