"""An export in another form: the weights alone, a state dict, safetensors; as a new file that is read again.

The same promises as for a plain copy: the source is only read, bytes go from file to file, and the result
appears whole, synced and compared, or not at all. Names, types, shapes and strides are compared for all
tensors, and all other values; of the bytes, the beginning and the end of every run that was copied. Runs that
were cast or put in another order are not looked at again.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import IO

from inspector.containers.container import Container
from inspector.containers.copying import write_bytes
from inspector.containers.formats import format_of
from inspector.containers.opening import open_path, read_container
from inspector.containers.source import FileSource, Source, Work
from inspector.containers.storage_reader import STEP_NBYTES
from inspector.diff.copies import digest_values
from inspector.diff.same_bytes import Span, end_spans, find_difference
from inspector.errors import ExportError
from inspector.limits import DEFAULT_LIMITS
from inspector.model.build import build_checkpoint, collector_paused
from inspector.overriding import override
from inspector.progress import Progress
from inspector.records import replace
from inspector.remap.files import OutFile, explained, refuse_destination, refuse_parts, writing
from inspector.remap.forms import Form, FormExport, LeftOut, check_form, refuse_suffix
from inspector.remap.plan import Plan
from inspector.remap.planner import Content, Deciding, Description, describe_row
from inspector.remap.safetensors import (
    SafetensorsFile,
    SafetensorsPlan,
    format_header,
    is_in_row_order,
    storage_key,
)
from inspector.remap.storages import Caster, Stock, read_at, refuse_full_disk
from inspector.remap.torch_file import TorchFile
from inspector.remap.verify import read_again
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


# --- the export ---------------------------------------------------------------------------------------------


def export_form(  # noqa: PLR0913 - what, where, how, and three words for what may go wrong
    path: str,
    destination: Path,
    plan: Plan | None,
    form: Form,
    progress: Progress | None = None,
    *,
    overwrite: bool = False,
    verify: bool = True,
    python: str | None = None,
) -> FormExport:
    """Write a checkpoint in another form.

    Args:
        plan: Where storages go, made from this very file; without one weights go to the CPU.
        python: What names the Python whose torch casts; None for the one that counts.
    """
    progress = progress or Progress()
    check_form(form)
    if form.shape != "safetensors":
        refuse_suffix(destination, form.shape)
    refuse_destination(path, destination, overwrite=overwrite)
    with collector_paused(), _plain_source(path, destination.parent, progress) as source:
        content = _decided(source, plan, form, progress, verify=verify)
        refuse_parts((part.path for part in content.container.parts), destination)
        refuse_full_disk(destination.parent, content.nbytes)
        with ExitStack() as exits:
            caster = exits.enter_context(Caster(form.cast, python)) if form.cast else None
            stock = exits.enter_context(Stock(source, content.container, destination.parent, caster))
            out = exits.enter_context(writing(destination, like=source.status, overwrite=overwrite))
            _write(content, stock, out.fd, _folder_of(destination), progress)
            source.refuse_changed("copied")
            if verify:
                verify_form(content, form, stock, out, progress)
            nbytes = os.fstat(out.fd).st_size
            progress.start("waiting for the disk")
    return FormExport(
        destination=destination,
        form=form,
        format=content.format,
        model=content.model,
        tensors=len(content.expected),
        nbytes=nbytes,
        source_nbytes=source.file_nbytes,
        left_out=content.left_out,
        prefix=content.prefix,
        tied=content.tied,
        overflowed=0 if caster is None else caster.overflowed,
        verified=verify,
        compared_values=verify and bool(content.values),
    )


def list_left_out(
    path: str, plan: Plan | None, form: Form, progress: Progress | None = None
) -> tuple[LeftOut, ...]:
    """Return what an export in a form would not hold, decided as the export itself decides it."""
    progress = progress or Progress()
    with collector_paused():
        container = read_container(path, DEFAULT_LIMITS, progress)
        checkpoint = build_checkpoint(container, progress=progress)
        deciding = Deciding(
            container=container, checkpoint=checkpoint, form=form, plan=plan, progress=progress
        )
        return deciding.decide().left_out


def _decided(source: Source, plan: Plan | None, form: Form, progress: Progress, *, verify: bool) -> Content:
    """Decide what is written; of what was read only the places of bytes are kept, so that memory is free."""
    container = read_container(source, DEFAULT_LIMITS, progress)
    checkpoint = build_checkpoint(container, progress=progress)
    content = Deciding(
        container=container, checkpoint=checkpoint, form=form, plan=plan, progress=progress, verify=verify
    ).decide()
    bare = replace(content.container, root=None, stream=None, streams=(), programs=(), pickles=(), data=b"")
    return content._replace(container=bare)


def _write(content: Content, stock: Stock, target: int, folder: str, progress: Progress) -> None:
    if content.safetensors is not None:
        SafetensorsFile(content.safetensors, stock, target, progress).write()
        return
    file = TorchFile(
        pickle=content.pickle,
        pieces=content.pieces,
        stock=stock,
        byteorder=content.byteorder,
        target=target,
        progress=progress,
    )
    if format_of(content.format).is_stream:
        file.write_legacy()
    else:
        file.write_zip(folder)


def _folder_of(destination: Path) -> str:
    """Name the folder of all records as torch does: after the file, up to its last dot."""
    name = destination.name.rpartition(".")[0] or destination.name
    return name if name.isprintable() and "\\" not in name and name.strip(". ") else "archive"


# --- the source ---------------------------------------------------------------------------------------------


class _Unpacked(FileSource):
    """The inside of a gzip file, in a file without a name."""

    def __init__(self, packed: Source, fd: int) -> None:
        self._packed = packed
        super().__init__(packed.path, fd)
        self.status, self.file_nbytes = packed.status, packed.file_nbytes

    @override
    def refuse_changed(self, done: Work) -> None:
        self._packed.refuse_changed(done)


@contextmanager
def _plain_source(path: str, folder: Path, progress: Progress) -> Iterator[Source]:
    """Open a file; one that is compressed with gzip is unpacked into a file that vanishes by itself."""
    with open_path(path, DEFAULT_LIMITS) as source:
        if not source.gzipped:
            yield source
            return
        with _vanishing(folder) as unpacked:
            progress.start("unpacking")
            offset = 0
            while data := source.read_upto(offset, STEP_NBYTES):
                with explained(folder):
                    progress.advance(write_bytes(unpacked.fileno(), data))
                offset += len(data)
            with _Unpacked(source, os.dup(unpacked.fileno())) as plain:
                yield plain


def _vanishing(folder: Path) -> IO[bytes]:
    with explained(folder):
        return tempfile.TemporaryFile(dir=folder)
