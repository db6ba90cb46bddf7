"""Where the storages of a torch archive are, its pickle, and its small records, as torch's reader finds them.

What torch says before it comes to the pickle comes in the order of `PyTorchStreamReader::init` in
`caffe2/serialize/inline_container.cc` and of `_load` in `torch/serialization.py`; what a version number or a
byte order means is judged by the model.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from inspector.containers.container import Container, StoredBytes, losses
from inspector.containers.notes import Note, NoteKind
from inspector.containers.persistent_ids import StorageId
from inspector.containers.programs import ProgramKind
from inspector.containers.source import Source
from inspector.containers.zip.directory import (
    NO_VERSION,
    STORED,
    UNDECODABLE,
    MinizError,
    ZipEntry,
    miniz_words,
    no_folder_words,
    payload_offsets,
    place_of,
)
from inspector.containers.zip.records import (
    NAME_NBYTES,
    PICKLE,
    Archive,
    Records,
    encoded,
    listed_name,
    read_contents,
    refused,
)
from inspector.errors import ContainerError
from inspector.limits import Limits
from inspector.pickles.machine import Machine, Stream
from inspector.pickles.values import Value
from inspector.progress import Progress

_OLD_FOLDER = "tensors/"  # of torch 1.4
SERIALIZATION_ID, VERSION, OLD_VERSION = ".data/serialization_id", ".data/version", "version"
_FORMAT, _ORDER, _ALIGNMENT = ".format_version", "byteorder", ".storage_alignment"
_NAMES = (OLD_VERSION, VERSION, _FORMAT, _ALIGNMENT, _ORDER, SERIALIZATION_ID)
_MOST_NBYTES = 1 << 16
_MOST_SHOWN = 256
_SPACES = " \t\n\v\f\r"  # C's


def find_pickle(records: Records, path: str) -> ZipEntry:
    """Return the record of the object's pickle."""
    entry = records.get(PICKLE)
    if entry is None:
        from inspector.containers.lookalikes import name_zip  # noqa: PLC0415 - healthy files need none

        raise name_zip(records.names, path)
    return entry


def read_object(
    source: Source, entry: ZipEntry, limits: Limits, progress: Progress, kind: ProgramKind = "object"
) -> tuple[Stream, int, NoteKind | None]:
    """Read the object's pickle, and return its checksum, and why others may read another one."""
    data, doubt = read_contents(source, entry, limits.pickle_nbytes)
    machine = Machine(data, name=place_of(entry), limits=limits, progress=progress)
    stream = source.programs.run(machine, PICKLE if kind == "object" else entry.name, kind)
    return stream, zlib.crc32(data), doubt


class Places(NamedTuple):
    """Where the storages are."""

    # their places, in the order of the file; one whose record is missing or damaged has none
    stored: Mapping[str, StoredBytes]
    refused: Mapping[str, str] = {}  # what torch says to the record of a storage, where it says something
    doubts: tuple[NoteKind, ...] = ()
    overlap: bool = False
    is_old: bool = False  # whether they stand where only torch 1.4 looks for them


def find_storages(
    source: Source, records: Records, storage_ids: dict[str, StorageId], progress: Progress
) -> Places:
    """Place the storages."""
    progress.start("finding storages", len(storage_ids), is_counted=True)
    entries = ((key, records.storage(key)) for key in storage_ids)
    found = sorted(((key, entry) for key, entry in entries if entry), key=lambda row: row[1].header_offset)
    stored: dict[str, StoredBytes] = {}
    refusals: dict[str, str] = {}
    doubts: dict[NoteKind, None] = {}
    reached, overlap, most = 0, False, source.nbytes
    offsets = payload_offsets(source, [entry.header_offset for _, entry in found])
    for (key, entry), offset in zip(found, offsets, strict=True):
        progress.advance(1)
        miniz = refused(entry)
        if miniz is not None:
            refusals[key] = miniz_words(f"retrieving file meta-data for data/{key}", miniz)
            continue
        if entry.trouble and entry.nbytes:
            doubts[NoteKind.UNWRITTEN_RECORD] = None
        if offset is None or offset + entry.stored_nbytes > most:
            refusals[key] = miniz_words(f"reading file data/{key}", MinizError.CORRUPTED)
            continue
        is_plain = entry.method == STORED
        if is_plain and entry.nbytes != entry.stored_nbytes:
            doubts[NoteKind.TWO_RECORD_SIZES] = None
            continue
        overlap = overlap or entry.header_offset < reached
        reached = offset + entry.stored_nbytes
        stored[key] = StoredBytes(0, offset if is_plain else None, entry.nbytes)
    old = records.prefix.lower() + _OLD_FOLDER
    is_old = any(entry.name.lower().startswith(old) for _, entry in found)
    return Places(stored, refusals, tuple(doubts), overlap, is_old)


class Metadata(NamedTuple):
    """What the small records tell."""

    versions: tuple[tuple[str, str], ...] = ()
    # what torch says to the first of them, or of all names, that it refuses; empty where to none
    refusal: str = ""
    doubts: tuple[NoteKind, ...] = ()  # why torch may read something else


class _Reader:
    """Reads the facts once, and remembers what torch says to them."""

    def __init__(self, source: Source, records: Records) -> None:
        self._source = source
        self.data: dict[str, bytes] = {}
        self.refusals: dict[str, str] = {}
        self.doubts: list[NoteKind] = []
        self.texts: list[tuple[str, str]] = []
        for name in _NAMES:
            entry = records.get(name)
            if entry is not None:
                self._read(name, entry)

    def _read(self, name: str, entry: ZipEntry) -> None:
        if entry.nbytes > _MOST_NBYTES and refused(entry) is None:
            self.doubts.append(NoteKind.LARGE_RECORD)
            return
        try:
            contents = read_contents(self._source, entry, max(_MOST_NBYTES, entry.stored_nbytes))
        except ContainerError as error:
            miniz = refused(entry)
            doing = f"{'reading file' if miniz is None else 'retrieving file meta-data for'} {name}"
            self.refusals[name] = miniz_words(doing, miniz or MinizError.CORRUPTED)
            self.texts.append((name, f"unreadable: {error.what}"))
            return
        self.data[name] = contents.data
        if contents.doubt is not None:
            self.doubts.append(contents.doubt)
        text = contents.data[:_MOST_SHOWN].decode("utf-8", "backslashreplace")
        self.texts.append((name, text if name == _ORDER else text.strip(_SPACES)))


def read_metadata(source: Source, records: Records) -> Metadata:
    """Read the small records of an archive."""
    read = _Reader(source, records)
    refusal = next(filter(None, _refusals(read, records.prefix, records.names)), "")
    return Metadata(tuple(read.texts), refusal, tuple(dict.fromkeys(read.doubts)))


def _refusals(read: _Reader, prefix: str, names: Sequence[str]) -> Iterator[str]:
    """Yield what torch says, in its order; empty texts where it says nothing."""
    if not prefix:
        yield no_folder_words(names[0])
    version = VERSION if VERSION in read.data or VERSION in read.refusals else OLD_VERSION
    for name in (SERIALIZATION_ID, version):
        if name in read.refusals:
            yield read.refusals[name]
    if version not in read.data and version not in read.refusals and NoteKind.LARGE_RECORD not in read.doubts:
        yield NO_VERSION
    yield _names_refused(prefix, names)
    for name in (_FORMAT, _ORDER, _ALIGNMENT):
        if name in read.refusals:
            yield read.refusals[name]
    yield _bad_alignment(read.data.get(_ALIGNMENT, b"64"))
    if not _is_utf8(read.data.get(SERIALIZATION_ID, b"")):  # torch asks for it when all is loaded
        yield UNDECODABLE


def _bad_alignment(data: bytes) -> str:
    try:
        int(data)
    except ValueError as error:
        return f"ValueError: {error}"[:_MOST_SHOWN]
    return ""


def _names_refused(prefix: str, names: Sequence[str]) -> str:
    folder = encoded(prefix)
    fits = len(folder) <= NAME_NBYTES
    begins = folder.partition(b"\0")[0]
    for name in names:
        if fits and name.isascii() and name.startswith(prefix):
            continue
        listed = listed_name(name)
        if not fits or not listed.startswith(begins):
            return no_folder_words(name, prefix)
        if not _is_utf8(listed[len(folder) :]):
            return UNDECODABLE
    return ""


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


# --- the container ------------------------------------------------------------------------------------------


def assemble(  # noqa: PLR0913, PLR0917 - a container has so many parts
    archive: Archive,
    form: str,
    root: Value,
    storage_ids: dict[str, StorageId],
    places: Places,
    metadata: Metadata,
    *,
    doubts: Iterable[NoteKind | None] = (),
    flags: Mapping[NoteKind, bool] = {},
    more: Iterable[Note] = (),
    **others: Any,  # noqa: ANN401 - further fields of a container
) -> Container:
    """Return the container of an archive, with the notes that any of them may have.

    `doubts` say why other programs may read something else; of the `flags` those are noted that hold.
    """
    source, refusal = archive.source, metadata.refusal
    kinds = (*archive.records.directory.doubts, *doubts, *metadata.doubts, *places.doubts)
    flags = {**flags, NoteKind.OVERLAP: places.overlap}
    doubled = tuple(archive.records.doubled(storage_ids)) if flags.get(NoteKind.SHARED_NAME) else ()
    notes = (
        *([Note(NoteKind.REFUSED, (refusal.partition(". ")[0],))] if refusal else ()),
        *map(Note, dict.fromkeys(filter(None, kinds))),
        *archive.damage,
        *(
            Note(kind, doubled if kind is NoteKind.SHARED_NAME else ())
            for kind, holds in flags.items()
            if holds
        ),
        *losses(storage_ids, places.stored),
        *more,
    )
    return Container(
        path=source.path,
        format=form,
        file_nbytes=source.file_nbytes,
        root=root,
        programs=source.programs.all(),
        storage_ids=storage_ids,
        stored=places.stored,
        versions=metadata.versions,
        notes=notes,
        refusal=refusal,
        refused=tuple(places.refused.items()),
        **others,
    )
