"""An export in another form: the weights alone, a state dict, safetensors; as a new file that is read again.

The same promises as for a plain copy: the source is only read, bytes go from file to file, and the result
appears whole, synced and compared, or not at all. Names, types, shapes and strides are compared for all
tensors, and all other values; of the bytes, the beginning and the end of every run that was copied. Runs that
were cast or put in another order are not looked at again.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import IO, NamedTuple

from inspector.containers.container import Container
from inspector.containers.copying import write_bytes
from inspector.containers.formats import format_of
from inspector.containers.opening import open_path, read_container
from inspector.containers.persistent_ids import NO_DEVICE
from inspector.containers.rebuilds import SENT
from inspector.containers.source import FileSource, Source, Work
from inspector.containers.storage_reader import STEP_NBYTES
from inspector.diff.copies import digest_values
from inspector.diff.same_bytes import Span, end_spans, find_difference
from inspector.errors import ExportError, PlanError
from inspector.limits import DEFAULT_LIMITS
from inspector.model.build import build_checkpoint, collector_paused
from inspector.model.checkpoint import Checkpoint, Tensor, ValueRow
from inspector.model.found import Found
from inspector.model.obstacles import lost_directory
from inspector.model.tensors.views import Known, TensorFacts
from inspector.model.values.children import mapping_pairs
from inspector.model.walk import walk
from inspector.overriding import override
from inspector.pickles.values import Call, Dict, Global, Value
from inspector.progress import Progress
from inspector.records import dataclass, replace
from inspector.remap.files import OutFile, explained, refuse_destination, refuse_parts, writing
from inspector.remap.forms import (
    EXCLUDED,
    NO_TENSORS,
    NO_WEIGHTS,
    Form,
    FormExport,
    LeftOut,
    Patterns,
    check_form,
    lineage_of,
    refuse_suffix,
)
from inspector.remap.objects import (
    Model,
    Taken,
    find_prefix,
    leave_out,
    left_beside,
    metadata_of,
    select_model,
    strip_metadata,
    take_entries,
    value_at,
    without_choice,
)
from inspector.remap.pickle_writer import (
    Rebuilding,
    Writing,
    names_are_present,
    refuse_odd,
    write_pickle,
)
from inspector.remap.plan import Plan
from inspector.remap.relabel import mapped_container
from inspector.remap.safetensors import (
    SafetensorsFile,
    SafetensorsPlan,
    is_in_row_order,
    plan_safetensors,
    storage_key,
)
from inspector.remap.storages import (
    SOURCE,
    Caster,
    Piece,
    Stock,
    Storages,
    TorchFile,
    Viewed,
    check_length,
    read_at,
    refuse_full_disk,
)
from inspector.remap.verify import read_again
from inspector.units import cut_text, escape_text

# ------------------------------------------------------------------------------------------------------------
# What a form writes, decided before a byte is: a pickle and its storages, or safetensors.

Description = tuple[object, ...]
"""Name, type, shape, stride, layout and whether gradients are asked for."""


def describe_row(row: Tensor, *, named: bool = True) -> Description:
    """Return what a tensor of the copy must look like, with its name or without."""
    name = row.keys[-1] if named and row.keys else ""
    return name, row.dtype, row.shape, row.stride, row.layout, row.requires_grad


def describe_facts(name: str, dtype: str, facts: TensorFacts) -> Description:
    """Return what the copy of a tensor must look like."""
    return name, dtype, facts.shape, facts.stride, facts.layout, facts.requires_grad


# --- what a form writes, decided before a byte is: a pickle and its storages, or safetensors ----------------

_MOST_NAMES = 4
_MOST_CHARS = 40
_MOST_PATH = 80
# What looks at its data while it is loaded, which legacy files give too late for torch.
_ASK_DATA = frozenset({*SENT, "_rebuild_nested_tensor", "Generator"})


class Content(NamedTuple):
    """What is to be written.

    Attributes:
        values: What tells its object from others, but for its tensors; empty where that is not compared.
    """

    container: Container
    format: str
    byteorder: str
    pickle: bytes = b""
    pieces: tuple[Piece, ...] = ()
    safetensors: SafetensorsPlan | None = None
    model: str | None = None
    prefix: str = ""
    left_out: tuple[LeftOut, ...] = ()
    expected: tuple[Description, ...] = ()
    values: bytes = b""

    @property
    def nbytes(self) -> int:
        """How large the file will be at least."""
        slots = self.safetensors.slots if self.safetensors is not None else ()
        tensors = sum(slot.nbytes for slot in slots)
        return tensors + len(self.pickle) + sum(piece.nbytes for piece in self.pieces)

    @property
    def tied(self) -> tuple[tuple[str, str], ...]:
        """Names that are not written, each with the name of the same tensor that is."""
        return self.safetensors.tied if self.safetensors is not None else ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Deciding:
    """Decides what a form of one checkpoint holds.

    Attributes:
        plan: Where storages go; None sends weights to the CPU, and leaves everything else where it is.
    """

    container: Container
    checkpoint: Checkpoint
    form: Form
    plan: Plan | None
    progress: Progress
    verify: bool = False

    @property
    def format(self) -> str:
        """The format that is written."""
        return self.form.format_from(self.container.format)

    def decide(self) -> Content:
        """Decide."""
        if lost_directory(self.checkpoint):
            raise ExportError(
                "the zip has no directory: bytes of it are lost",
                where=self.container.path,
                remedy="recover what is intact, and export from that",
            )
        for stream, _ in self.container.objects:
            refuse_odd(stream)
        target = format_of(self.format)
        if target.is_stream and self.container.format != self.format:
            self._refuse_too_late()
        if self.checkpoint.is_program and not self.form.takes_model:
            raise PlanError(
                "a program is copied as it is, or its weights are taken out of it",
                where=self.container.path,
                remedy="ask for --format state-dict as well",
            )
        content = self._model() if self.form.takes_model else self._everything()
        if content.byteorder != "little" and (not target.has_records or self.form.cast):
            raise ExportError(
                "the tensors were saved on a big-endian machine, which only a zip file can record",
                remedy="choose the zip container, and do not cast",
            )
        return content

    @property
    def _byteorder(self) -> str:
        return "big" if ("byteorder", "big") in self.container.versions else "little"

    def _refuse_too_late(self) -> None:
        names = {node.name for stream, _ in self.container.objects for node in stream.globals}
        if names & _ASK_DATA and not self.form.takes_model:
            raise ExportError(
                "torch cannot read nested tensors, generators and tensors of XLA from legacy files",
                remedy="choose the zip container",
            )

    # --- the weights alone ----------------------------------------------------------------------------------

    def _model(self) -> Content:
        model = select_model(self.checkpoint, self.form)
        form, patterns = without_choice(self.form, model), self._patterns()
        taken = take_entries(self.container, model, patterns)
        if not any(taken.facts):
            raise PlanError(NO_WEIGHTS, where=model.label)
        patterns.refuse_unused(self.checkpoint.path)
        names = [name for name, _ in taken.entries]
        prefix = find_prefix(form, names)
        names = [name.removeprefix(prefix) for name in names]
        taken = taken._replace(
            entries=[(name, value) for name, (_, value) in zip(names, taken.entries, strict=True)]
        )
        left_out = (*taken.left_out, *left_beside(self.checkpoint, model))
        if form.shape == "safetensors":
            return self._safetensors(taken, model, prefix, left_out)
        return self._state_dict(taken, model, prefix, left_out)

    def _safetensors(self, taken: Taken, model: Model, prefix: str, left_out: tuple[LeftOut, ...]) -> Content:
        contents = plan_safetensors(taken.entries, taken.facts, self._dtypes)
        if contents.refusals:
            raise ExportError(
                "safetensors cannot hold all of the weights",
                where="; ".join(contents.refusals[:_MOST_NAMES]),
                remedy="leave them out with --exclude, or choose another format",
            )
        for slot in contents.slots:
            self._check(slot.name, slot.facts)
        expected = tuple((slot.name, slot.dtype, slot.facts.shape) for slot in contents.slots)
        made = Content(self.container, self.format, self._byteorder, safetensors=contents)
        left_out += contents.left_out
        return made._replace(model=model.path, prefix=prefix, left_out=left_out, expected=expected)

    def _check(self, name: str, facts: TensorFacts) -> None:
        stored = self.container.stored.get(facts.storage.key) if facts.storage is not None else None
        is_short = facts.span[1] > (0 if stored is None else stored.nbytes)
        if facts.problem or is_short:
            raise ExportError(
                f"a tensor is damaged: {facts.problem or 'its bytes are not all in the file'}", where=name
            )

    def _state_dict(self, taken: Taken, model: Model, prefix: str, left_out: tuple[LeftOut, ...]) -> Content:
        root = Call(Global("collections", "OrderedDict"), (), "reduce")
        root.pairs = list(taken.entries)
        if taken.metadata is not None:
            root.state = Dict([("_metadata", strip_metadata(taken.metadata, prefix))])
        expected = tuple(
            describe_facts(name, self._dtypes.get(facts.dtype, facts.dtype), facts)
            for (name, _), facts in zip(taken.entries, taken.facts, strict=True)
            if facts is not None
        )
        made = self._written(root, {}, self.container)
        return made._replace(model=model.path, prefix=prefix, left_out=left_out, expected=expected)

    # --- everything -----------------------------------------------------------------------------------------

    def _everything(self) -> Content:
        container, patterns = mapped_container(self.container, self.plan, self.progress), self._patterns()
        root = container.root
        left_out, kept = self._left_out(container, patterns)
        patterns.refuse_unused(self.checkpoint.path)
        if self.checkpoint.tensors and not kept:
            raise PlanError(NO_TENSORS, where=self.checkpoint.path, remedy="leave out less")
        prefixes: dict[int, str] = {}
        prefix, path = "", None
        if self.form.strip_prefix is not None:
            model = select_model(self.checkpoint, self.form)
            path, prefix = model.path, self._strip(prefixes, value_at(root, model.keys), model)
        expected = tuple(describe_row(row, named=False) for row in kept)
        made = self._written(root, prefixes, container)
        return made._replace(model=path, prefix=prefix, left_out=left_out, expected=expected)

    def _strip(self, prefixes: dict[int, str], mapping: Value, model: Model) -> str:
        """Have the prefix removed from a state dict's keys, and from what torch keeps beside them."""
        pairs = mapping_pairs(mapping)
        if pairs is None or model.is_module:
            raise PlanError(
                "the names of a whole module cannot be changed", remedy="ask for --format state-dict as well"
            )
        prefix = find_prefix(self.form, [key for key, _ in pairs if isinstance(key, str)])
        prefixes[id(mapping)] = prefix
        metadata = metadata_of(mapping)
        if metadata is not None:
            prefixes[id(metadata)] = prefix
        return prefix

    def _left_out(
        self, container: Container, patterns: Patterns
    ) -> tuple[tuple[LeftOut, ...], Sequence[Tensor]]:
        """Take out what patterns cover; return one row for each path of it, and the rows that are left."""
        if not self.form.exclude:
            return (), self.checkpoint.tensors
        before = self._walked(container)
        gone = {path: _left_out_row(path, why) for path, why in leave_out(container.root, patterns)}
        after = self._walked(container)
        kept = set(map(id, after.sources))
        for row, source in zip(before.tensors, before.sources, strict=True):
            path = next((path for path in lineage_of(row.path) if path in gone), None)
            if path is not None and row.part_of is None and id(source) not in kept:
                known = gone[path]
                gone[path] = known._replace(tensors=known.tensors + 1, nbytes=known.nbytes + row.nbytes)
        return tuple(gone.values()), after.tensors

    def _walked(self, container: Container) -> Found:
        limits = DEFAULT_LIMITS.started()
        return walk(container.root, limits, self.progress, Known(container.storage_ids))

    # --- both -----------------------------------------------------------------------------------------------

    def _patterns(self) -> Patterns:
        """Return the patterns; those that cover something outside of what is taken are not mistyped."""
        patterns = Patterns(self.form.exclude, self.checkpoint)
        if self.form.takes_model and self.form.exclude:
            rows: tuple[Tensor | ValueRow, ...] = (*self.checkpoint.tensors, *self.checkpoint.values)
            for row in rows:
                patterns.cover(row.path)
        return patterns

    @property
    def _dtypes(self) -> dict[str, str]:
        return {SOURCE: self.form.cast} if self.form.cast else {}

    def _written(self, root: Value, prefixes: dict[int, str], container: Container) -> Content:
        viewed = Viewed(container)
        how = Writing(
            naming=viewed,
            prefixes=prefixes,
            data=container.object_data,
            legacy=format_of(self.format).is_stream,
            names_are_present=any(names_are_present(one) for one, _ in container.objects),
            rebuilt=Rebuilding(container.storage_ids).call_for,
            progress=self.progress,
        )
        self.progress.start("writing the pickle")
        if self.form.compact:
            write_pickle(root, how)
        storages = Storages(container, self._location, self._owner, viewed.cuts(), self._dtypes)
        pickle = write_pickle(root, replace(how, naming=storages))
        pieces = tuple(storages.pieces.values())
        for piece in pieces:
            check_length(piece, self._owner)
        # With other keys, there is none before that it could be told from.
        is_compared = self.verify and not prefixes
        values = digest_values(container, root, self.progress) if is_compared else b""
        return Content(container, self.format, self._byteorder, pickle, pieces, values=values)

    def _owner(self, key: str) -> str:
        found = (row.path for row in self.checkpoint.tensors if row.storage == key)
        return next(found, f"storage {escape_text(key[:_MOST_CHARS])}")

    def _location(self, key: str, location: str) -> str:
        if self.form.takes_model:  # else the plan's already
            location = "cpu" if self.plan is None else self.plan.storages.get(key, location)
        return "cpu" if location == NO_DEVICE else location


def _left_out_row(path: str, same_as: str | None) -> LeftOut:
    why = EXCLUDED if same_as is None else f"the same entry of one object as {cut_text(same_as, _MOST_PATH)}"
    return LeftOut(path, why, 0, 0, is_asked=same_as is None)


# --- the file that is written, and read again ---------------------------------------------------------------

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
        header = content.safetensors.header
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
    start = len(contents.header)
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
    with collector_paused():
        return _decided(path, plan, form, progress or Progress(), verify=False).left_out


def _decided(
    source: Source | str, plan: Plan | None, form: Form, progress: Progress, *, verify: bool
) -> Content:
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
