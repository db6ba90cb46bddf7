"""The zip container of torch.save, from its first trial in torch 1.4 to today.

Written by `caffe2/serialize/inline_container.cc` in torch's sources. All records stand below one folder,
`data.pkl` is the object and `data/KEY` (`tensors/KEY` in 1.4) are the storages, byte for byte.
"""

from __future__ import annotations

from inspector.containers.base import Container, StoredBytes, first_storage_ids
from inspector.containers.persistent_ids import StorageId
from inspector.containers.source import Source
from inspector.containers.zip_directory import (
    STORED,
    Entry,
    ZipDirectory,
    payload_offset,
    read_directory,
    read_record,
)
from inspector.errors import ContainerError, NotACheckpointError, UnsupportedFormatError
from inspector.limits import Limits
from inspector.pickles.machine import Stream, read_pickle
from inspector.progress import Progress

PICKLE = "data.pkl"
_FACTS = (
    "version",
    ".data/version",
    ".format_version",
    ".storage_alignment",
    "byteorder",
    ".data/serialization_id",
)
_MOST_FACT_NBYTES = 256
_RELATIVES: tuple[tuple[str, str, str], ...] = (
    ("constants.pkl", "a TorchScript archive", "load it with torch.jit.load"),
    ("archive_format", "a torch.export archive", "load it with torch.export.load"),
    (".data/extern_modules", "a torch.package archive", "load it with torch.package.PackageImporter"),
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
        cut = len(self.prefix)
        self._by_name: dict[str, Entry] = {}
        for entry in directory.entries:
            # torch reads the first of several records of one name.
            self._by_name.setdefault(
                entry.name[cut:] if entry.name.startswith(self.prefix) else entry.name, entry
            )

    def get(self, name: str) -> Entry | None:
        """Give a record by its name below the folder, or None."""
        return self._by_name.get(name)

    def storage(self, key: str) -> Entry | None:
        """Give the record of a storage, or None."""
        return self._by_name.get(f"data/{key}") or self._by_name.get(f"tensors/{key}")


def read_torchzip(source: Source, limits: Limits, progress: Progress) -> Container:
    """Take a torch.save zip apart.

    Raises:
        ContainerError: It is damaged, or a zip of something else.
        PickleError: Its pickle cannot be read.
        CancelledError: The work was cancelled.
    """
    records = Records(read_directory(source, limits, progress))
    entry = find_pickle(records, source.path)
    stream = _read_object(source, entry, limits, progress)
    storage_ids = first_storage_ids(stream.persistent_ids, limits)
    return Container(
        path=source.path,
        format="zip",
        file_nbytes=source.file_nbytes,
        stream=stream,
        pickle_offset=payload_offset(source, entry) if entry.method == STORED else -1,
        pickle_nbytes=stream.end,
        storage_ids=storage_ids,
        stored=_find_storages(source, records, storage_ids, progress),
        versions=_read_versions(source, records),
        notes=_notes(records),
    )


def find_pickle(records: Records, path: str) -> Entry:
    """Give the record of the object's pickle.

    Raises:
        NotACheckpointError: The zip is not one of torch's.
        UnsupportedFormatError: It is one of torch's other archives.
    """
    for name, what, remedy in _RELATIVES:
        if records.get(name) is not None:
            raise UnsupportedFormatError(
                f"this is {what}, which this version does not read", where=path, remedy=remedy
            )
    entry = records.get(PICKLE)
    if entry is None:
        raise NotACheckpointError("this zip holds no data.pkl, so torch.save did not write it", where=path)
    return entry


def _read_object(source: Source, entry: Entry, limits: Limits, progress: Progress) -> Stream:
    data = read_record(source, entry, limits.pickle_nbytes)
    return read_pickle(data, name=entry.name, limits=limits, progress=progress)


def _find_storages(
    source: Source, records: Records, storage_ids: dict[str, StorageId], progress: Progress
) -> dict[str, StoredBytes]:
    progress.start("finding storages", len(storage_ids))
    stored: dict[str, StoredBytes] = {}
    for key in storage_ids:
        progress.advance(1)
        entry = records.storage(key)
        if entry is None:
            continue
        if entry.method != STORED:
            stored[key] = StoredBytes(None, entry.nbytes)
            continue
        offset = payload_offset(source, entry)
        # A record that runs past the end of the file is as good as missing.
        if offset + entry.nbytes <= source.nbytes:
            stored[key] = StoredBytes(offset, entry.nbytes)
    return stored


def _read_versions(source: Source, records: Records) -> tuple[tuple[str, str], ...]:
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


def _notes(records: Records) -> tuple[str, ...]:
    notes = []
    if records.get("version") is None and records.get(".data/version") is None:
        notes.append("The record 'version' is missing: torch refuses this file.")
    if any(not entry.name.startswith(records.prefix) for entry in records.directory.entries):
        notes.append("Not all records stand in one folder: torch refuses this file.")
    if len({entry.name.lower() for entry in records.directory.entries}) < len(records.directory.entries):
        notes.append("Several records share a name: programs differ in which of them they read.")
    if records.storage("0") is None and any(
        "/tensors/" in entry.name for entry in records.directory.entries[:9]
    ):
        notes.append("Written by torch 1.4, whose zip files later versions of torch cannot load.")
    return tuple(notes)
