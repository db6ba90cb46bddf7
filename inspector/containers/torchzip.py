"""The zip container of torch.save, from its first trial in torch 1.4 to today.

Written by `caffe2/serialize/inline_container.cc` in torch's sources. All records stand below one folder,
`data.pkl` is the object and `data/KEY` (`tensors/KEY` in 1.4) are the storages, byte for byte.
"""

from __future__ import annotations

import zlib
from operator import itemgetter

from inspector.containers.base import Container, Mark, StoredBytes, damage_note, first_storage_ids
from inspector.containers.persistent_ids import StorageId
from inspector.containers.programs import ProgramKind
from inspector.containers.rivals import read_rivals
from inspector.containers.source import Source
from inspector.containers.torch_words import NO_VERSION, UNDECODABLE, no_folder_words
from inspector.containers.zip_directory import (
    NO_END,
    STORED,
    Entry,
    ZipDirectory,
    payload_offset,
    payload_offsets,
    place_of,
    read_directory,
    read_record,
)
from inspector.errors import ContainerError, DamagedError, UnsupportedFormatError
from inspector.limits import Limits
from inspector.pickles.machine import Machine, Stream
from inspector.progress import Progress
from inspector.records import replace

PICKLE = "data.pkl"
WRONG_PICKLE = "The checksum of data.pkl is wrong: the file was damaged, or changed after it was saved."
_FACTS = (
    "version",
    ".data/version",
    ".format_version",
    ".storage_alignment",
    "byteorder",
    ".data/serialization_id",
)
_MOST_FACT_NBYTES = 256
_ASK_EACH = 4096
_SHARED_NAME = "Several records share a name: programs differ in which of them they read."
_RELATIVES: tuple[tuple[str, str, str, str], ...] = (
    ("constants.pkl", "torchscript", "a TorchScript archive", "load it with torch.jit.load"),
    ("archive_format", "pt2", "a torch.export archive", "load it with torch.export.load"),
    (
        ".data/extern_modules",
        "package",
        "a torch.package archive",
        "load it with torch.package.PackageImporter",
    ),
)


class Records:
    """The records of a torch archive by their name below the archive's folder.

    Attributes:
        directory: The zip's directory.
        prefix: The archive's folder with its slash.
    """

    def __init__(self, directory: ZipDirectory) -> None:
        self.directory = directory
        first = directory.entries[0].name if directory.entries else ""
        folder, slash, _ = first.partition("/")
        self.prefix = folder + slash if slash else ""
        # torch reads the first of several records of one name.
        self._by_name = {entry.name: entry for entry in reversed(directory.entries)}

    def get(self, name: str) -> Entry | None:
        """Give a record by its name below the folder, or None."""
        return self._by_name.get(self.prefix + name)

    def storage(self, key: str) -> Entry | None:
        """Give the record of a storage, or None."""
        folder = self.prefix
        return self._by_name.get(f"{folder}data/{key}") or self._by_name.get(f"{folder}tensors/{key}")


def read_torchzip(source: Source, limits: Limits, progress: Progress) -> Container:
    """Take a torch.save zip apart; one that lost its directory is searched.

    Raises:
        ContainerError: It is damaged, or a zip of something else.
        PickleError: Its pickle cannot be read.
        CancelledError: The work was cancelled.
    """
    return open_torchzip(source, limits, progress)[0]


def open_torchzip(source: Source, limits: Limits, progress: Progress) -> tuple[Container, Records]:
    """Take a torch.save zip apart, and give its records, too, for those who read them; errors as above."""
    try:
        records = Records(read_directory(source, limits, progress))
        entry = find_pickle(records, source.path)
        offset = payload_offset(source, entry)
    except DamagedError as error:
        from inspector.containers.salvage_zip import salvage_zip  # noqa: PLC0415 - healthy files never need it

        return salvage_zip(source, limits, progress, damaged=not error.what.startswith(NO_END))
    stream, is_intact = _read_object(source, entry, limits, progress)
    storage_ids = first_storage_ids(stream.persistent_ids, limits)
    stored, overlap = find_storages(source, records, storage_ids, progress)
    notes, marks, refusal = _notes(records)
    if "ambiguous" in marks:
        odd = read_rivals(
            entry,
            records.directory.entries,
            lambda rival: _read_object(source, rival, limits, progress, "rival"),
        )
        stream = replace(stream, notes=(*stream.notes, *odd))
    if overlap:
        notes.append("Several records share bytes: no program writes that by itself.")
    if not is_intact:
        notes.append(WRONG_PICKLE)
        marks.add("wrong-checksum")
    damage = damage_note(storage_ids, stored) if len(stored) < len(storage_ids) else None
    container = Container(
        path=source.path,
        format="zip",
        file_nbytes=source.file_nbytes,
        stream=stream,
        programs=source.programs.all(),
        pickle_offset=offset if entry.method == STORED else -1,
        pickle_nbytes=stream.end,
        storage_ids=storage_ids,
        stored=stored,
        versions=read_versions(source, records),
        notes=(*notes, damage) if damage else tuple(notes),
        marks=frozenset(marks),
        refusal=refusal,
    )
    return container, records


def find_pickle(records: Records, path: str) -> Entry:
    """Give the record of the object's pickle.

    Raises:
        NotACheckpointError: The zip is not one of torch's.
        UnsupportedFormatError: It is one of torch's other archives.
    """
    for name, form, what, remedy in _RELATIVES:
        if records.get(name) is not None:
            raise UnsupportedFormatError(
                f"this is {what}, which this version does not read", where=path, remedy=remedy, form=form
            )
    entry = records.get(PICKLE)
    if entry is None:
        from inspector.containers.lookalikes_zip import name_zip  # noqa: PLC0415 - healthy files never need it

        raise name_zip((other.name for other in records.directory.entries), path)
    return entry


def _read_object(
    source: Source, entry: Entry, limits: Limits, progress: Progress, kind: ProgramKind = "object"
) -> tuple[Stream, bool]:
    """Read the object's pickle, and say whether its checksum (which torch may leave 0) is right."""
    data = read_record(source, entry, limits.pickle_nbytes)
    machine = Machine(data, name=place_of(entry), limits=limits, progress=progress)
    stream = source.programs.run(machine, PICKLE if kind == "object" else entry.name, kind)
    return stream, entry.crc in {0, zlib.crc32(data)}


def find_storages(
    source: Source, records: Records, storage_ids: dict[str, StorageId], progress: Progress
) -> tuple[dict[str, StoredBytes], bool]:
    """Place the storages; one whose record is missing, damaged or cut off has no entry.

    Returns:
        The places, in the order of the file, and whether any overlap.
    """
    progress.start("finding storages", len(storage_ids))
    found = [(entry.header_offset, key, entry) for key in storage_ids if (entry := records.storage(key))]
    found.sort(key=itemgetter(0))
    stored: dict[str, StoredBytes] = {}
    reached, overlap, most = 0, False, source.nbytes
    offsets = payload_offsets(source, [entry for _, _, entry in found])
    for number, ((header, key, entry), offset) in enumerate(zip(found, offsets, strict=True)):
        if number % _ASK_EACH == 0:
            progress.advance(min(_ASK_EACH, len(found) - number))
        nbytes = entry.stored_nbytes
        is_plain = entry.method == STORED
        if offset is None or offset + nbytes > most or (is_plain and entry.nbytes != nbytes):
            continue
        overlap = overlap or header < reached
        reached = offset + nbytes
        # StoredBytes(...) would take thrice as long.
        stored[key] = tuple.__new__(StoredBytes, (offset if is_plain else None, entry.nbytes))
    return stored, overlap


def read_versions(source: Source, records: Records) -> tuple[tuple[str, str], ...]:
    """Read the small records that tell versions."""
    found = []
    for name in _FACTS:
        entry = records.get(name)
        if entry is None or entry.nbytes > _MOST_FACT_NBYTES:
            continue
        try:
            text = read_record(source, entry, _MOST_FACT_NBYTES).decode("utf-8", "backslashreplace").strip()
        except ContainerError as error:
            text = f"unreadable: {error.what}"
        found.append((name, text))
    return tuple(found)


def _notes(records: Records) -> tuple[list[str], set[Mark], str]:
    """Return the notes on the records, the marks, and what torch says to the first thing that it refuses."""
    notes: list[str] = []
    marks: set[Mark] = set()
    refusals: list[str] = []
    names = [entry.name for entry in records.directory.entries]
    if not records.prefix:
        notes.append("The records stand in no folder: torch refuses this file.")
        refusals.append(no_folder_words(names[0]))
    if records.get("version") is None and records.get(".data/version") is None:
        notes.append("The record 'version' is missing: torch refuses this file.")
        refusals.append(NO_VERSION)
    stray = next((name for name in names if not name.startswith(records.prefix)), None)
    if stray is not None:
        notes.append("Not all records stand in one folder: torch refuses this file.")
        refusals.append(no_folder_words(stray, records.prefix))
    if _share_a_name(names):
        notes.append(_SHARED_NAME)
        marks.add("ambiguous")
    if not all(map(_is_text, names)):
        notes.append("The name of a record is no text: torch refuses this file.")
        refusals.append(UNDECODABLE)
    if records.storage("0") is None and any("/tensors/" in name for name in names[:9]):
        notes.append("Written by torch 1.4, whose zip files later versions of torch cannot load.")
        marks.add("torch-1.4")
    return notes, marks, next(iter(refusals), "")


def _is_text(name: str) -> bool:
    return name.isascii() or not any("\udc80" <= char <= "\udcff" for char in name)


def _share_a_name(names: list[str]) -> bool:
    """Say whether programs may take one record for another: torch compares names without case."""
    is_lower = True
    for start in range(0, len(names), _ASK_EACH):  # all at once would be a second copy of them
        text = "\n".join(names[start : start + _ASK_EACH])
        if "\0" in text:
            return True
        is_lower = is_lower and text == text.lower()
    # Hashes are enough to see it. A loop, since no other thread can run within one long call.
    return len({hash(name if is_lower else name.lower()) for name in names}) < len(names)
