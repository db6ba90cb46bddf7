"""Which storages a form writes, and which bytes of each: all, or only those that something views.

Storages are numbered in the order of their first use, as `torch.save` does. Of a storage that is cut out, the
ranges that tensors view stand one behind the other, so that tensors which overlapped still do.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import zlib
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from itertools import chain
from pathlib import Path
from typing import IO, NamedTuple, Self

from inspector.child import Worker, worker_script
from inspector.containers.container import Container
from inspector.containers.copying import write_bytes
from inspector.containers.legacy import MAGIC, NUMEL, PROTOCOL_VERSION
from inspector.containers.persistent_ids import StorageId, parse_storage_id
from inspector.containers.source import FileSource, Source
from inspector.containers.storage_reader import STEP_NBYTES, StorageReader
from inspector.errors import ContainerError, ExportError, WorkerError
from inspector.model.tensors.dtypes import ITEMSIZES, PLAIN_ITEMSIZES
from inspector.model.tensors.views import NoTensorError, dtype_of, strided
from inspector.pickles.values import Call, Dict, PersistentId, Value
from inspector.progress import Progress
from inspector.pythons import OPTION, choose_python
from inspector.records import dataclass, field
from inspector.remap.files import explained
from inspector.remap.pickle_writer import (
    UNTYPED,
    StorageName,
    Writing,
    as_written,
    storage_class,
    view_of,
    write_pickle,
)
from inspector.remap.zip_layout import DEFAULT_ALIGNMENT, storage_name, torch_records, write_zip

_ALIGNMENT = 16  # a multiple of every item size, for bytes that tensors of several types may view
_DTYPE_OF_V3 = 6  # its place among the arguments

Range = tuple[int, int]
"""First byte within a stored storage, and the one behind the last."""


class Piece(NamedTuple):
    """One storage to write.

    Attributes:
        ranges: Which bytes of the source's storage it is made of, in order.
    """

    source: str
    name: StorageName
    ranges: tuple[Range, ...]
    is_whole: bool
    dtype: str
    nbytes: int


class Cut(NamedTuple):
    """What is kept of a storage.

    Attributes:
        ranges: The bytes kept, in order and apart from one another.
    """

    ranges: tuple[Range, ...]
    starts: tuple[int, ...]

    def place(self, pos: int) -> int:
        """Return where a byte stands now, or a place near it if it is not kept, as that of an empty view."""
        number = max(bisect_right(self.ranges, (pos, 1 << 64)) - 1, 0)
        first, last = self.ranges[number]
        return self.starts[number] + min(max(pos, first), last) - first


def cut_out(spans: Sequence[Range], nbytes: int, alignment: int) -> Cut:
    """Keep the spans of a storage and no more than it takes to keep elements aligned."""
    ranges: list[Range] = []
    for start, end in sorted(spans):
        first = start // alignment * alignment
        last = min(-(-end // alignment) * alignment, nbytes)
        if ranges and first <= ranges[-1][1]:
            ranges[-1] = (ranges[-1][0], max(ranges[-1][1], last))
        elif last > first:
            ranges.append((first, last))
    starts, reached = [], 0
    for start, end in ranges:
        starts.append(reached)
        reached += end - start
    return Cut(tuple(ranges) or ((0, 0),), tuple(starts) or (0,))


@dataclass(slots=True, eq=False)
class Storages:
    """Names the storages that a pickle uses while it is written; a `Naming` without the entries.

    Attributes:
        location_of: Gives the new location tag by a storage's key and its present tag.
        cuts: What is kept of each storage, by key; storages that are not among them are kept whole.
        dtypes: Storages of other element types from now on, by the present type.
    """

    container: Container
    location_of: Callable[[str, str], str]
    owner_of: Callable[[str], str]
    cuts: Mapping[str, Cut] = field(default_factory=dict)
    dtypes: Mapping[str, str] = field(default_factory=dict)
    pieces: dict[str, Piece] = field(default_factory=dict)

    def name_storage(self, node: PersistentId) -> StorageName | None:
        """Return what is written for a storage's persistent id; None for an id of something else."""
        own = parse_storage_id(node)
        if own is None:
            return None
        piece = self.pieces.get(own.key)
        if piece is None:
            storage = as_written(self.container.storage_ids.get(own.key, own))
            piece = self.pieces[own.key] = self._piece(storage)
        return piece.name

    def move_view(self, call: Call) -> int | None:
        """Return the offset of a view in the storage it will have."""
        node, offset = view_of(call), call.args[1] if isinstance(call.args, tuple) else None
        own = None if node is None else parse_storage_id(node)
        if own is None or not isinstance(offset, int):
            return None
        offset += 0 if own.view is None else own.view[1]
        cut = self.cuts.get(own.key)
        if cut is None:
            return offset
        itemsize = PLAIN_ITEMSIZES[_dtype(call, own)]  # nothing else is cut
        return cut.place(offset * itemsize) // itemsize

    def _piece(self, storage: StorageId) -> Piece:
        stored = self.container.stored.get(storage.key)
        if stored is None and storage.numel:
            raise ExportError(
                "the bytes of a tensor are missing",
                where=self.owner_of(storage.key),
                remedy="recover the rest, or leave it out with --exclude",
            )
        nbytes = 0 if stored is None else stored.nbytes
        cut = self.cuts.get(storage.key)
        ranges = ((0, nbytes),) if cut is None else cut.ranges
        kept = _total(ranges)
        dtype = storage.dtype if storage.untyped else self.dtypes.get(storage.dtype, storage.dtype)
        numel = storage.numel if cut is None else kept // (1 if storage.untyped else storage.itemsize)
        name = StorageName(
            storage_class(None if storage.untyped else dtype),
            str(len(self.pieces)),
            self.location_of(storage.key, storage.location),
            numel,
        )
        size = kept if dtype == storage.dtype else numel * ITEMSIZES[dtype]
        return Piece(storage.key, name, ranges, kept == nbytes, dtype, size)


@dataclass(slots=True, eq=False)
class Viewed:
    """Notes what is viewed of each storage, while a pickle is written for nothing else.

    Attributes:
        wholes: Storages that something holds as such, so that all of them counts.
    """

    container: Container
    spans: defaultdict[str, list[Range]] = field(default_factory=lambda: defaultdict(list))
    wholes: set[str] = field(default_factory=set)
    _views: set[int] = field(default_factory=set)

    def name_storage(self, node: PersistentId) -> StorageName | None:
        """Note a storage; one that no view was noted for just before is held whole."""
        own = parse_storage_id(node)
        if own is None:
            return None
        if id(node) in self._views:
            self._views.discard(id(node))
        else:
            self.wholes.add(own.key)
        return StorageName(UNTYPED, "", "", 0)

    def move_view(self, call: Call) -> int | None:
        """Note a view."""
        node = view_of(call)
        own = None if node is None else parse_storage_id(node)
        span = None if own is None else _span(call, self.container.storage_ids.get(own.key, own), own)
        if own is not None and span is not None:
            self.spans[own.key].append(span)
            self._views.add(id(node))
        return None

    def cuts(self) -> dict[str, Cut]:
        """Return what to keep of each storage that is larger than what is viewed of it."""
        found = {}
        for key, spans in self.spans.items():
            stored, storage = self.container.stored.get(key), self.container.storage_ids[key]
            if key not in self.wholes and stored is not None:
                alignment = _ALIGNMENT if storage.untyped else storage.itemsize
                cut = cut_out(spans, stored.nbytes, alignment)
                if _total(cut.ranges) < stored.nbytes:
                    found[key] = cut
        return found


def _total(ranges: Sequence[Range]) -> int:
    return sum(end - start for start, end in ranges)


def _arguments(call: Call) -> tuple[Value, ...]:
    return call.args if isinstance(call.args, tuple) else ()


def _dtype(call: Call, storage: StorageId) -> str:
    """Return the element type of a view: its own, which only the third generation has, or its storage's."""
    args = _arguments(call)
    try:
        return dtype_of(args[_DTYPE_OF_V3])
    except (IndexError, NoTensorError):
        return storage.dtype


def _span(call: Call, storage: StorageId, own: StorageId) -> Range | None:
    dtype = _dtype(call, storage)
    if dtype not in PLAIN_ITEMSIZES:
        return None
    try:
        facts = strided(storage, dtype, _arguments(call)[1:4], requires_grad=False)
    except NoTensorError:
        return None
    skipped = 0 if own.view is None else own.view[1] * storage.itemsize
    return None if facts.problem else (facts.span[0] + skipped, facts.span[1] + skipped)


# ------------------------------------------------------------------------------------------------------------
# Casting by torch itself, in a child process: chunks go over, the same elements in another dtype come back.
#
# How a number is rounded is torch's business, and torch is not imported here: that would take seconds and
# hundreds of megabytes for work that reads and writes a megabyte at a time.

SOURCE = "float32"
_TIMEOUT_S = 300.0  # before the first answer torch is imported


class Caster:
    """A child process that casts, started with the first chunk."""

    def __init__(self, dtype: str, python: str | None = None) -> None:
        self.dtype = dtype
        self.overflowed = 0
        self._python = python
        self._worker: Worker | None = None

    def __enter__(self) -> Self:
        """Use it in a `with` block."""
        return self

    def __exit__(self, *_: object) -> None:
        """End the child."""
        if self._worker is not None:
            self._worker.end()

    def cast(self, chunks: Iterable[bytes], progress: Progress) -> Iterator[bytes]:
        """Yield chunks of float32 elements in the other dtype."""
        rest = iter(chunks)
        if (first := next(rest, None)) is None:
            return
        python = choose_python(self._python, progress)
        head = {"source": SOURCE, "target": self.dtype}
        self._worker = self._worker or Worker(python=python.path)
        answers = self._worker.request(
            worker_script("cast"), head, chain([first], rest), progress=progress, timeout_s=_TIMEOUT_S
        )
        try:
            for answer in answers:
                self.overflowed += int(answer.head["overflowed"])
                yield answer.block
        except WorkerError as error:
            remedy = f"see whether python -c 'import torch' works, or name another Python with {OPTION}"
            what = "torch failed to cast the weights"
            if error.missing == "torch":
                what = "a cast needs torch, and this Python has none"
            raise ExportError(what, where=python.path, remedy=remedy) from error


# ------------------------------------------------------------------------------------------------------------
# The bytes of storages, wherever they are: in the source for the kernel to copy, or unpacked beside it.
#
# torch never compresses storages, but people do: legacy files with gzip, zip files by packing them anew. What
# is compressed is unpacked once into a file without a name, so that everything else finds plain bytes.

SMALL_NBYTES = 1 << 16
"""Up to here reading and writing costs less than asking the kernel to copy."""


class Stock:
    """Reads the bytes of a container's storages."""

    def __init__(
        self, source: Source, container: Container, folder: Path, caster: Caster | None = None
    ) -> None:
        self.caster = caster
        self.source = source
        self.container = container
        self._folder = folder
        self._exits = ExitStack()
        self._bytes = StorageReader(container, source)
        self._unpacked: dict[str, FileSource] = {}

    def __enter__(self) -> Self:
        """Use it in a `with` block."""
        return self

    def __exit__(self, *_: object) -> None:
        """Let go of what was unpacked."""
        self._exits.close()

    def reader(self, key: str, progress: Progress) -> Callable[[int, int], bytes]:
        """Return a function that reads bytes of a storage by offset and length."""
        file = self._unpacked_file(key, progress)
        return partial(self._bytes.read, key) if file is None else file.read

    def read_range(self, key: str, span: Range, progress: Progress) -> Iterator[bytes]:
        """Yield some bytes of a storage, about a megabyte at a time."""
        read = self.reader(key, progress)
        for pos in range(*span, STEP_NBYTES):
            yield read(pos, min(STEP_NBYTES, span[1] - pos))

    def copy_range(self, key: str, span: Range, target: int, progress: Progress) -> None:
        """Have the kernel copy some bytes of a storage to the target's position."""
        file = self._unpacked_file(key, progress)
        if file is None:
            self._bytes.copy_to(key, *span, target, progress)
        else:
            file.copy_to(target, span[0], span[1] - span[0], progress)

    def read(self, piece: Piece, progress: Progress) -> Iterator[bytes]:
        """Yield the bytes of a piece, about a megabyte at a time."""
        for span in piece.ranges:
            yield from self.read_range(piece.source, span, progress)

    def is_cast(self, key: str, dtype: str) -> bool:
        """Return whether what becomes of a storage has another type than it has here."""
        before = self.container.storage_ids.get(key)
        return (
            self.caster is not None
            and dtype == self.caster.dtype
            and (before is None or before.dtype != dtype)
        )

    def crc(self, piece: Piece) -> int:
        """Return the CRC-32 of a piece as the source states it, or 0 where it does not."""
        return self._bytes.crc(piece.source) if piece.is_whole else 0

    def spool(self) -> IO[bytes]:
        """Return a new file without a name, gone with the others."""
        with explained(self._folder):
            return self._exits.enter_context(tempfile.TemporaryFile(dir=self._folder))

    def _unpacked_file(self, key: str, progress: Progress) -> FileSource | None:
        """Return the file that a compressed storage was unpacked to; None for a storage that is plain."""
        if not self._bytes.is_packed(key):
            return None
        file = self._unpacked.get(key)
        if file is None:
            spool = self.spool()
            self._unpack(key, spool.fileno(), progress)
            file = self._unpacked[key] = FileSource(self.source.path, os.dup(spool.fileno()))
            self._exits.enter_context(file)
        return file

    def _unpack(self, key: str, target: int, progress: Progress) -> None:
        try:
            for data in self._bytes.steps(key, 0, self._bytes.nbytes(key), progress):
                with explained(self._folder):
                    write_bytes(target, data)
        except ContainerError as error:
            raise ExportError(error.what, where=error.where, remedy=error.remedy) from error


class Buffered:
    """Writes small pieces together, and has large ones copied by the kernel behind them."""

    def __init__(self, stock: Stock, target: int, progress: Progress) -> None:
        self._stock = stock
        self._target = target
        self._progress = progress
        self._data = bytearray()

    def write(self, data: bytes) -> None:
        """Write some bytes, now or with others."""
        if len(data) > SMALL_NBYTES:  # not copied once more
            self.flush()
            write_bytes(self._target, data)
            return
        self._data += data
        if len(self._data) >= STEP_NBYTES:
            self.flush()

    def copy(self, key: str, span: Range) -> None:
        """Write some bytes of a storage."""
        if span[1] - span[0] > SMALL_NBYTES:
            self.flush()
            self._stock.copy_range(key, span, self._target, self._progress)
            return
        for data in self._stock.read_range(key, span, self._progress):
            self.write(data)
            self._progress.advance(len(data))

    def flush(self) -> None:
        """Write what waits."""
        if self._data:
            write_bytes(self._target, bytes(self._data))
            self._data.clear()


def read_at(fd: int, offset: int, nbytes: int) -> bytes:
    """Read exactly so many bytes of an open file."""
    data = b""
    while len(data) < nbytes:
        more = _read_some(fd, offset + len(data), nbytes - len(data))
        if not more:
            raise ExportError("the file ended while it was copied", remedy="try again once it is complete")
        data += more
    return data


def _read_some(fd: int, offset: int, nbytes: int) -> bytes:
    if hasattr(os, "pread"):
        return os.pread(fd, nbytes, offset)
    os.lseek(fd, offset, os.SEEK_SET)  # Windows
    return os.read(fd, nbytes)


def refuse_full_disk(folder: Path, nbytes: int) -> None:
    """Refuse to begin what the disk cannot hold."""
    with explained(folder):
        free = free_nbytes(folder)
    if free < nbytes:
        raise ExportError(
            f"the disk has room for {free:,} bytes, and {nbytes:,} are needed", where=str(folder)
        )


def free_nbytes(folder: Path) -> int:
    """Return how much room a disk has left."""
    return int(shutil.disk_usage(folder).free)


# ------------------------------------------------------------------------------------------------------------
# A copy in torch's own containers, written from the storages of another file.
#
# Storages are copied by the kernel where their CRC is known or nobody asks for it, and read, summed and
# written where it is not.


_INFO = Dict(
    [
        ("protocol_version", PROTOCOL_VERSION),
        ("little_endian", True),
        ("type_sizes", Dict([("short", 2), ("int", 4), ("long", 4)])),
    ]
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TorchFile:
    """A file of torch's to write."""

    pickle: bytes
    pieces: Sequence[Piece]
    stock: Stock
    byteorder: str
    target: int
    progress: Progress

    def write_zip(self, folder: str) -> None:
        """Write a zip whose records stand in a folder of this name."""
        out = self._start()
        storages = ((piece.name.key, piece.nbytes, partial(self._copy, piece, out)) for piece in self.pieces)
        records = torch_records(
            folder,
            self.pickle,
            storages,
            byteorder=self.byteorder,
            serialization_id=self._serialization_id(),
        )
        write_zip(records, DEFAULT_ALIGNMENT, out.write)
        out.flush()

    def write_legacy(self) -> None:
        """Write a legacy stream, as `_legacy_save` in torch's `torch/serialization.py` does."""
        if any(piece.name.cls == UNTYPED for piece in self.pieces):
            raise ExportError(
                "torch cannot read untyped storages (such as float8 has) from legacy files",
                remedy="choose the zip container",
            )
        out = self._start()
        for value in (MAGIC, PROTOCOL_VERSION, _INFO):
            out.write(write_pickle(value, Writing()))
        out.write(self.pickle)
        ordered = sorted(self.pieces, key=lambda piece: piece.name.key)
        out.write(write_pickle([piece.name.key for piece in ordered], Writing()))
        for piece in ordered:
            out.write(NUMEL.pack(piece.name.numel))
            self._copy(piece, out, has_crc=False)
        out.flush()

    def _start(self) -> Buffered:
        self.progress.start("copying", sum(piece.nbytes for piece in self.pieces))
        return Buffered(self.stock, self.target, self.progress)

    def _serialization_id(self) -> bytes:
        """Return forty digits for this file; torch writes some and reads them for its log."""
        names = [
            "data.pkl",
            ".format_version",
            ".storage_alignment",
            "byteorder",
            *(storage_name(piece.name.key) for piece in self.pieces),
            "version",
            ".data/serialization_id",
        ]
        return b"%020d%020d" % (zlib.crc32("\n".join(names).encode()), zlib.crc32(self.pickle))

    def _copy(self, piece: Piece, out: Buffered, *, has_crc: bool = True) -> int:
        """Write a storage and return its CRC; 0 where nobody asks for it."""
        is_cast = self.stock.is_cast(piece.source, piece.dtype)
        crc = 0 if is_cast or not has_crc else self.stock.crc(piece)
        if crc or not (is_cast or has_crc):
            for span in piece.ranges:
                out.copy(piece.source, span)
            return crc
        for chunk in self._chunks(piece):
            crc = zlib.crc32(chunk, crc)
            out.write(chunk)
            self.progress.advance(len(chunk))
        return crc

    def _chunks(self, piece: Piece) -> Iterator[bytes]:
        chunks = self.stock.read(piece, self.progress)
        if self.stock.caster is None or not self.stock.is_cast(piece.source, piece.dtype):
            return chunks
        return self.stock.caster.cast(chunks, self.progress)


def check_length(piece: Piece, owner_of: Callable[[str], str]) -> None:
    """Refuse a storage that the file does not hold as its pickle says."""
    itemsize = 1 if piece.name.cls == UNTYPED else ITEMSIZES[piece.dtype]
    if piece.nbytes != piece.name.numel * itemsize:
        raise ExportError(
            "the size of a tensor's storage is not what the pickle says",
            where=owner_of(piece.source),
            remedy="the file is damaged: fetch or copy it again",
        )
