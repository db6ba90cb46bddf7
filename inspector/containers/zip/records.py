"""The records of a zip by their names, and the contents of one, as torch's reader hands them out.

miniz checks less than other readers do: no checksum (torch builds it so), not whether a packed record is
whole, and of a stored record not always whether its two sizes are one. Where it hands out bytes that others
refuse, or would not hand out twice, that is told as a doubt: what torch does cannot be told then.
"""

from __future__ import annotations

import re
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from inspector.containers.base import Find, Format
from inspector.containers.container import NOTHING, Container, Extent, Extents, plain_extent, wrong_size
from inspector.containers.inflated import Inflated
from inspector.containers.notes import Note, NoteKind
from inspector.containers.persistent_ids import StorageId
from inspector.containers.programs import ProgramKind
from inspector.containers.source import Source, Window
from inspector.containers.zip.directory import (
    DEFLATED,
    DESCRIBED,
    DESCRIPTOR,
    REFUSED_FLAGS,
    STORED,
    MinizError,
    Trouble,
    ZipDirectory,
    ZipEntry,
    payload_offset,
    payload_offsets,
    place_of,
    read_directory,
)
from inspector.errors import ContainerError, DamagedError
from inspector.limits import DEFAULT_LIMITS, Limits
from inspector.overriding import override
from inspector.pickles.machine import Machine, Stream
from inspector.progress import Progress

# --- the contents of one ------------------------------------------------------------------------------------


_ENCRYPTED, _PATCHED = 0x41, 0x20
_STEPS = (1 << 16, 1 << 8, 1)


class RecordContents(NamedTuple):
    """What was read of a record."""

    data: bytes
    # why other readers, or torch another time, may read other contents; None where all read these
    doubt: NoteKind | None = None


def refused(entry: ZipEntry) -> MinizError | None:
    """Return why torch refuses a record before it reads any of it, as miniz tells it; None if it takes it."""
    if entry.trouble is Trouble.ZIP64:
        return MinizError.CORRUPTED
    if entry.method not in {STORED, DEFLATED}:
        return MinizError.METHOD
    if entry.flags & _ENCRYPTED:
        return MinizError.ENCRYPTED
    return MinizError.FEATURE if entry.flags & _PATCHED else None


def read_contents(source: Source, entry: ZipEntry, most_nbytes: int) -> RecordContents:
    """Read one record, inflated; at most `most_nbytes` bytes whatever the directory claims."""
    where = place_of(entry)
    if max(entry.nbytes, entry.stored_nbytes) > most_nbytes:
        raise ContainerError(f"a zip record is larger than {most_nbytes:,} bytes", where=where)
    miniz = refused(entry)
    if miniz is MinizError.METHOD:
        raise ContainerError(f"compression method {entry.method} is not supported", where=where)
    if miniz is not None:
        is_encrypted = miniz is MinizError.ENCRYPTED
        what = "a zip record is encrypted" if is_encrypted else "a zip record cannot be read"
        raise ContainerError(what, where=f"{where}: {miniz.value}")
    offset = payload_offset(source, entry)
    if entry.method == DEFLATED:
        contents = _inflate(source.read(offset, entry.stored_nbytes), entry, where)
    else:
        data = source.read(offset, max(entry.nbytes, entry.stored_nbytes))[: entry.nbytes]
        is_plain = entry.nbytes == entry.stored_nbytes
        contents = RecordContents(data, None if is_plain else NoteKind.TWO_RECORD_SIZES)
    is_unwritten = entry.trouble and entry.nbytes
    return contents._replace(doubt=NoteKind.UNWRITTEN_RECORD) if is_unwritten else contents


def read_zip_record(source: Source, entry: ZipEntry, most_nbytes: int) -> bytes:
    """Read one record that all readers read alike; otherwise as `read_contents`."""
    contents = read_contents(source, entry, most_nbytes)
    if contents.doubt is not None:
        where = f"{place_of(entry)}: {Note(contents.doubt).sentence}"
        raise ContainerError("a zip record is damaged", where=where)
    return contents.data


def _inflate(packed: bytes, entry: ZipEntry, where: str) -> RecordContents:
    """Inflate a record; what of it is damaged or too much is left out, as torch leaves it out."""
    inflate = zlib.decompressobj(-zlib.MAX_WBITS)
    try:
        # One byte more than declared is enough to see that the declaration is wrong.
        data = inflate.decompress(packed, entry.nbytes + 1)
    except zlib.error:
        return RecordContents(inflate_begun(packed, entry.nbytes), NoteKind.DAMAGED_RECORD)
    if inflate.eof and len(data) < entry.nbytes:
        raise ContainerError("a zip record is not as long as the directory says", where=where)
    is_whole = inflate.eof and len(data) == entry.nbytes
    return RecordContents(data[: entry.nbytes], None if is_whole else NoteKind.DAMAGED_RECORD)


def inflate_begun(packed: bytes, nbytes: int) -> bytes:
    """Inflate as much of a damaged record as can be; zlib keeps back what it made of the damaged piece."""
    inflate = zlib.decompressobj(-zlib.MAX_WBITS)
    data = bytearray()
    pos, steps = 0, list(_STEPS)
    while steps and pos < len(packed) and len(data) < nbytes:
        before = inflate.copy()
        try:
            data += inflate.decompress(packed[pos : pos + steps[0]], nbytes - len(data))
        except zlib.error:
            inflate = before
            del steps[0]
        else:
            pos += steps[0]
    return bytes(data)


class InflatedRecord(Source):
    """The inside of a compressed record, which has the size that the directory says."""

    def __init__(self, whole: Source, entry: ZipEntry, limits: Limits) -> None:
        if entry.nbytes > limits.inflated_nbytes:
            what = f"a zip record is larger than {limits.inflated_nbytes:,} bytes"
            raise ContainerError(what, where=place_of(entry))
        start, stored = payload_offset(whole, entry), entry.stored_nbytes

        def read_packed(offset: int, nbytes: int) -> bytes:
            return whole.read_upto(start + offset, max(min(nbytes, stored - offset), 0))

        look = None if limits.work is None else limits.work.look
        self._inside = Inflated(read_packed, look, is_gzip=False)
        super().__init__(whole.path, entry.nbytes)

    @override
    def read_at(self, offset: int, nbytes: int) -> bytes:
        try:
            return self._inside.read_upto(offset, nbytes)
        except zlib.error as error:
            raise DamagedError(
                "a compressed record is damaged",
                where=f"byte {offset:,}: {error}",
                remedy="fetch or copy the file again",
            ) from error


def open_record(whole: Source, entry: ZipEntry, limits: Limits) -> Source:
    """Return the contents of a record as a source; `whole` stays open."""
    miniz = refused(entry)
    if miniz is not None:
        raise ContainerError("a zip record cannot be read", where=f"{place_of(entry)}: {miniz.value}")
    if entry.method == DEFLATED:
        return InflatedRecord(whole, entry, limits)
    if entry.nbytes != entry.stored_nbytes:
        raise DamagedError("a zip record has two sizes", where=place_of(entry))
    start = payload_offset(whole, entry)
    # Of a record that the end of the file cuts off, what is left is read.
    return Window(whole, start, min(entry.nbytes, max(whole.nbytes - start, 0)))


# --- all of them --------------------------------------------------------------------------------------------


NAME_NBYTES = 511  # what torch keeps of a record's name when it lists them
PICKLE = "data.pkl"
PACKAGED = ".data/extern_modules"
_FOR_OTHERS = (".npy", ".pkl", ".pickle", ".pt", ".pth", ".bin", ".ckpt", ".joblib")


class Records:
    """The records of a torch archive by their name below the archive's folder, which torch finds in any case.

    Attributes:
        directory: The zip's directory.
        names: Their full names, in the order of the directory.
        prefix: The archive's folder with its slash; empty where the first record stands in none.
        own: What the keys of storages begin with that are names of records themselves; empty for none.
        pattern: What the records of all storages are named, where that is known; empty for torch.save's ways.
    """

    def __init__(self, directory: ZipDirectory, *, own: str = "", pattern: str = "") -> None:
        self.directory = directory
        self.own = own
        self.pattern = pattern
        entries = directory.entries
        self.names = [entry.name for entry in entries]
        folder, slash, _ = (self.names[0] if self.names else "").partition("/")
        self.prefix = folder + slash if slash else ""
        # Of several of one name the first counts here, while miniz takes whichever its search hits on.
        self._by_name = {_folded(entry.name): entry for entry in reversed(entries)}

    def get(self, name: str) -> ZipEntry | None:
        """Return a record by its name below the folder, or None."""
        return self._by_name.get(_folded(self.prefix + name))

    def storage(self, key: str) -> ZipEntry | None:
        """Return the record of a storage, or None."""
        if self.own and key.startswith(self.own):
            return self.get(key)
        if self.pattern:
            return self.get(self.pattern.format(key))
        return self.get(f"data/{key}") or self.get(f"tensors/{key}")

    def for_others(self) -> list[ZipEntry]:
        """Return the records that other readers than torch.load take for arrays or pickles, by their names.

        `torch.package` unpickles whatever it is asked for; its mark may stand in a zip of torch.save as well.
        """
        pickle, every = _folded(self.prefix + PICKLE), self.get(PACKAGED) is not None
        return [
            entry
            for entry in self.directory.entries
            if (every or _folded(entry.name).partition("\0")[0].endswith(_FOR_OTHERS))
            and _folded(entry.name) != pickle
        ]

    def share_a_name(self) -> bool:
        """Return whether programs may take one record for another: torch compares names without case."""
        if any("\0" in name for name in self.names):
            return True
        return len(set(map(str.lower, self.names))) < len(self.names)

    def doubled(self, keys: Iterable[str]) -> Iterator[str]:
        """Yield the keys of storages that have several records of one name."""
        count = Counter(_folded(name).partition("\0")[0] for name in self.names)
        entries = ((key, self.storage(key)) for key in keys)
        return (key for key, entry in entries if entry is not None and count[_folded(entry.name)] > 1)

    def lists(self, name: str) -> bool:
        """Return whether torch lists a record by just this name below the folder."""
        wanted = self.prefix + name
        return any(other.startswith(wanted) and listed_name(other) == encoded(wanted) for other in self.names)

    def below(self, folder: str) -> Iterator[str]:
        """Yield the names of the records below a folder of the archive, which is named with its slash."""
        start = self.prefix + folder
        return (name[len(self.prefix) :] for name in self.names if name.startswith(start))


def _folded(name: str) -> str:
    """Return a name as miniz compares it: the capital letters of ASCII are small."""
    if name.islower():
        return name
    if name.isascii():
        return name.lower()
    return name.encode("utf-8", "surrogateescape").lower().decode("utf-8", "surrogateescape")


def listed_name(name: str) -> bytes:
    """Return a record's name as torch lists it: cut where its buffer ends, or at a NUL."""
    return encoded(name)[:NAME_NBYTES].partition(b"\0")[0]


def encoded(name: str) -> bytes:
    """Return a name as the directory has it."""
    return name.encode("utf-8", "surrogateescape")


# --- where their bytes are ----------------------------------------------------------------------------------


def records_extents(source: Source, container: Container, records: Records) -> Extents:
    """Find the storages and other records of any zip."""
    whole: dict[str, Extent] = {}
    lost: dict[str, str] = {}
    entries = {key: records.storage(key) for key in container.storage_ids}
    offsets = _payloads(source, [entry for entry in entries.values() if entry is not None])
    for key, storage in container.storage_ids.items():
        found = _judge_record(source, storage, entries[key], offsets)
        if entries[key] is None:  # it stands in a file within one of the records
            found = plain_extent(storage, container.stored.get(key))
        if isinstance(found, str):
            lost[key] = found
        else:
            whole[key] = found
    mine = {entry.header_offset for entry in entries.values() if entry is not None}
    others = [entry for entry in records.directory.entries if entry.header_offset not in mine]
    return Extents(container=container, whole=whole, lost=lost, records=record_extents(source, others))


def record_extents(source: Source, entries: list[ZipEntry]) -> dict[str, Extent]:
    """Return where the contents of records are, by their full names."""
    offsets = _payloads(source, entries)
    return {
        entry.name: _extent_of(entry, offset)
        for entry in entries
        if (offset := offsets[entry.header_offset]) is not None
    }


def _payloads(source: Source, entries: list[ZipEntry]) -> dict[int, int | None]:
    entries = sorted(entries, key=lambda entry: entry.header_offset)
    found = payload_offsets(source, [entry.header_offset for entry in entries])
    return {entry.header_offset: offset for entry, offset in zip(entries, found, strict=True)}


def _judge_record(
    source: Source, storage: StorageId, entry: ZipEntry | None, offsets: dict[int, int | None]
) -> Extent | str:
    if not storage.nbytes:
        return NOTHING
    if entry is None:
        return "its bytes are not in the file"
    offset = offsets[entry.header_offset]
    if offset is None:
        return "the header of its record was overwritten"
    return _fault_of(source, storage, entry, offset) or _extent_of(entry, offset)


def _fault_of(source: Source, storage: StorageId, entry: ZipEntry, offset: int) -> str | None:
    end = offset + entry.stored_nbytes
    if end > source.nbytes:
        return f"the file ends within it, after {max(source.nbytes - offset, 0):,} of {entry.nbytes:,} bytes"
    if entry.nbytes != storage.nbytes:
        return wrong_size(storage, entry.nbytes)
    if entry.method not in {STORED, DEFLATED} or entry.flags & REFUSED_FLAGS:
        return "its record is encrypted or packed in a way that torch does not read"
    if entry.flags & DESCRIBED and end + DESCRIPTOR.size > source.nbytes:
        # As long as it should be; but bytes may have been lost in its middle, and what follows moved up.
        return "the file ends before its checksum, so that nothing tells whether its bytes are its own"
    has_two_sizes = entry.method == STORED and entry.nbytes != entry.stored_nbytes
    return "its record has two sizes" if has_two_sizes else None


def _extent_of(entry: ZipEntry, offset: int) -> Extent:
    return Extent(offset, entry.stored_nbytes, entry.nbytes, entry.method, entry.crc)


def records_of(source: Source, limits: Limits = DEFAULT_LIMITS, progress: Progress | None = None) -> Records:
    """Return the records of a zip, whose directory is read once while its source is open."""
    if not isinstance(source.kept, Records):
        source.kept = Records(read_directory(source, limits, progress))
    return source.kept


def finder_of(source: Source, records: Records) -> Find:
    """Return what finds the record of a storage by its key."""

    def find(key: str) -> Extent | None:
        entry = records.storage(key)
        return None if entry is None else _extent_of(entry, payload_offset(source, entry))

    return find


class Archive(NamedTuple):
    """A zip whose records are known, and what reading it takes."""

    source: Source
    records: Records
    limits: Limits
    progress: Progress
    # what is wrong with its directory; then what is not there, or not whole, is lost
    damage: tuple[Note, ...] = ()

    def contents(self, entry: ZipEntry, most_nbytes: int) -> RecordContents:
        """Read one record, as `read_contents`."""
        return read_contents(self.source, entry, most_nbytes)

    def run(self, data: bytes, where: str, name: str, kind: ProgramKind) -> Stream:
        """Read a pickle, and keep it among the programs under this name."""
        machine = Machine(data, name=where, limits=self.limits, progress=self.progress)
        return self.source.programs.run(machine, name, kind)


class ZipFormat(Format):
    """An archive of torch or of others, told by the names of its records."""

    is_archive = True
    loads_restricted = False
    own: str = ""  # what the keys of storages begin with that are names of records themselves; empty for none
    # what the records of all storages are named, where that is known; empty for torch.save's ways
    pattern: str = ""
    # how the name of a record begins that tells one without its directory, and maybe without its mark
    left: re.Pattern[str] | None = None

    def matches_records(self, _records: Records) -> bool:
        """Return whether a zip with these records is one; asked where torch.save did not write it."""
        return False

    def matches_names(self, names: Sequence[str]) -> bool:
        """Return whether a zip that lost its directory, and maybe its mark, is one."""
        return self.left is not None and any(map(self.left.match, names))

    def take_apart(self, archive: Archive) -> Container:
        """Take an archive apart whose records are known."""
        raise NotImplementedError(self.name)  # every such format brings it

    def words_without_directory(self, _source: Source, words: str) -> str:
        """Return what its loader says to a file that lost its directory, where that is not torch's reader."""
        return words

    def opened(
        self, source: Source, limits: Limits = DEFAULT_LIMITS, progress: Progress | None = None
    ) -> Archive:
        """Return an archive of this format with its records."""
        directory = records_of(source, limits, progress).directory
        records = Records(directory, own=self.own, pattern=self.pattern)
        return Archive(source, records, limits, progress or Progress())

    @override
    def read(self, source: Source, limits: Limits, progress: Progress) -> Container:
        return self.take_apart(self.opened(source, limits, progress))

    @override
    def finder(self, source: Source) -> Find:
        return finder_of(source, self.opened(source).records)

    @override
    def extents(self, source: Source, limits: Limits, progress: Progress) -> Extents:
        """Find the storages and other records."""
        archive = self.opened(source, limits, progress)
        return records_extents(source, self.take_apart(archive), archive.records)
