"""Arrays of NumPy in a zip, as `numpy.savez` and `numpy.savez_compressed` write them: a record for each.

`NpzFile` in NumPy's `numpy/lib/_npyio_impl.py` reads an array when it is asked for, by Python's `zipfile`: of
records with one name the last counts.
"""

from __future__ import annotations

from collections.abc import Sequence

from inspector.containers.base import Find
from inspector.containers.container import Container, Extent, Extents, plain_extents
from inspector.containers.notes import Note, NoteKind, listed
from inspector.containers.npy import NO_DEVICES, ON_THE_CPU, Arrays, read_header, read_objects
from inspector.containers.source import Source
from inspector.containers.zip.directory import STORED, ZipEntry, payload_offset
from inspector.containers.zip.records import Archive, Records, ZipFormat, open_record, record_extents
from inspector.containers.zip.storages import Metadata, Places, assemble
from inspector.errors import CheckpointError, ContainerError, PickleError
from inspector.limits import Limits
from inspector.overriding import override
from inspector.pickles.values import Dict, Value
from inspector.progress import Progress
from inspector.units import format_count

_SUFFIX = ".npy"
_MOST_TOLD = 20


def open_npz(archive: Archive) -> tuple[Container, Arrays]:
    """Take a file of arrays apart."""
    archive = archive._replace(limits=archive.limits.started(archive.progress.advance))
    every = archive.records.directory.entries
    entries = {entry.name: entry for entry in every}
    reading = _Reading(archive)
    archive.progress.start("reading the arrays", len(entries), is_counted=True)
    for entry in every:
        archive.progress.advance(1)
        reading.read(entry, is_kept=entries[entry.name] is entry)
    if not reading.pairs and reading.errors:
        raise reading.errors[0][1]
    arrays = reading.arrays
    container = assemble(
        archive,
        "npz",
        Dict(reading.pairs),
        arrays.storage_ids,
        Places(arrays.stored),
        Metadata(refusal=arrays.refusal()),
        flags={
            NoteKind.SHARED_NAME: len(entries) < len(every),
            NoteKind.SWAPPED: arrays.is_swapped,
        },
        more=(*reading.notes(), *arrays.notes()),
    )
    return container, arrays


class _Reading:
    def __init__(self, archive: Archive) -> None:
        self.pairs: list[tuple[Value, Value]] = []
        self.arrays = Arrays(archive.limits)
        self.errors: list[tuple[str, CheckpointError]] = []
        self._objects: list[str] = []
        self._source = archive.source
        self._limits = archive.limits
        self._look = archive.limits.counted(archive.progress.advance).look
        self._progress = archive.progress

    def read(self, entry: ZipEntry, *, is_kept: bool) -> None:
        """Read one record; of one that another of its name hides, only what it runs."""
        name = entry.name.removesuffix(_SUFFIX)
        try:
            value = self._array(name, entry, is_kept=is_kept)
        except (ContainerError, PickleError) as error:
            self.errors.append((name, error))
            self._source.programs.absorb_failed(error, name)
            return
        if is_kept:
            self.pairs.append((name, value))

    def _array(self, name: str, entry: ZipEntry, *, is_kept: bool) -> Value:
        inside = open_record(self._source, entry, self._limits)
        header = read_header(inside, self._look)
        if header.type.has_objects:
            self._objects.append(name)
            try:
                return read_objects(inside, header.start, name, self._limits, self._progress)
            finally:
                self._source.programs.adopt(inside.programs, entry.name, "object")
        if not is_kept:
            return None
        start, left = payload_offset(self._source, entry), max(inside.nbytes - header.start, 0)
        if entry.method == STORED:
            place = Extent(start + header.start, left, left, STORED, 0)
        else:
            place = Extent(start, entry.stored_nbytes, left, entry.method, 0, skip=header.start)
        return self.arrays.add(name, header, place)

    def notes(self) -> list[Note]:
        """Return what there is to know of the records."""
        told = self.errors[:_MOST_TOLD]
        notes = [Note(NoteKind.UNREAD_PART, (error.what,)).within(name) for name, error in told]
        if self._objects:
            amount = format_count(len(self._objects), "array")
            said = f"The elements of {amount} are objects ({listed(self._objects)})"
            notes.append(Note(NoteKind.OBJECT_ARRAYS, (said,)))
        return notes


class Npz(ZipFormat):
    """What numpy.savez writes."""

    name = "npz"
    what = "a file of NumPy arrays (.npz)"
    loads_restricted = True
    loader = "numpy.load"
    runs_with = "allow_pickle=True"
    unchecked = True
    device_from = ON_THE_CPU
    copied_as = "state-dict"
    cannot = (NO_DEVICES,)

    @override
    def matches_records(self, records: Records) -> bool:
        return self.matches_names(records.names)

    @override
    def matches_names(self, names: Sequence[str]) -> bool:
        return bool(names) and all(name.endswith(_SUFFIX) for name in names)

    @override
    def words_without_directory(self, _source: Source, _words: str) -> str:
        return "BadZipFile: File is not a zip file"

    @override
    def finder(self, source: Source) -> Find:
        """Return what finds the bytes of an array, where they do not stand as they are meant."""
        return open_npz(self.opened(source))[1].extents.get

    @override
    def extents(self, source: Source, limits: Limits, progress: Progress) -> Extents:
        """Find the bytes of the arrays, and the records that they stand in."""
        archive = self.opened(source, limits, progress)
        container, arrays = open_npz(archive)
        found = plain_extents(container, container.stored, arrays.extents.get)
        # The checksum of a record goes over the header as well, so the records are what is checked.
        checked = record_extents(source, list(archive.records.directory.entries))
        return Extents(container=container, whole=found.whole, lost=found.lost, records=checked)

    @override
    def take_apart(self, archive: Archive) -> Container:
        return open_npz(archive)[0]
