"""The zip container of torch.save, from its first trial in torch 1.4 to today.

Written by `caffe2/serialize/inline_container.cc` in torch's sources. All records stand below one folder,
`data.pkl` is the object and `data/KEY` (`tensors/KEY` in 1.4) are the storages, byte for byte. What torch's
reader says before it comes to the pickle comes in the order of `PyTorchStreamReader::init` and of `_load` in
`torch/serialization.py`; what a version number or a byte order means is judged by the model.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from inspector.containers.container import Container, Extents, StoredBytes, first_storage_ids
from inspector.containers.notes import Note, NoteKind
from inspector.containers.persistent_ids import StorageId
from inspector.containers.source import Source
from inspector.containers.zip.directory import ZipEntry, payload_offset
from inspector.containers.zip.records import Archive, Records, ZipFormat, records_extents, records_of
from inspector.containers.zip.storages import (
    assemble,
    find_pickle,
    find_storages,
    read_metadata,
    read_object,
)
from inspector.errors import DamagedError
from inspector.limits import Limits
from inspector.progress import Progress
from inspector.records import replace


def read_torchzip(source: Source, limits: Limits, progress: Progress) -> Container:
    """Take a torch.save zip apart that stands in another file."""
    return open_torchzip(source, limits, progress)[0]


def open_torchzip(
    source: Source, limits: Limits, progress: Progress, others: Iterable[ZipFormat] = ()
) -> tuple[Container, Records]:
    """Take a torch.save zip apart, and return its records, too; one that lost its directory is searched."""
    try:
        records = records_of(source, limits, progress)
        entry = find_pickle(records, source.path)
        payload_offset(source, entry)  # raises where the header of the pickle's record was overwritten
    except DamagedError as error:
        from inspector.containers.zip.salvage import salvage_zip  # noqa: PLC0415 - healthy files never need it

        return salvage_zip(source, limits, progress, error, others)
    shares = records.share_a_name()
    rivals = _rivals_of(source, entry, records, shares=shares)

    def read_rival(rival: ZipEntry) -> None:
        read_object(source, rival, limits, progress, "rival")

    stream, crc, doubt = read_object(source, entry, limits, progress)
    again: list[StorageId] = []
    storage_ids = first_storage_ids(stream.persistent_ids, limits, again)
    places = find_storages(source, records, storage_ids, progress)
    _take_what_stops(storage_ids, again, places.stored)
    metadata = read_metadata(source, records)
    if rivals:
        from inspector.containers.zip.rivals import read_rivals  # noqa: PLC0415 - few files have any

        stream = replace(stream, oddities=(*stream.oddities, *read_rivals(entry, rivals, read_rival)))
    _run_others(source, records, limits, progress)
    if source.gzipped:
        stored = {key: StoredBytes(0, None, place.nbytes) for key, place in places.stored.items()}
        places = places._replace(stored=stored)
    container = assemble(
        Archive(source, records, limits, progress),
        "zip",
        stream.root,
        storage_ids,
        places,
        metadata,
        doubts=(doubt,),
        flags={
            NoteKind.SHARED_NAME: shares,
            NoteKind.TORCH_1_4: places.is_old,
            NoteKind.WRONG_CHECKSUM: entry.crc not in {0, crc},
        },
        more=[Note(NoteKind.GZIP, (source.packing,))] if source.gzipped else (),
        stream=stream,
    )
    return container, records


def _take_what_stops(
    storage_ids: dict[str, StorageId], again: Sequence[StorageId], stored: Mapping[str, StoredBytes]
) -> None:
    """Let the first id that does not fit its record speak for a storage that torch reads again and again."""
    for one in again:
        place = stored.get(one.key)
        fits = place is not None and storage_ids[one.key].nbytes == place.nbytes
        if place is not None and fits and (one.nbytes, one.location) != (place.nbytes, "cpu"):
            storage_ids[one.key] = one


def _run_others(source: Source, records: Records, limits: Limits, progress: Progress) -> None:
    others = records.for_others()
    if others:
        from inspector.containers.zip.rivals import read_for_others  # noqa: PLC0415 - few files have any

        read_for_others(source, others, limits, progress)


def _rivals_of(source: Source, entry: ZipEntry, records: Records, *, shares: bool) -> list[ZipEntry]:
    if not (shares or records.directory.doubts):
        return []
    from inspector.containers.zip.rivals import namesakes, pickles_elsewhere  # noqa: PLC0415 - few files

    return [
        *(namesakes(entry, records.directory.entries) if shares else ()),
        *(pickles_elsewhere(source) if records.directory.doubts else ()),
    ]


def zip_extents(
    source: Source, limits: Limits, progress: Progress, others: Iterable[ZipFormat] = ()
) -> Extents:
    """Find the storages and other records of a zip."""
    container, records = open_torchzip(source, limits, progress, others)
    return records_extents(source, container, records)
