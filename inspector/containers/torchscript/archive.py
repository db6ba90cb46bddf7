"""The archive of `torch.jit.save`: `data.pkl` and `constants.pkl`, their tensors, and the code in text.

Written by `ScriptModuleSerializer` in torch's `torch/csrc/jit/serialization/export_module.cpp`, and read by
`import.cpp` beside it with an unpickler of its own, which imports no Python.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING

from inspector.containers.container import (
    Container,
    Declared,
    Extent,
    PickleRecord,
    damage_note,
    first_storage_ids,
)
from inspector.containers.notes import Note, NoteKind
from inspector.containers.persistent_ids import StorageId, parse_storage_id, prefix_key
from inspector.containers.programs import ProgramKind
from inspector.containers.source import Source
from inspector.containers.torchscript.code import Code, read_code
from inspector.containers.torchscript.objects import Objects, is_tensor
from inspector.containers.unread import within_bounds
from inspector.containers.zip.archive import find_storages
from inspector.containers.zip.directory import ZipEntry, place_of
from inspector.containers.zip.duplicates import namesakes, read_rivals
from inspector.containers.zip.kinds import PICKLE, Records, find_by, records_of
from inspector.containers.zip.metadata import read_metadata
from inspector.containers.zip.records import read_contents
from inspector.errors import ContainerError, PickleError, UnsupportedFormatError
from inspector.limits import Limits
from inspector.pickles.machine import Machine, Stream
from inspector.pickles.values import Dict, PersistentId, Value
from inspector.progress import Progress
from inspector.records import replace

if TYPE_CHECKING:
    from inspector.containers.extents import Extents

CONSTANTS = "constants.pkl"
OWN = "constants/"
PICKLES = ((PICKLE, ""), (CONSTANTS, OWN))
"""The pickles that hold tensors, each with what its storages' keys begin with here."""
_FIRST = "model.json"
_MOST_OTHERS = 16
_OTHERS = (".pkl", ".pickle", ".pt", ".pth", ".bin", ".ckpt")


def read_torchscript(source: Source, limits: Limits, progress: Progress) -> Container:
    """Take a TorchScript archive apart."""
    return open_torchscript(source, limits, progress)[0]


def open_torchscript(source: Source, limits: Limits, progress: Progress) -> tuple[Container, Records]:
    """Take a TorchScript archive apart, and return its records, too."""
    records = records_of(source, limits, progress)
    return take_apart(source, records, limits, progress), records


def take_apart(
    source: Source,
    records: Records,
    limits: Limits,
    progress: Progress,
    damage: tuple[Note, ...] = (),
) -> Container:
    """Take an archive apart whose records are known.

    Args:
        source: The file.
        records: Its records.
        limits: The bounds of reading.
        progress: Asked for cancellation.
        damage: What is wrong with its directory: then constants that are not there, or not whole, are lost.
    """
    records.own = OWN
    reading = _Reading(source, records, limits, progress)
    pickles = tuple(reading.pickles(is_damaged=bool(damage)))
    reading.read_others()
    storage_ids: dict[str, StorageId] = {}
    for one in pickles:
        storage_ids |= first_storage_ids(_rekeyed(one), limits)
    code = read_code(source, records, progress)
    root, declared = build_root([one.stream for one in pickles], code)
    places = find_storages(source, records, storage_ids, progress)
    metadata = read_metadata(source, records.get, records.prefix, records.names)
    doubts = (*records.directory.doubts, *reading.doubts, *metadata.doubts, *places.doubts)
    notes = (
        Note(NoteKind.REFUSED, (metadata.refusal.partition(". ")[0],)) if metadata.refusal else None,
        *map(Note, dict.fromkeys(doubts)),
        *damage,
        Note(NoteKind.SHARED_NAME) if reading.shares else None,
        Note(NoteKind.OVERLAP) if places.overlap else None,
        *(Note(NoteKind.WRONG_CHECKSUM) for _ in reading.damaged[:1]),
        damage_note(storage_ids, places.stored),
        *_code_notes(code),
    )
    return Container(
        path=source.path,
        format="torchscript",
        file_nbytes=source.file_nbytes,
        root=root,
        stream=pickles[0].stream,
        pickles=pickles,
        programs=source.programs.all(),
        storage_ids=storage_ids,
        stored=places.stored,
        versions=metadata.versions,
        notes=tuple(filter(None, notes)),
        refusal=metadata.refusal,
        refused=tuple(places.refused.items()),
        declared=declared,
        code_devices=code.devices,
    )


def _code_notes(code: Code) -> Iterator[Note]:
    if not code.is_whole:
        yield Note(NoteKind.UNREAD_CODE)
    if code.runs_at_load:
        yield Note(NoteKind.RUNS_AT_LOAD, code.runs_at_load[:1])
    if code.files:
        yield Note(NoteKind.FILE_ACCESS, code.files[:1])


class _Reading:
    """Reads the pickles of an archive."""

    def __init__(self, source: Source, records: Records, limits: Limits, progress: Progress) -> None:
        self._source = source
        self._records = records
        self._limits = limits
        self._progress = progress
        self.doubts: list[NoteKind] = []
        self.damaged: list[str] = []
        self.shares = False

    def pickles(self, *, is_damaged: bool) -> Iterator[PickleRecord]:
        """Read those that hold tensors, the object's first."""
        for name, prefix in PICKLES:
            entry = self._records.get(name)
            if entry is None and not prefix and self._records.get(_FIRST) is not None:
                raise UnsupportedFormatError(
                    "this is a TorchScript archive of the first generation, with its objects in model.json",
                    where=self._source.path,
                    remedy="torch 2.13 refuses it, too: load and save it once with torch 1.x",
                )
            if entry is None and not (is_damaged and prefix):
                raise ContainerError(
                    f"the TorchScript archive has no {name}",
                    where=self._source.path,
                    remedy="fetch it again, or load it with the torch that wrote it, and save it anew",
                )
            with suppress(*((ContainerError, PickleError) if is_damaged and prefix else ())):
                if entry is not None:
                    yield PickleRecord(entry.name, self._read(entry, name), prefix)

    def _read(self, entry: ZipEntry, name: str) -> Stream:
        kind: ProgramKind = "object" if name == PICKLE else "part"
        data, doubt = read_contents(self._source, entry, self._limits.pickle_nbytes)
        if doubt is not None:
            self.doubts.append(doubt)
        if entry.crc not in {0, zlib.crc32(data)}:
            self.damaged.append(name)
        stream = self._run(data, entry, name, kind)
        others = tuple(namesakes(entry, self._records.directory.entries))
        if len(others) > 1:
            self.shares = True
            stream = replace(
                stream, oddities=(*stream.oddities, *read_rivals(entry, others, self._read_rival))
            )
        return stream

    def _run(self, data: bytes, entry: ZipEntry, name: str, kind: ProgramKind) -> Stream:
        machine = Machine(data, name=place_of(entry), limits=self._limits, progress=self._progress)
        return self._source.programs.run(machine, name, kind)

    def _read_rival(self, entry: ZipEntry) -> None:
        data = read_contents(self._source, entry, self._limits.pickle_nbytes).data
        self._run(data, entry, entry.name, "rival")

    def read_others(self) -> None:
        """Read what else is a pickle by its name: torch hands it out as it is, and others may unpickle it."""
        limits = within_bounds(self._limits)
        folder = self._records.prefix
        known = {folder + name for name, _ in PICKLES}
        others = (
            entry
            for entry in self._records.directory.entries
            if entry.name.startswith(folder) and entry.name.endswith(_OTHERS) and entry.name not in known
        )
        for entry in islice(others, _MOST_OTHERS):
            with suppress(PickleError, ContainerError):  # what is broken, or none, is left at that
                data = read_contents(self._source, entry, limits.pickle_nbytes).data
                machine = Machine(data, name=place_of(entry), limits=limits, progress=self._progress)
                self._source.programs.run(machine, entry.name, "rival")


def build_root(streams: Sequence[Stream], code: Code) -> tuple[Dict, dict[int, Declared]]:
    """Return the objects as mappings, with the constants of the code, and what tensors are for."""
    objects = Objects(code.members)
    root = objects.plain(streams[0].root)
    made = root if isinstance(root, Dict) else Dict([("data.pkl", root)])
    constants = objects.plain(streams[1].root) if streams[1:] else None
    tensors: list[Value] = [one for one in constants if is_tensor(one)] if isinstance(constants, list) else []
    if tensors:
        made = Dict([*made.pairs, (CONSTANTS, tensors)])
    return made, objects.declared


def _rekeyed(pickle: PickleRecord) -> Sequence[PersistentId]:
    """Return the persistent ids of a pickle; those of the constants, which are counted anew, get new keys."""
    nodes = pickle.stream.persistent_ids
    for node in nodes:
        found = prefix_key(node, pickle.prefix) if pickle.prefix else parse_storage_id(node)
        if found is not None and not pickle.prefix and found.key.startswith(OWN):
            raise ContainerError("a storage of data.pkl is named like one of constants.pkl")
    return nodes


def find_script_records(source: Source) -> Callable[[str], Extent | None]:
    """Return what finds the bytes of a storage by its key."""
    return find_by(source, own=OWN)


def script_extents(source: Source, limits: Limits, progress: Progress) -> Extents:
    """Find the storages and other records of a TorchScript archive; errors as those of `read_torchscript`."""
    from inspector.containers.extents import records_extents  # noqa: PLC0415 - opening a file needs none

    container, records = open_torchscript(source, limits, progress)
    return records_extents(source, container, records)
