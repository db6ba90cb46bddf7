"""What an export in a form would be, told from the rows alone: quick enough to be asked at every click.

The file is not read. Two things only the export itself knows: modules that two parents share are counted
once, and the sets of buffers that are not saved are read from their short text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from inspector.errors import PlanError
from inspector.model.checkpoint import Checkpoint, Tensor, ValueRow
from inspector.model.tensors.dtypes import ITEMSIZES
from inspector.progress import Progress
from inspector.remap.forms import (
    DROPPED,
    EXCLUDED,
    KEPT,
    NEVER,
    NO_TENSORS,
    NO_WEIGHTS,
    Form,
    FormPreview,
    LeftOut,
    Patterns,
    check_form,
    lineage_of,
)
from inspector.remap.objects import (
    Model,
    find_prefix,
    left_beside,
    name_in,
    select_model,
    why_unwanted,
    without_choice,
)
from inspector.remap.safetensors import find_tied, refusal_of
from inspector.remap.storages import SOURCE

_RECORD_NBYTES = 300  # both headers of a zip record, with their padding
_TENSOR_NBYTES = 100  # a tensor in the pickle, or in the header of safetensors
_AROUND_NBYTES = _RECORD_NBYTES + _TENSOR_NBYTES
_NOT_SAVED = "._non_persistent_buffers_set"


def preview_form(checkpoint: Checkpoint, form: Form, progress: Progress | None = None) -> FormPreview:
    """Return what an export in a form would hold, and about how large it would be."""
    check_form(form)
    progress = progress or Progress()
    patterns = Patterns(form.exclude, checkpoint)
    if not form.takes_model:
        return _everything(checkpoint, form, patterns, progress)
    model = select_model(checkpoint, form)
    form = without_choice(form, model)
    fates = _Fates(checkpoint)
    rows, left_out = _rows_of(checkpoint, model, patterns, fates, progress)
    prefix = find_prefix(form, [name for name, _ in rows])
    rows = [(name.removeprefix(prefix), row) for name, row in rows]
    tied: tuple[tuple[str, str], ...] = ()
    refusals: list[str] = [] if rows else [NO_WEIGHTS]
    if form.shape == "safetensors":
        tied = tuple(find_tied((name, _view(row)) for name, row in rows))
        gone = dict(tied)
        kept = [row for name, row in rows if name not in gone]
        nbytes = sum(_nbytes(row, form) + _TENSOR_NBYTES for row in kept)
        refusals += [reason for name, row in rows if (reason := _refusal(name, row))]
    else:
        kept = [row for _, row in rows]
        nbytes = _stored_nbytes(checkpoint, kept, form)
    return FormPreview(
        model=model.path,
        tensors=len(kept),
        nbytes=nbytes,
        source_nbytes=checkpoint.file_nbytes,
        left_out=(*left_out, *left_beside(checkpoint, model)),
        prefix=prefix,
        tied=tied,
        refusals=tuple(refusals),
        fates=bytes(fates.tensors),
        value_fates=bytes(fates.values),
        unused=patterns.unused,
    )


def can_be_weights(checkpoint: Checkpoint) -> bool:
    """Return whether the weights of a file can be written alone."""
    try:
        return not preview_form(checkpoint, Form(only_weights=True)).refusals
    except PlanError:
        return False


class _Fates:
    def __init__(self, checkpoint: Checkpoint) -> None:
        self.tensors = bytearray([NEVER]) * len(checkpoint.tensors)
        self.values = bytearray([NEVER]) * len(checkpoint.values)


def known_by(checkpoint: Checkpoint, form: Form) -> Callable[[Tensor | ValueRow], tuple[str, ...]]:
    """Return what tells the paths that patterns of a form know a row by."""
    if not form.takes_model:
        return lambda row: (row.path,)
    model = select_model(checkpoint, form)

    def paths(row: Tensor | ValueRow) -> tuple[str, ...]:
        name = name_in(model, row) if isinstance(row, Tensor) else None
        return (row.path,) if name is None else (row.path, name)

    return paths


def _everything(checkpoint: Checkpoint, form: Form, patterns: Patterns, progress: Progress) -> FormPreview:
    gone: dict[str, LeftOut] = {}
    kept = []
    fates = _Fates(checkpoint)
    for number, row in enumerate(progress.over(checkpoint.tensors)):
        fates.tensors[number] = DROPPED if patterns.cover(row.path) else KEPT
        if fates.tensors[number] == KEPT:
            kept.append(row)
        elif row.part_of is None:
            path = _branch(row.path, patterns)
            known = gone.get(path, LeftOut(path, EXCLUDED, 0, 0, is_asked=True))
            gone[path] = known._replace(tensors=known.tensors + 1, nbytes=known.nbytes + row.nbytes)
    for number, value in enumerate(checkpoint.values):
        fates.values[number] = DROPPED if patterns.cover(value.path) else KEPT
        if fates.values[number] == DROPPED:
            path = _branch(value.path, patterns)
            gone.setdefault(path, LeftOut(path, EXCLUDED, 0, 0, is_asked=True))
    prefix, place = "", None
    if form.strip_prefix is not None:
        model = select_model(checkpoint, form)
        rows, _ = _rows_of(
            checkpoint, model, Patterns(form.exclude, checkpoint), _Fates(checkpoint), Progress()
        )
        prefix, place = find_prefix(form, [name for name, _ in rows]), model.path
    nbytes = _stored_nbytes(checkpoint, kept, form)
    if form == Form(exclude=form.exclude) and checkpoint.file_nbytes >= nbytes - len(kept) * _AROUND_NBYTES:
        nbytes = min(nbytes, checkpoint.file_nbytes)  # a part of a file that is not compressed
    return FormPreview(
        model=place,
        tensors=len(kept),
        nbytes=nbytes,
        source_nbytes=checkpoint.file_nbytes,
        left_out=tuple(gone.values()),
        prefix=prefix,
        tied=(),
        refusals=() if kept or not checkpoint.tensors else (NO_TENSORS,),
        fates=bytes(fates.tensors),
        value_fates=bytes(fates.values),
        unused=patterns.unused,
    )


def _branch(path: str, patterns: Patterns) -> str:
    """Return the outermost part of a path that a pattern covers."""
    return next(part for part in lineage_of(path) if patterns.cover(part))


def _rows_of(
    checkpoint: Checkpoint, model: Model, patterns: Patterns, fates: _Fates, progress: Progress
) -> tuple[list[tuple[str, Tensor]], list[LeftOut]]:
    unsaved = _unsaved(checkpoint, model)
    rows, left_out = [], []
    for value in checkpoint.values:
        patterns.cover(value.path)  # a pattern for something that the form does not hold is not mistyped
    for number, row in enumerate(progress.over(checkpoint.tensors)):
        name = name_in(model, row)
        is_covered = patterns.cover(row.path, *(() if name is None else (name,)))
        if name is None or (row.role == "buffer" and row.keys in unsaved):
            continue
        why = why_unwanted(model, name)
        fates.tensors[number] = NEVER if why else DROPPED if is_covered else KEPT
        if why or is_covered:
            left_out.append(LeftOut(row.path, why or EXCLUDED, 1, row.nbytes, is_asked=not why))
        else:
            rows.append((name, row))
    return rows, left_out


def _unsaved(checkpoint: Checkpoint, model: Model) -> set[tuple[object, ...]]:
    """Return the buffers that no state dict has, from the texts of the sets that name them."""
    found: set[tuple[object, ...]] = set()
    if model.is_module:
        for value in checkpoint.values:
            if value.keys and value.keys[-1] == _NOT_SAVED:
                names = value.text.split('"')[1::2]
                found |= {(*value.keys[:-1], "._buffers", name) for name in names}
    return found


def _view(row: Tensor) -> object:
    if row.storage is None or not row.nbytes:
        return None
    return row.storage, row.dtype, row.storage_offset, row.shape, row.stride


def _refusal(name: str, row: Tensor) -> str:
    return refusal_of(name, row.dtype, row.layout, is_stored=row.storage is not None, is_number=not row.shape)


def _nbytes(row: Tensor, form: Form) -> int:
    is_cast = form.cast is not None and row.dtype == SOURCE
    return row.nbytes // ITEMSIZES[SOURCE] * 2 if is_cast else row.nbytes


def _stored_nbytes(checkpoint: Checkpoint, rows: Iterable[Tensor], form: Form) -> int:
    """Estimate what tensors take in a file of torch's: their storages, each once, and what stands around."""
    viewed: dict[str, int] = {}
    count = 0
    for row in rows:
        count += 1
        if row.storage is not None:
            viewed[row.storage] = viewed.get(row.storage, 0) + row.nbytes
    parts = {row.storage for row in checkpoint.tensors if row.part_of is not None}
    total = count * _TENSOR_NBYTES
    for storage in checkpoint.storages:
        if storage.key not in viewed and storage.key not in parts:
            continue
        nbytes = storage.nbytes
        if form.compact:
            nbytes = min(viewed.get(storage.key, nbytes), storage.viewed_nbytes)
        is_cast = form.cast is not None and storage.dtype == SOURCE
        total += _RECORD_NBYTES + (nbytes // 2 if is_cast else nbytes)
    return total
