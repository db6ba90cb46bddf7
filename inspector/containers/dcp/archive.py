"""A folder of `torch.distributed.checkpoint` as one checkpoint, whose tensors are whole over all files.

Nothing of a tensor is read but what `.metadata` says of it. Where its bytes are within the file of a rank is
looked up when they are wanted: 50,000 tensors of 100 ranks would be as many small zips.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

from inspector.containers.container import Container, Part, StoredBytes
from inspector.containers.dcp.metadata import (
    MetadataFile,
    Sizes,
    Stored,
    TensorEntry,
    parse_metadata,
)
from inspector.containers.dcp.names import OWN_NAMES
from inspector.containers.dcp.nesting import Nesting
from inspector.containers.dcp.values import Values
from inspector.containers.folders.folder import Folder
from inspector.containers.folders.naming import are_files, listed, shown
from inspector.containers.gathered.chunks import Chunk, Gathered
from inspector.containers.gathered.tiling import tile
from inspector.containers.notes import Note, NoteKind
from inspector.containers.persistent_ids import NO_DEVICE, StorageId
from inspector.containers.programs import Programs
from inspector.containers.raw.itemsizes import ITEMSIZES
from inspector.containers.source import Source
from inspector.errors import CancelledError, CheckpointError, NotACheckpointError, TooLargeError
from inspector.limits import Limits
from inspector.pickles.machine import Machine, Stream
from inspector.pickles.values import PersistentId, StoredTensor, Value
from inspector.progress import Progress
from inspector.quoting import file_word
from inspector.records import replace
from inspector.tuples import NamedTuple
from inspector.units import format_count

METADATA = ".metadata"
_HARMLESS = OWN_NAMES | {"torch.Size", "torch.serialization._get_layout"}
_MORE_VALUES, _MOST_VALUES = 2, 8_000_000  # a tensor of two chunks is 80 of them
_NO_ZIP = "UnpicklingError: Weights only load failed."
_TORN = "RuntimeError: PytorchStreamReader failed reading zip archive: failed finding central directory"
_RANK = re.compile(r"__([0-9]{1,9})_[0-9]{1,9}\.distcp")  # `DEFAULT_SUFFIX` of torch's filesystem.py
_LOCAL = b"PK\x03\x04"
_SAFETENSORS_BRACE = b"{"


def read_metadata_stream(source: Source, programs: Programs, limits: Limits, progress: Progress) -> Stream:
    """Read the pickle of a `.metadata`, which its loader runs whole.

    Raises:
        CheckpointError: It cannot be read.
        CancelledError: The work was cancelled.
    """
    if source.nbytes > limits.pickle_nbytes:
        raise TooLargeError(f"the metadata is longer than {limits.pickle_nbytes:,} bytes", where=source.path)
    limits = replace(limits, values=max(limits.values, min(_MORE_VALUES * limits.values, _MOST_VALUES)))
    machine = Machine(source.read(0, source.nbytes), name=METADATA, limits=limits, progress=progress)
    return programs.run(machine, METADATA, "part")


def read_dcp(files: Folder, limits: Limits, progress: Progress) -> Container:
    """Read a distributed checkpoint.

    Raises:
        CheckpointError: It cannot be read.
        CancelledError: The work was cancelled.
    """
    metadata = _metadata_of(files)
    with files.open(metadata) as source:
        stream = read_metadata_stream(source, files.programs, limits, progress)
    files.programs.let_go(METADATA, _HARMLESS)
    described = parse_metadata(stream.root, metadata, limits.counted(progress.advance).look)
    del stream  # a million values, which were read
    return _Joining(files, described, limits, progress).join(metadata)


def _metadata_of(files: Folder) -> str:
    """Return the name of the file that describes a checkpoint.

    Raises:
        NotACheckpointError: Each rank saved alone, and none of them was given.
    """
    if files.entry.endswith(METADATA):
        return files.entry
    if METADATA in files.sizes:
        return METADATA
    alone = next((name for name in files.sizes if name.endswith(METADATA)), METADATA)
    raise NotACheckpointError(
        "each rank saved a checkpoint of its own into this folder",
        where=files.path,
        remedy=f"give the metadata of the rank that is wanted, such as {file_word(alone)}",
        form="dcp",
    )


class _Place(NamedTuple):
    """Where something is: the number of its file, or why it is nowhere."""

    part: int
    packing: str = ""


class _Joining:
    """Joins the files of one checkpoint."""

    def __init__(self, files: Folder, described: MetadataFile, limits: Limits, progress: Progress) -> None:
        self._files = files
        self._described = described
        self._is_whole = METADATA in files.sizes
        self._look = limits.counted(progress.advance).look
        self._progress = progress
        names = (entry.name for entry in described.entries if not isinstance(entry, str))
        self._values = Values(files.programs, limits, progress, set(names))
        self._numbers: dict[str, int] = {}
        self._packings: dict[str, str] = {}
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
        place = self._place(info)
        return Chunk(starts, sizes, place.part, info.offset, info.length, place.packing)

    def _place(self, info: Stored) -> _Place:
        """Find the file that something is in, and what it is packed in there."""
        name = info.path.removeprefix("./")
        nbytes = self._files.sizes.get(name)
        if nbytes is None:
            (self._outside if _leads_out(name) else self._missing)[name] = None
            return _Place(-1)
        number = self._numbers.setdefault(name, len(self._numbers))
        if info.transforms:
            self._transforms.update(dict.fromkeys(info.transforms))
            return _Place(number, "transformed")
        if info.offset + info.length > nbytes:
            self._short[name] = None
            return _Place(-1)
        return _Place(number, self._packing(name, info.offset))

    def _packing(self, name: str, offset: int) -> str:
        """Return what the tensors of a file are packed in: the same for all of them."""
        packing = self._packings.get(name)
        if packing is None:
            head = self._source(name).read_upto(offset, 9)
            packing = "safetensors" if head[8:] == _SAFETENSORS_BRACE and head[:4] != _LOCAL else "zip"
            self._packings[name] = packing
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
        place = _Place(-1) if info is None else self._place_of_value(info)
        if info is None or place.part < 0 or place.packing:
            return PersistentId(("value", name))
        file = info.path.removeprefix("./")
        try:
            return self._values.read(self._source(file), place.part, info.offset, info.length, name)
        except CancelledError:
            raise
        except CheckpointError as error:
            self._unread[name] = str(error)
            self._files.programs.miss(name, error.what)
            return PersistentId(("value", name))

    def _place_of_value(self, info: Stored) -> _Place:
        known = self._packings.get(info.path.removeprefix("./"))
        place = self._place(info)
        if known is None:  # values stand before the tensors, and are files of torch.save whatever those are
            self._packings.pop(info.path.removeprefix("./"), None)
        return _Place(place.part, "transformed" if info.transforms else "")

    def _refusal(self) -> str:
        """Return what torch says to the first file that is not as it should be."""
        if self._missing:
            path = self._files.path_of(next(iter(self._missing)))
            return f"FileNotFoundError: [Errno 2] No such file or directory: {path!r}"
        if self._short or self._unread:
            return _TORN
        # Its reader asks torch.load for each tensor, whatever the writer was told.
        return _NO_ZIP if "safetensors" in self._packings.values() else ""

    # --- notes ----------------------------------------------------------------------------------------------

    def _notes(self) -> Iterator[Note]:
        if self._outside:
            yield Note(NoteKind.PART_OUTSIDE, (listed(self._outside),))
        shards = [name for name in self._files.sizes if name.endswith(".distcp")]
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


def _leads_out(name: str) -> bool:
    """Return whether a name is that of a file somewhere else."""
    steps = name.replace("\\", "/").split("/")
    return ".." in steps or steps[0] == "" or steps[0].endswith(":")
