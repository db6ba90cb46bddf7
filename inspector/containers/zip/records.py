"""The records of a zip by their names, and the contents of one, as torch's reader hands them out.

miniz checks less than other readers do: no checksum (torch builds it so), not whether a packed record is
whole, and of a stored record not always whether its two sizes are one. Where it hands out bytes that others
refuse, or would not hand out twice, that is told as a doubt: what torch does cannot be told then.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from inspector.containers.container import Extent
from inspector.containers.inflated import Inflated
from inspector.containers.notes import Note, NoteKind
from inspector.containers.source import Source, Window
from inspector.containers.zip.directory import (
    DEFLATED,
    STORED,
    MinizError,
    Trouble,
    ZipDirectory,
    ZipEntry,
    payload_offset,
    place_of,
    read_directory,
)
from inspector.errors import ContainerError, DamagedError
from inspector.limits import DEFAULT_LIMITS, Limits
from inspector.overriding import override
from inspector.progress import Progress

# --- the contents of one ------------------------------------------------------------------------------------


_ENCRYPTED, _PATCHED = 0x41, 0x20
_STEPS = (1 << 16, 1 << 8, 1)


class RecordContents(NamedTuple):
    """What was read of a record.

    Attributes:
        data: Its contents, inflated.
        doubt: Why other readers, or torch another time, may read other contents; None where all read these.
    """

    data: bytes
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
        contents = RecordContents(
            data, None if entry.nbytes == entry.stored_nbytes else NoteKind.TWO_RECORD_SIZES
        )
    return (
        RecordContents(contents.data, NoteKind.UNWRITTEN_RECORD)
        if entry.trouble and entry.nbytes
        else contents
    )


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
        return RecordContents(_begun(packed, entry.nbytes), NoteKind.DAMAGED_RECORD)
    if inflate.eof and len(data) < entry.nbytes:
        raise ContainerError("a zip record is not as long as the directory says", where=where)
    is_whole = inflate.eof and len(data) == entry.nbytes
    return RecordContents(data[: entry.nbytes], None if is_whole else NoteKind.DAMAGED_RECORD)


def _begun(packed: bytes, nbytes: int) -> bytes:
    """Inflate as much of a damaged record as can be; zlib keeps back what it made of the damaged piece."""
    inflate = zlib.decompressobj(-zlib.MAX_WBITS)
    data = bytearray()
    pos, steps = 0, list(_STEPS)
    while steps and pos < len(packed):
        before = inflate.copy()
        try:
            data += inflate.decompress(packed[pos : pos + steps[0]], nbytes - len(data) + 1)
        except zlib.error:
            inflate = before
            del steps[0]
        else:
            pos += steps[0]
    return bytes(data[:nbytes])


class InflatedRecord(Source):
    """The inside of a compressed record, which has the size that the directory says."""

    def __init__(self, whole: Source, entry: ZipEntry, limits: Limits) -> None:
        """Inflate a record of `whole`, which stays open."""
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


def is_stored(entry: ZipEntry) -> bool:
    """Return whether the contents of a record stand in the file as they are."""
    return entry.method == STORED


# --- all of them --------------------------------------------------------------------------------------------


NAME_NBYTES = 511  # what torch keeps of a record's name when it lists them
PICKLE = "data.pkl"
_DATA = "data/"
_PACKAGED = ".data/extern_modules"
_FOR_OTHERS = (".npy", ".pkl", ".pickle", ".pt", ".pth", ".bin", ".ckpt", ".joblib")
_PLAIN = "zip"
_SHARD = "distcp"
_SHARDS = ".distcp"
_CONSTANTS = "constants.pkl"  # torch's own mark of TorchScript: `_is_torchscript_zip`


class Records:
    """The records of a torch archive by their name below the archive's folder, which torch finds in any case.

    Attributes:
        directory: The zip's directory.
        names: Their full names, in the order of the directory.
        prefix: The archive's folder with its slash; empty where the first record stands in none.
        own: What the keys of storages begin with that are names of records themselves; empty for none.
        pattern: What the records of all storages are named, where that is known; empty for torch.save's ways.
    """

    own = ""
    pattern = ""

    def __init__(self, directory: ZipDirectory) -> None:
        self.directory = directory
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
        pickle, every = _folded(self.prefix + PICKLE), self.get(_PACKAGED) is not None
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

    def lists(self, name: str) -> bool:
        """Return whether torch lists a record by just this name below the folder."""
        return is_listed(name, self.prefix, self.names)

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


class ZipKind(NamedTuple):
    """One row: how to tell a zip by its names.

    Attributes:
        name: The name of its format, the same as that of its row in `formats.FORMATS`.
        matches: Says whether a zip with these records is one; asked where torch.save did not write it, and
            after all rows above said no.
    """

    name: str
    matches: Callable[[Records], bool]


def _lists(*names: str) -> Callable[[Records], bool]:
    return lambda records: any(map(records.lists, names))


def _all_of(*names: str) -> Callable[[Records], bool]:
    """Return what tells whether all of these stand in the zip, by their full names."""
    return lambda records: set(names).issubset(records.names)


def _below(folder: str) -> Callable[[Records], bool]:
    return lambda records: next(records.below(folder), None) is not None


def _only(ending: str) -> Callable[[Records], bool]:
    return lambda records: bool(records.names) and all(name.endswith(ending) for name in records.names)


ZIP_KINDS: tuple[ZipKind, ...] = (
    ZipKind("torchscript", _lists(_CONSTANTS, "model.json")),
    ZipKind("pt2", _lists("archive_format")),
    ZipKind("pt2", _all_of("serialized_exported_program.json")),
    ZipKind("pt2", _below("data/aotinductor/")),
    ZipKind("package", _lists(".data/extern_modules")),
    ZipKind("npz", _only(".npy")),
    ZipKind("stable-baselines3", _all_of("data", "policy.pth")),
    ZipKind("stable-baselines3", _all_of("_stable_baselines3_version")),
)


def kind_of(source: Source, limits: Limits, progress: Progress) -> str:
    """Return the name of a zip's format: that of `torch.save` where nothing says that it is another.

    Its records are kept for the reader. Of a damaged one nothing is known, and the reader sees to it.
    """
    try:
        records = Records(read_directory(source, limits, progress))
    except ContainerError:
        return _SHARD if _is_shard(source) else _PLAIN
    if str(source.path).endswith(_SHARDS) or (records.directory.doubts and _is_shard(source)):
        return _SHARD
    source.kept = records
    # torch.load dispatches TorchScript alone; of the others it loads the data.pkl, if there is one.
    if records.get(PICKLE) is not None and not records.lists(_CONSTANTS):
        return _PLAIN
    return next((kind.name for kind in ZIP_KINDS if kind.matches(records)), _PLAIN)


def _is_shard(source: Source) -> bool:
    """Return whether several zips stand one behind the other, as in a distributed checkpoint."""
    from inspector.containers.dcp import ends_in_row  # noqa: PLC0415 - healthy zips never need it

    return str(source.path).endswith(_SHARDS) or ends_in_row(source)


def find_by(source: Source, *, own: str = "", pattern: str = "") -> Callable[[str], Extent | None]:
    """Return what finds the bytes of a storage by its key, in an archive that names their records so."""
    records = Records(read_directory(source, DEFAULT_LIMITS))
    records.own, records.pattern = own, pattern

    def find(key: str) -> Extent | None:
        entry = records.storage(key)
        if entry is None:
            return None
        start = payload_offset(source, entry)
        return Extent(start, entry.stored_nbytes, entry.nbytes, entry.method, entry.crc)

    return find


def records_of(source: Source, limits: Limits, progress: Progress) -> Records:
    """Return the records of a zip: those that were kept, once, else they are read."""
    kept, source.kept = source.kept, None
    return kept if isinstance(kept, Records) else Records(read_directory(source, limits, progress))


def listed_name(name: str) -> bytes:
    """Return a record's name as torch lists it: cut where its buffer ends, or at a NUL."""
    return encoded(name)[:NAME_NBYTES].partition(b"\0")[0]


def is_listed(name: str, prefix: str, names: Sequence[str]) -> bool:
    """Return whether torch lists a record by just this name below the folder."""
    wanted = prefix + name
    listed = encoded(wanted)
    return any(other.startswith(wanted) and listed_name(other) == listed for other in names)


def encoded(name: str) -> bytes:
    """Return a name as the directory has it."""
    return name.encode("utf-8", "surrogateescape")
