"""The small records of a torch archive, and what torch's reader says before it comes to the pickle.

The order is that of `PyTorchStreamReader::init` in `caffe2/serialize/inline_container.cc` and of `_load` in
`torch/serialization.py`. What a version number or a byte order means is judged by the model.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from inspector.containers.notes import NoteKind
from inspector.containers.source import Source
from inspector.containers.zip.directory import ZipEntry
from inspector.containers.zip.records import read_contents, refused
from inspector.containers.zip.torch_words import (
    NO_VERSION,
    UNDECODABLE,
    MinizError,
    miniz_words,
    no_folder_words,
)
from inspector.errors import ContainerError

SERIALIZATION_ID, VERSION, OLD_VERSION = ".data/serialization_id", ".data/version", "version"
_FORMAT, _ORDER, _ALIGNMENT = ".format_version", "byteorder", ".storage_alignment"
_NAMES = (OLD_VERSION, VERSION, _FORMAT, _ALIGNMENT, _ORDER, SERIALIZATION_ID)
_MOST_NBYTES = 1 << 16
_MOST_SHOWN = 256
_NAME_NBYTES = 511  # what torch keeps of a record's name when it lists them
_SPACES = " \t\n\v\f\r"  # C's


class Metadata(NamedTuple):
    """What the small records tell.

    Attributes:
        versions: Their texts, by name.
        refusal: What torch says to the first of them, or of all names, that it refuses; empty where to none.
        doubts: Why torch may read something else.
    """

    versions: tuple[tuple[str, str], ...]
    refusal: str
    doubts: tuple[NoteKind, ...]


class _Reader:
    """Reads the facts once, and remembers what torch says to them."""

    def __init__(self, source: Source, find: Callable[[str], ZipEntry | None]) -> None:
        self._source = source
        self.data: dict[str, bytes] = {}
        self.refusals: dict[str, str] = {}
        self.doubts: list[NoteKind] = []
        self.texts: list[tuple[str, str]] = []
        for name in _NAMES:
            entry = find(name)
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


def read_metadata(
    source: Source, find: Callable[[str], ZipEntry | None], prefix: str, names: Sequence[str]
) -> Metadata:
    """Read the small records of an archive.

    Args:
        source: The file.
        find: Finds a record by its name below the archive's folder.
        prefix: The archive's folder with its slash; empty where there is none.
        names: The names of all records.
    """
    read = _Reader(source, find)
    refusal = next(filter(None, _refusals(read, prefix, names)), "")
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
    """Return what torch says to the list of all names; nothing if it takes them."""
    folder = _encoded(prefix)
    fits = len(folder) <= _NAME_NBYTES
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


def listed_name(name: str) -> bytes:
    """Return a record's name as torch lists it: cut where its buffer ends, or at a NUL."""
    return _encoded(name)[:_NAME_NBYTES].partition(b"\0")[0]


def is_listed(name: str, prefix: str, names: Sequence[str]) -> bool:
    """Return whether torch lists a record by just this name below the folder."""
    wanted = prefix + name
    listed = _encoded(wanted)
    return any(other.startswith(wanted) and listed_name(other) == listed for other in names)


def _encoded(name: str) -> bytes:
    return name.encode("utf-8", "surrogateescape")


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True
