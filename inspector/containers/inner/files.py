"""Files of `torch.save` within the records of a zip: each is read where it stands, all are one checkpoint.

The storages of a file are known under keys of their own: the name of its record, a colon, their key in it.
"""

from __future__ import annotations

from typing import NamedTuple

from inspector.containers.container import Container, Extent, PickleRecord, StoredBytes
from inspector.containers.folders.joined import shift_large_values
from inspector.containers.formats import find_format
from inspector.containers.inner.record import is_stored, open_record
from inspector.containers.notes import Note, NoteKind
from inspector.containers.persistent_ids import StorageId, prefix_key, prefixed
from inspector.containers.source import Source
from inspector.containers.unread import programs_on_errors
from inspector.containers.zip.directory import DEFLATED, STORED, ZipEntry, payload_offset
from inspector.errors import ContainerError, NotACheckpointError
from inspector.limits import Limits
from inspector.pickles.machine import Stream
from inspector.pickles.values import Value
from inspector.progress import Progress

_MOST_FILES = 256
TWICE = -1000
"""The method of bytes that are compressed in a file that is compressed itself: torch writes no such file."""


class _File(NamedTuple):
    """One file that was read, and where it stands."""

    entry: ZipEntry
    inside: Source
    is_zip: bool
    container: Container
    prefix: str


class Found(NamedTuple):
    """Where bytes are in the archive, all under the names that they have there.

    Attributes:
        whole: Each storage whose bytes are all there.
        lost: Why the others are not.
        records: What else stands in the files.
        names: The records that are these files.
    """

    whole: dict[str, Extent]
    lost: dict[str, str]
    records: dict[str, Extent]
    names: set[str]


class InnerFiles:
    """Reads files within one zip, and gathers what they hold.

    Attributes:
        storage_ids: As `Container` has it.
        stored: The same.
        pickles: The same.
        refused: The same.
        large: The data of pickles that left large values in it.
        notes: What there is to know of the files, each with the name of its record.
        refusal: What torch says to the first of them that it does not open.
        byteorder: How they store numbers, where they say so.
    """

    def __init__(self, source: Source, limits: Limits, progress: Progress) -> None:
        """Prepare to read files within `source`."""
        self.storage_ids: dict[str, StorageId] = {}
        self.stored: dict[str, StoredBytes] = {}
        self.pickles: list[PickleRecord] = []
        self.refused: list[tuple[str, str]] = []
        self.large = bytearray()
        self.notes: list[Note] = []
        self.refusal = ""
        self.byteorder = ""
        self._source = source
        self._limits = limits
        self._progress = progress
        self._files: list[_File] = []

    def read(self, name: str, entry: ZipEntry) -> Value:
        """Read the file in a record, and return its object."""
        if len(self._files) >= _MOST_FILES:
            raise ContainerError(f"the archive holds more than {_MOST_FILES:,} files of torch.save")
        inside = open_record(self._source, entry, self._limits)
        try:
            with programs_on_errors(inside, self._limits, self._progress):
                form = find_format(inside, self._limits, self._progress)
                if not (form.torch_loads and (form.has_records or form.is_stream)):
                    raise NotACheckpointError("this is no file of torch.save", where=name)
                container = form.reader_for(inside)(inside, self._limits, self._progress)
        finally:
            self._source.programs.adopt(inside.programs, name, "object")
        self._refuse_other_order(container, name)
        found = _File(entry, inside, form.has_records, container, f"{name}:")
        self._files.append(found)
        self._take(found, name)
        return container.root

    def add_pickle(self, name: str, stream: Stream) -> None:
        """Add a pickle that stands by itself, and refers to no storage."""
        self._keep_large(stream)
        self.pickles.append(PickleRecord(name, stream))

    def extents(self) -> Found:
        """Return where the bytes of every storage are, and of every other record of the files."""
        from inspector.containers.extents import legacy_extents, zip_extents  # noqa: PLC0415 - few ask

        found = Found({}, {}, {}, set())
        for file in self._files:
            read = zip_extents if file.is_zip else legacy_extents
            inner = read(file.inside, self._limits, self._progress)
            start = payload_offset(self._source, file.entry)
            found.names.add(file.entry.name)
            found.lost.update({file.prefix + key: why for key, why in inner.lost.items()})
            for own, whole in ((inner.whole, found.whole), (inner.records, found.records)):
                whole.update({file.prefix + key: _outer(one, start, file.entry) for key, one in own.items()})
        return found

    def _refuse_other_order(self, container: Container, name: str) -> None:
        order = dict(container.versions).get("byteorder", "little")
        if self._files and order != self.byteorder:
            what = "a file in the archive stores numbers in another order than those before it"
            raise ContainerError(what, where=name)
        self.byteorder = order

    def _take(self, file: _File, name: str) -> None:
        """Take over what a file holds."""
        container, prefix = file.container, file.prefix
        stream = container.pickle()
        for node in stream.persistent_ids:
            prefix_key(node, prefix)
        self.storage_ids |= {
            prefix + key: prefixed(one, prefix) for key, one in container.storage_ids.items()
        }
        if len(self.storage_ids) > self._limits.storages:
            raise ContainerError(f"the file has more than {self._limits.storages:,} storages")
        self._keep_large(stream)
        start = payload_offset(self._source, file.entry)
        is_plain = is_stored(file.entry)
        for key, place in container.stored.items():
            offset = start + place.offset if is_plain and place.offset is not None else None
            self.stored[prefix + key] = place._replace(offset=offset)
        self.notes += [note.within(name) for note in container.notes if note.kind is not NoteKind.LOST_BYTES]
        self.refusal = self.refusal or container.refusal
        self.refused += [(prefix + key, words) for key, words in container.refused]
        self.pickles.append(PickleRecord(name, stream, prefix))

    def _keep_large(self, stream: Stream) -> None:
        if shift_large_values(stream.root, stream, len(self.large), self._limits):
            self.large += stream.data


def _outer(own: Extent, start: int, entry: ZipEntry) -> Extent:
    """Return where bytes of a file within a record are in the archive."""
    if is_stored(entry):
        return own._replace(offset=start + own.offset)
    if own.method != STORED:
        return own._replace(offset=start, method=TWICE)
    return Extent(start, entry.stored_nbytes, own.nbytes, DEFLATED, own.crc, skip=own.offset)
