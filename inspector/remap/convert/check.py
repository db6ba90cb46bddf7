"""Whether a file in another form is what was planned: opened again and compared, tensor by tensor.

Names, types, shapes and strides are compared for all tensors, and all other values; of the bytes, the
beginning and the end of every run that was copied. Runs that were cast or put in another order are not looked
at again.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from inspector.containers.container import Container
from inspector.containers.opening import read_container
from inspector.diff.copies import digest_values
from inspector.diff.same_bytes import Span, end_spans, find_difference
from inspector.errors import ExportError
from inspector.limits import DEFAULT_LIMITS
from inspector.model.build import build_checkpoint
from inspector.progress import Progress
from inspector.remap.compare.planned import read_again
from inspector.remap.convert.expected import Description, describe_row
from inspector.remap.convert.forms import Form
from inspector.remap.convert.planner import Content
from inspector.remap.convert.stored_bytes import Stock, read_at
from inspector.remap.files.outfile import OutFile
from inspector.remap.safetensors.contents import SafetensorsPlan, format_header
from inspector.remap.safetensors.file import is_in_row_order, storage_key
from inspector.units import escape_text

SAMPLE_NBYTES = 1 << 12


Copied = tuple[str, Span]
"""The key of a storage, and which of its bytes stand where in the copy."""


def verify_form(content: Content, form: Form, stock: Stock, out: OutFile, progress: Progress) -> None:
    """Compare a file that was just written with what was planned, and with the source."""
    progress.start("waiting for the disk")
    out.settle()
    progress.start("checking the copy")
    with read_again("the copy"):
        copy = read_container(str(out.path), DEFAULT_LIMITS, progress)
    if content.safetensors is not None:
        header = format_header(content.safetensors)
        if read_at(out.fd, 0, len(header)) != header:
            raise ExportError("the header of the copy is not as planned")
        found, values = tuple(row[:3] for row in _rows(copy, form, progress)), b""
        runs = _copied_tensors(content.safetensors, stock)
    else:
        found, values = _rows(copy, form, progress), _values(copy, progress)
        runs = _copied_storages(content, stock, copy)
    if found != content.expected:
        pairs = zip(found, content.expected, strict=False)
        wrong = next((one for one, other in pairs if one != other), ("their number",))
        raise ExportError("the copy is not as planned", where=escape_text(str(wrong[0])))
    if content.values and content.values != values:
        raise ExportError("the copy is not as planned", where="values other than tensors")
    for key, span in runs:
        spans = end_spans(span, SAMPLE_NBYTES)
        if find_difference(stock.reader(key, progress), partial(read_at, out.fd), spans, progress):
            raise ExportError("the bytes of the copy differ from the file's", where=f"storage {key[:40]}")


def _rows(container: Container, form: Form, progress: Progress) -> tuple[Description, ...]:
    copy = build_checkpoint(container, progress=progress)
    damaged = next((row for row in copy.tensors if row.problem), None)
    if damaged is not None:
        raise ExportError("a tensor of the copy is damaged", where=f"{damaged.path}: {damaged.problem}")
    if form.takes_model:
        return tuple(describe_row(row) for row in copy.tensors if len(row.keys) == 1)
    return tuple(describe_row(row, named=False) for row in copy.tensors)


def _values(container: Container, progress: Progress) -> bytes:
    return digest_values(container, container.root, progress)


def _copied_storages(content: Content, stock: Stock, copy: Container) -> Iterator[Copied]:
    for piece in content.pieces:
        stored = copy.stored.get(piece.name.key)
        if stored is None or stored.offset is None or stock.is_cast(piece.source, piece.dtype):
            continue
        place = stored.offset
        for span in piece.ranges:
            nbytes = span[1] - span[0]
            yield piece.source, Span(span[0], place, nbytes)
            place += nbytes


def _copied_tensors(contents: SafetensorsPlan, stock: Stock) -> Iterator[Copied]:
    start = len(format_header(contents))
    for slot in contents.slots:
        key = storage_key(slot.facts)
        if slot.nbytes and is_in_row_order(slot.facts) and not stock.is_cast(key, slot.dtype):
            first, last = slot.facts.span
            yield key, Span(first, start + slot.start, last - first)
