"""A folder of `torch.distributed.checkpoint` as one checkpoint, whose tensors are whole over all files.

Nothing of a tensor is read but what `.metadata` says of it. Where its bytes are within the file of a rank is
looked up when they are wanted: 50,000 tensors of 100 ranks would be as many small zips. Of the file of a rank
without its `.metadata`, what was saved is there, and what it is called is not.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from typing import NamedTuple, cast

from inspector.containers.base import Cannot, Format, no_copy_of
from inspector.containers.container import Chunk, Container, Gathered, Part, StoredBytes
from inspector.containers.dcp_metadata import (
    OWN_NAMES,
    MetadataFile,
    Nesting,
    Sizes,
    Stored,
    TensorEntry,
    parse_metadata,
)
from inspector.containers.element_types import ITEMSIZES
from inspector.containers.folder import Folder, leads_out, run_beside
from inspector.containers.gathered import ZSTD, tile
from inspector.containers.notes import AMBIGUOUS, Note, NoteKind, are_files, listed, shown
from inspector.containers.packed import inflated_part, inflated_start
from inspector.containers.packings import can_open_zstd
from inspector.containers.persistent_ids import NO_DEVICE, StorageId, parse_storage_id, rename_storage
from inspector.containers.programs import Programs
from inspector.containers.source import BytesSource, Source, Window
from inspector.containers.zip.archive import read_torchzip
from inspector.containers.zip.directory import (
    END,
    END64,
    END64_SIGNATURE,
    END_SIGNATURE,
    LOCAL_SIGNATURE,
    LOCATOR64,
)
from inspector.errors import (
    CancelledError,
    CheckpointError,
    ContainerError,
    DamagedError,
    NotACheckpointError,
    TooLargeError,
)
from inspector.limits import Limits
from inspector.overriding import override
from inspector.pickles.machine import Machine, Stream
from inspector.pickles.values import PersistentId, StoredTensor, Value
from inspector.progress import Progress
from inspector.quoting import file_word
from inspector.records import replace
from inspector.units import format_count, format_nbytes

# --- zips in a row ------------------------------------------------------------------------------------------


_TAIL_NBYTES = END64.size + LOCATOR64.size + END.size
_STEP_NBYTES = 1 << 20
_PART_NBYTES = 512  # searching so many bytes takes as long as looking at a part of a pickle


class Span(NamedTuple):
    """Where one of them begins, and how long it is."""

    offset: int
    nbytes: int


class Row(NamedTuple):
    """The zips of a file."""

    spans: tuple[Span, ...]
    lost: int  # how many bytes stand before the first of them or behind the last, and belong to none


def ends_in_row(source: Source) -> bool:
    """Return whether a file ends with a zip that another one stands before."""
    last = _span_before(source, source.nbytes)
    return last is not None and last.offset > 0 and _span_before(source, last.offset) is not None


def find_row(source: Source, look: Callable[[int], object]) -> Row:
    """Find the zips of a file: from its end, where it is whole, else by searching from its beginning."""
    spans: list[Span] = []
    end = source.nbytes
    while end:
        look(1)
        span = _span_before(source, end)
        if span is None:
            break
        spans.append(span)
        end = span.offset
    if end == 0 or spans:
        return Row(tuple(reversed(spans)), end)
    spans = _search(source, look)
    return Row(tuple(spans), source.nbytes - (spans[-1].offset + spans[-1].nbytes if spans else 0))


def _span_before(source: Source, end: int) -> Span | None:
    """Return the zip of torch that ends at a place: such a one always has an end record of Zip64."""
    if end < _TAIL_NBYTES:
        return None
    tail = source.read(end - _TAIL_NBYTES, _TAIL_NBYTES)
    if tail[:4] != END64_SIGNATURE or tail[-END.size :][:4] != END_SIGNATURE:
        return None
    nbytes, start = END64.unpack_from(tail)[8:10]
    offset = end - _TAIL_NBYTES - nbytes - start
    if offset < 0 or source.read(offset, 4) != LOCAL_SIGNATURE:
        return None
    return Span(offset, end - offset)


def _search(source: Source, look: Callable[[int], object]) -> list[Span]:
    spans: list[Span] = []
    pos, reached = 0, 0
    while pos < source.nbytes:
        look(_STEP_NBYTES // _PART_NBYTES)
        block = source.read_upto(pos, _STEP_NBYTES + END.size)
        at = block.find(END_SIGNATURE)
        if at < 0:
            pos += _STEP_NBYTES
            continue
        end = pos + at + END.size
        span = _span_before(source, end) if end <= source.nbytes else None
        if span is not None and span.offset == reached:
            spans.append(span)
            reached = end
            pos = end
        else:
            pos += at + 1
    return spans


# --- values -------------------------------------------------------------------------------------------------


_MOST_PICKLE_NBYTES = 64 << 20
VALUES = "saved values"
"""The name of the programs that make them."""


class Values:
    """Reads values, and gathers what each of them brings: programs, and storages under keys of their own."""

    def __init__(
        self, programs: Programs, limits: Limits, progress: Progress, taken: Collection[str] = ()
    ) -> None:
        """Prepare to read; programs are added to these, and no storage gets a key that is taken."""
        self.storage_ids: dict[str, StorageId] = {}
        self.stored: dict[str, StoredBytes] = {}
        self._taken = set(taken)
        self._programs = programs
        # What is large must not stay in a stream that nobody can ask for it later.
        self._limits = replace(limits, text_nbytes=_MOST_PICKLE_NBYTES, pickle_nbytes=_MOST_PICKLE_NBYTES)
        self._progress = progress

    def read(
        self,
        source: Source,
        part: int,
        offset: int,
        nbytes: int,
        name: str,
        *,
        is_inflated: bool = False,
    ) -> Value:
        """Return a value; what its tensors hold is nowhere in the file where that had to be inflated."""
        window = Window(source, offset, nbytes)
        try:
            container = read_torchzip(window, self._limits, self._progress)
        finally:
            self._programs.adopt(window.programs, VALUES, "object")
        if any(note.kind in AMBIGUOUS for note in container.notes):
            raise DamagedError("a value is damaged", where=f"{name} in {source.path}")
        for storage_id, stored in _renamed(container, name, self._taken):
            self.storage_ids[storage_id.key] = storage_id
            if stored is not None:
                place = None if stored.offset is None or is_inflated else stored.offset + offset
                self.stored[storage_id.key] = StoredBytes(part, place, stored.nbytes)
        return container.root


def _renamed(
    container: Container, name: str, taken: set[str]
) -> Iterator[tuple[StorageId, StoredBytes | None]]:
    """Yield the storages under keys that no other has, and let the persistent ids name these."""
    renamed: dict[str, StorageId] = {}
    for key, storage_id in container.storage_ids.items():
        new = f"{name}:{key}"
        while new in taken:
            new += "'"
        taken.add(new)
        renamed[key] = storage_id._replace(key=new)
    for node in container.pickle().persistent_ids:
        own = parse_storage_id(node)
        if own is not None:
            rename_storage(node, own._replace(key=renamed[own.key].key))
    for key, storage_id in renamed.items():
        yield storage_id, container.stored.get(key)


# --- the folder ---------------------------------------------------------------------------------------------


METADATA, SHARD = ".metadata", ".distcp"
_LOADER = "torch.distributed.checkpoint.FileSystemReader"
_DECIDES = "the tensors that it is loaded into decide"
_MOST_OTHERS, _MOST_CHUNKS = 64, 1_000  # a chunk takes half a millisecond
_ZSTD = ("stream.zstd/1",)  # `ZStandard` in torch's `checkpoint/_extension.py`
_ZSTD_HEAD_NBYTES = 1 << 18
_LATE = frozenset({"safetensors", "transformed", ZSTD})  # what came later than the restriction of chunks
_HARMLESS = OWN_NAMES | {"torch.Size", "torch.serialization._get_layout"}
_MORE_VALUES, _MOST_VALUES = 2, 8_000_000  # a tensor of two chunks is 80 of them
_NO_ZIP = "UnpicklingError: Weights only load failed."
_TORN = "RuntimeError: PytorchStreamReader failed reading zip archive: failed finding central directory"
_RANK = re.compile(r"__([0-9]{1,9})_[0-9]{1,9}\.distcp")  # `DEFAULT_SUFFIX` of torch's filesystem.py
_SAFETENSORS_BRACE = b"{"


def read_metadata_stream(source: Source, programs: Programs, limits: Limits, progress: Progress) -> Stream:
    """Read the pickle of a `.metadata`, which its loader runs whole."""
    if source.nbytes > limits.pickle_nbytes:
        what = f"the metadata is longer than {limits.pickle_nbytes:,} bytes"
        programs.miss(METADATA, what)
        raise TooLargeError(what, where=source.path)
    limits = replace(limits, values=max(limits.values, min(_MORE_VALUES * limits.values, _MOST_VALUES)))
    machine = Machine(source.read(0, source.nbytes), name=METADATA, limits=limits, progress=progress)
    return programs.run(machine, METADATA, "part")


def read_dcp(files: Folder, limits: Limits, progress: Progress) -> Container:
    """Read a distributed checkpoint."""
    metadata = files.entry if files.entry.endswith(METADATA) else METADATA
    described = None
    if metadata in files.sizes:
        described = _described(files, metadata, limits, progress)
    _run_others(files, metadata, limits, progress)
    if described is None:
        alone = next((name for name in files.sizes if name.endswith(METADATA)), METADATA)
        raise NotACheckpointError(
            "each rank saved a checkpoint of its own into this folder",
            where=files.path,
            remedy=f"give the metadata of the rank that is wanted, such as {file_word(alone)}",
            form="dcp",
        )
    return _Joining(files, described, limits, progress).join(metadata)


def _described(files: Folder, metadata: str, limits: Limits, progress: Progress) -> MetadataFile:
    """Return what one metadata file says; without that, nobody knows what its values run."""
    try:
        with files.open(metadata) as source:
            stream = read_metadata_stream(source, files.programs, limits, progress)
        files.programs.let_go(METADATA, _HARMLESS)
        return parse_metadata(stream.root, metadata, limits.counted(progress.advance).look)
    except CancelledError:
        raise
    except CheckpointError as error:
        files.programs.miss(f"the values of {metadata}", error.what)
        raise


def _run_others(files: Folder, chosen: str, limits: Limits, progress: Progress) -> None:
    """Read what the metadata of single ranks runs, and their values.

    Where `.metadata` fails, torch goes on with them: see `load` in its `checkpoint/state_dict_loader.py`.
    """
    others = [name for name in files.sizes if name.endswith(METADATA) and "/" not in name and name != chosen]
    for number, name in enumerate(others):
        if number == _MOST_OTHERS:
            files.programs.miss("the metadata of further ranks", f"only {_MOST_OTHERS} are read")
            return
        try:
            _Joining(files, _described(files, name, limits, progress), limits, progress).join(name)
        except CancelledError:
            raise
        except CheckpointError as error:
            files.programs.miss(name, error.what)


class _Place(NamedTuple):
    """Where something is: the number of its file, or why it is nowhere."""

    part: int
    packing: str = ""
    file: str = ""


class _Joining:
    def __init__(self, files: Folder, described: MetadataFile, limits: Limits, progress: Progress) -> None:
        self._files = files
        self._described = described
        self._is_whole = METADATA in files.sizes
        self._limits = limits
        self._look = limits.counted(progress.advance).look
        self._progress = progress
        self._chunks: list[tuple[str, Stored]] = []
        names = (entry.name for entry in described.entries if not isinstance(entry, str))
        self._values = Values(files.programs, limits, progress, set(names))
        self._numbers: dict[str, int] = {}
        self._packings: dict[str, str] = {}
        self._are_zips: dict[str, bool] = {}
        self._gathered: dict[str, Gathered] = {}
        self._storage_ids: dict[str, StorageId] = {}
        self._stored: dict[str, StoredBytes] = {}
        self._missing: dict[str, None] = {}
        self._outside: dict[str, None] = {}
        self._short: dict[str, None] = {}
        self._faulty: list[tuple[str, str]] = []
        self._transforms: dict[str, None] = {}
        self._unread: dict[str, str] = {}
        self._open: tuple[str, Source] | None = None

    def join(self, metadata: str) -> Container:
        described = self._described
        entries = described.entries
        self._progress.start("reading the metadata", len(entries), is_counted=True)
        nesting = Nesting(len(entries))
        try:
            for entry in entries:
                self._progress.advance(1)
                name = entry if isinstance(entry, str) else entry.name
                value = self._value(name) if isinstance(entry, str) else self._tensor(entry)
                nesting.put(name, described.paths.get(name, (name,)), value)
            self._run_rest()
        finally:
            if self._open is not None:
                self._open[1].close()
        sizes = self._files.sizes
        parts = tuple(Part(self._files.path_of(name), sizes[name]) for name in self._numbers)
        return Container(
            path=self._files.path,
            format="dcp",
            file_nbytes=sum(part.nbytes for part in parts) + sizes.get(metadata, 0),
            root=nesting.root,
            storage_ids={**self._storage_ids, **self._values.storage_ids},
            stored={**self._stored, **self._values.stored},
            parts=parts,
            versions=(("dcp", described.version),) if described.version else (),
            notes=tuple(self._notes()),
            gathered=self._gathered,
            refusal=self._refusal(),
        )

    # --- tensors --------------------------------------------------------------------------------------------

    def _tensor(self, entry: TensorEntry) -> Value:
        chunks = tuple(self._chunk(entry.name, starts, sizes) for starts, sizes in entry.chunks)
        itemsize = ITEMSIZES[entry.dtype]
        gathered = Gathered(entry.name, entry.dtype, itemsize, entry.size, chunks)
        tiling = tile(gathered, self._look)
        numel = gathered.nbytes // itemsize
        key = entry.name
        self._storage_ids[key] = StorageId(
            key, entry.dtype, itemsize, NO_DEVICE, numel, untyped=False, view=None
        )
        self._gathered[key] = gathered
        self._stored.pop(key, None)
        if tiling.fault:
            self._faulty.append((entry.name, tiling.fault))
        elif all(chunk.part >= 0 for chunk in chunks):
            part = chunks[0].part if chunks else 0
            self._stored[key] = StoredBytes(part, None, gathered.nbytes)
        return StoredTensor(key, entry.dtype, entry.size, requires_grad=entry.requires_grad)

    def _chunk(self, name: str, starts: Sizes, sizes: Sizes) -> Chunk:
        info = self._described.stored.get((name, starts))
        if info is None or 0 in sizes:
            return Chunk(starts, sizes, -1 if info is None and 0 not in sizes else 0, 0, 0)
        self._chunks.append((name, info))
        place = self._place(info)
        return Chunk(starts, sizes, place.part, info.offset, info.length, place.packing)

    def _place(self, info: Stored) -> _Place:
        name = self._files.locate(info.path)
        if name is None:
            (self._outside if leads_out(info.path) else self._missing)[info.path.removeprefix("./")] = None
            return _Place(-1)
        number = self._numbers.setdefault(name, len(self._numbers))
        is_zstd = info.transforms == _ZSTD and can_open_zstd()
        if info.transforms and not is_zstd:
            self._transforms.update(dict.fromkeys(info.transforms))
            return _Place(number, "transformed", name)
        if info.offset + info.length > self._files.sizes[name]:
            self._short[name] = None
            return _Place(-1, file=name)
        if is_zstd:
            is_zip = self._are_zips.setdefault(name, self._is_zip_in_zstd(name, info))
            return _Place(number, ZSTD, name) if is_zip else _Place(-1, file=name)
        return _Place(number, self._packing(name, info.offset), name)

    def _is_zip_in_zstd(self, name: str, info: Stored) -> bool:
        """Return whether the parts of a file that zstd compressed are zips: torch misplaces all others."""
        if name in self._are_zips:
            return self._are_zips[name]
        with suppress(CheckpointError):
            head = self._source(name).read_upto(info.offset, min(info.length, _ZSTD_HEAD_NBYTES))
            found = inflated_start(BytesSource(head, name), len(LOCAL_SIGNATURE))
            return found == LOCAL_SIGNATURE
        return False

    def _packing(self, name: str, offset: int) -> str:
        """Return what the tensors of a file are packed in: the same for all of them."""
        packing = self._packings.get(name)
        if packing is None:
            head = self._source(name).read_upto(offset, 9)
            is_zip = head[8:] != _SAFETENSORS_BRACE or head[:4] == LOCAL_SIGNATURE
            packing = self._packings[name] = "zip" if is_zip else "safetensors"
        return packing

    def _source(self, name: str) -> Source:
        """Return an open file; one at a time, since the files of a rank follow each other."""
        if self._open is not None and self._open[0] == name:
            return self._open[1]
        if self._open is not None:
            self._open[1].close()
            self._open = None
        source = self._files.open(name)
        self._open = name, source
        return source

    # --- values ---------------------------------------------------------------------------------------------

    def _value(self, name: str) -> Value:
        """Read a value that is no tensor; one that cannot be read stands as a reference."""
        info = self._described.stored.get((name, None))
        return PersistentId(("value", name)) if info is None else self._run(name, info)

    def _run(self, name: str, info: Stored) -> Value:
        """Read what torch unpickles without a list: what cannot be read of it is not known."""
        place, programs = self._place_of_value(info), self._files.programs
        unread = PersistentId(("value", name))
        if not place.file:
            if self._files.leads_elsewhere(info.path):
                programs.miss(shown(name), "it is in a file that is not within the folder")
            return unread
        if place.packing not in {"", ZSTD}:
            programs.miss(shown(name), "it is packed in a way that is not undone here")
            return unread
        nbytes = min(info.length, self._files.sizes[place.file] - info.offset)
        if nbytes < info.length:
            programs.miss(shown(name), "its file is cut off")
        try:
            source, offset, nbytes = self._source(place.file), info.offset, max(nbytes, 0)
            if place.packing:
                source = inflated_part(source, offset, nbytes, _MOST_PICKLE_NBYTES)
                offset, nbytes = 0, source.nbytes
            found = self._values.read(
                source, place.part, offset, nbytes, name, is_inflated=bool(place.packing)
            )
        except CancelledError:
            raise
        except CheckpointError as error:
            self._unread[name] = str(error)
            programs.miss(shown(name), error.what)
            return unread
        return found if place.part >= 0 else unread

    def _run_rest(self) -> None:
        """Read what else is unpickled: rivals of a place, and chunks, which torch restricts since 2.6."""
        for name, info in self._described.rivals:
            self._run(name, info)
        others, left = Values(self._files.programs, self._limits, self._progress), _MOST_CHUNKS
        for name, info in sorted(self._chunks, key=lambda one: one[1][:2]):
            place = self._place(info)
            if place.packing in _LATE:
                continue
            if not left:
                self._files.programs.miss("further chunks", f"{_MOST_CHUNKS:,} are read", restricted=True)
                return
            left -= 1
            try:
                if place.part >= 0:
                    others.read(self._source(place.file), place.part, info.offset, info.length, name)
                elif place.file or self._files.leads_elsewhere(info.path):
                    raise ContainerError("a chunk of it is not whole" if place.file else "it is elsewhere")
            except CancelledError:
                raise
            except CheckpointError as error:
                self._files.programs.miss(f"the tensor {shown(name)}", error.what)

    def _place_of_value(self, info: Stored) -> _Place:
        name = self._files.locate(info.path) or ""
        known = self._packings.get(name)
        place = self._place(info)
        if known is None:  # values stand before the tensors, and are files of torch.save whatever those are
            self._packings.pop(name, None)
        return place._replace(packing=place.packing if info.transforms else "")

    def _refusal(self) -> str:
        if self._missing:
            path = self._files.path_of(next(iter(self._missing)))
            return f"FileNotFoundError: [Errno 2] No such file or directory: {path!r}"
        if self._short or self._unread:
            return _TORN
        # Its reader asks torch.load for each tensor, whatever the writer was told.
        is_other = "safetensors" in self._packings.values() or not all(self._are_zips.values())
        return _NO_ZIP if is_other else ""

    # --- notes ----------------------------------------------------------------------------------------------

    def _notes(self) -> Iterator[Note]:
        if self._outside:
            yield Note(NoteKind.PART_OUTSIDE, (listed(self._outside),))
        shards = [name for name in self._files.sizes if name.endswith(SHARD)]
        extra = [name for name in shards if name not in self._numbers] if self._is_whole else []
        counted: tuple[tuple[NoteKind, Collection[str]], ...] = (
            (NoteKind.MISSING_PART, self._missing),
            (NoteKind.SHORT_PART, self._short),
            (NoteKind.EXTRA_PART, extra),
        )
        yield from (Note(kind, (are_files(len(names)), listed(names))) for kind, names in counted if names)
        if self._faulty:
            first, why = self._faulty[0]
            yield Note(NoteKind.FAULTY_CHUNKS, (format_count(len(self._faulty), "tensor"), shown(first), why))
        if self._transforms:
            yield Note(NoteKind.PACKED_PARTS, (listed(self._transforms),))
        if self._unread:
            first, why = next(iter(self._unread.items()))
            yield Note(NoteKind.UNREAD_VALUES, (format_count(len(self._unread), "value"), shown(first), why))
        ranks = {found[1] for name in self._numbers if (found := _RANK.fullmatch(name))}
        if ranks:
            files = format_count(len(self._numbers), "file")
            yield Note(NoteKind.RANKS, (format_count(len(ranks), "rank"), files))


# --- a file of one rank -------------------------------------------------------------------------------------


def read_alone(source: Source, limits: Limits, progress: Progress) -> Container:
    """Read a file of one rank as a list of what stands in it."""
    row = find_row(source, limits.counted(progress.advance).look)
    if not row.spans:
        raise DamagedError(
            "nothing in this file of a distributed checkpoint is whole",
            where=source.path,
            remedy="fetch the folder that it is from again",
        )
    progress.start("reading", len(row.spans), is_counted=True)
    values = Values(source.programs, limits, progress)
    unread: list[str] = []
    root: list[Value] = [_read(values, source, number, span, unread) for number, span in enumerate(row.spans)]
    notes = [Note(NoteKind.ALONE, (format_count(len(root), "saved object"),))]
    if row.lost:
        notes.append(Note(NoteKind.STRAY_BYTES, (format_nbytes(row.lost),)))
        source.programs.miss("bytes between the saved objects", "nothing tells what they are")
    if unread:
        notes.append(Note(NoteKind.UNREAD_VALUES, (format_count(len(unread), "value"), "One", unread[0])))
    return Container(
        path=source.path,
        format="distcp",
        file_nbytes=source.file_nbytes,
        root=root,
        storage_ids=values.storage_ids,
        stored=values.stored,
        notes=tuple(notes),
        refusal=f"NotADirectoryError: [Errno 20] Not a directory: '{source.path}/.metadata'",
    )


def _read(values: Values, source: Source, number: int, span: Span, unread: list[str]) -> Value:
    try:
        return values.read(source, 0, span.offset, span.nbytes, str(number))
    except CancelledError:
        raise
    except CheckpointError as error:
        unread.append(str(error))
        source.programs.miss(f"value {number}", error.what)
        return PersistentId(("value", str(number)))


class Dcp(Format):
    """What torch.distributed.checkpoint saves."""

    name = "dcp"
    what = "a distributed checkpoint (DCP)"
    reads_below = True
    keys_are_texts = True
    loader = _LOADER
    device_from = _DECIDES
    own_names = OWN_NAMES
    copied_as = "objects"
    cannot = (
        Cannot(
            ("remap", "in-place"),
            "a distributed checkpoint has no devices, so there are none to change",
            "the model that it is loaded into decides; "
            "for torch.load write one file: export --format same -o model.pth",
        ),
        Cannot(
            ("recover",),
            "what is whole in a distributed checkpoint is saved by leaving out what is not",
            "use export --format same -o model.pth and --exclude with the name of what is not whole",
        ),
        no_copy_of("a distributed checkpoint"),
    )

    @override
    def matches_folder(self, folder: Folder) -> bool:
        """Return whether a folder is that of a distributed checkpoint, or was opened by a file of one."""
        return folder.entry.endswith((METADATA, SHARD)) or any(
            name.endswith(METADATA) and "/" not in name for name in folder.sizes
        )

    @override
    def read(self, source: Source, limits: Limits, progress: Progress) -> Container:
        folder = cast("Folder", source)
        found = read_dcp(folder, limits, progress)
        tops = (name.partition("/") for name in (*folder.sizes, *folder.outside))
        for below in dict.fromkeys(["", *(top + mark for top, mark, _ in tops if mark)]):
            run_beside(folder, (), below, limits, progress)  # such as what Lightning keeps in meta.pt
        return found


class Distcp(Format):
    """What one rank wrote of such a folder, alone: told as a kind of zip."""

    name = "distcp"
    what = "what one rank wrote of a distributed checkpoint"
    loader = _LOADER
    device_from = _DECIDES
    own_names = OWN_NAMES
    copied_as = "objects"
    cannot = (
        Cannot(
            ("remap", "in-place", "recover", "verify"),
            "what one rank wrote of a distributed checkpoint is only a part of it",
            "put it back beside its .metadata, or write what is in it "
            "for torch.load: export --format same -o model.pth",
        ),
    )

    @override
    def read(self, source: Source, limits: Limits, progress: Progress) -> Container:
        return read_alone(source, limits, progress)
