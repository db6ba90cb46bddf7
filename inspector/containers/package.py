"""The archive of `torch.package`: pickles, the modules that they need as source, and the storages of all.

Written by `PackageExporter` in torch's `torch/package/package_exporter.py`. No pickle in it is the saved
object: each is loaded by its name, and all of them count their storages together.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from inspector.containers.container import Container, PickleRecord, damage_note, first_storage_ids
from inspector.containers.joined import shift_large_values
from inspector.containers.notes import Note, NoteKind
from inspector.containers.persistent_ids import StorageId
from inspector.containers.source import Source
from inspector.containers.zip.directory import ZipEntry, payload_offset, place_of
from inspector.containers.zip.records import PACKAGED, Records, ZipFormat, read_contents
from inspector.containers.zip.storages import find_storages, read_metadata
from inspector.errors import ContainerError, PickleError
from inspector.limits import Limits
from inspector.overriding import override
from inspector.pickles.machine import Machine, Stream
from inspector.pickles.values import Dict, Value
from inspector.progress import Progress
from inspector.units import cut_text, escape_text, format_count

_STORAGES = ".data/{}.storage"
_OWN, _SCRIPTS = ".data/", ".data/ts_code/"
_TEXTS = (".data/extern_modules", ".data/python_version")
_PICKLE, _SOURCE = ".pkl", ".py"
_PROTOCOLS = tuple(bytes((0x80, version)) for version in range(2, 6))
_MOST_PICKLES = 1024
_MOST_TEXT_NBYTES = 1 << 16
_MOST_CHARS = 80
_FEW = 3


def open_package(
    source: Source, records: Records, limits: Limits, progress: Progress, damage: tuple[Note, ...] = ()
) -> Container:
    """Take a package apart whose records are known; `damage` is what is wrong with its directory."""
    reading = _Reading(source, records, limits, progress)
    pickles = tuple(reading.pickles())
    ids = (node for one in pickles for node in one.stream.persistent_ids)
    storage_ids: dict[str, StorageId] = first_storage_ids(ids, limits)
    places = find_storages(source, records, storage_ids, progress)
    metadata = read_metadata(source, records.get, records.prefix, records.names)
    doubts = (*records.directory.doubts, *reading.doubts, *metadata.doubts, *places.doubts)
    notes = (
        Note(NoteKind.REFUSED, (metadata.refusal.partition(". ")[0],)) if metadata.refusal else None,
        *map(Note, dict.fromkeys(doubts)),
        *damage,
        Note(NoteKind.OVERLAP) if places.overlap else None,
        Note(NoteKind.BROKEN_OFF) if reading.has_broken else None,
        damage_note(storage_ids, places.stored),
        *_inside(records),
    )
    return Container(
        path=source.path,
        format="package",
        file_nbytes=source.file_nbytes,
        root=Dict(reading.roots),
        pickles=pickles,
        programs=source.programs.all(),
        storage_ids=storage_ids,
        stored=places.stored,
        data=bytes(reading.large),
        versions=(*metadata.versions, *_texts(source, records)),
        notes=tuple(filter(None, notes)),
        refusal=metadata.refusal,
        refused=tuple(places.refused.items()),
    )


class _Reading:
    """Reads the pickles of a package.

    Attributes:
        large: The data of those pickles that left large values in it.
    """

    def __init__(self, source: Source, records: Records, limits: Limits, progress: Progress) -> None:
        self._source = source
        self._records = records
        self._limits = limits
        self._progress = progress
        self.roots: list[tuple[Value, Value]] = []
        self.large = bytearray()
        self.doubts: list[NoteKind] = []
        self.has_broken = False

    def pickles(self) -> Iterator[PickleRecord]:
        """Read them in the order of the archive."""
        left = self._limits.pickle_nbytes
        names: set[str] = set()
        for entry in self._records.directory.entries:
            name = entry.name[len(self._records.prefix) :]
            if not entry.name.startswith(self._records.prefix) or name.startswith(_OWN):
                continue
            if name.endswith(_SOURCE) or not self._is_pickle(entry, name):
                continue
            if name.lower() in names:
                self.doubts.append(NoteKind.SHARED_NAME)
            names.add(name.lower())
            if len(names) > _MOST_PICKLES:
                raise ContainerError(f"the package has more than {_MOST_PICKLES:,} pickles")
            stream = self._read(entry, name, left)
            if stream is not None:
                left -= len(stream.data)
                if shift_large_values(stream.root, stream, len(self.large), self._limits):
                    self.large += stream.data
                self.roots.append((name, stream.root))
                yield PickleRecord(entry.name, stream)

    def _is_pickle(self, entry: ZipEntry, name: str) -> bool:
        """Return whether a record is one: they may have any name, and mostly have the usual one."""
        if name.endswith(_PICKLE):
            return True
        try:
            return self._source.read_upto(payload_offset(self._source, entry), 2) in _PROTOCOLS
        except ContainerError:
            return False

    def _read(self, entry: ZipEntry, name: str, left: int) -> Stream | None:
        """Read one; what is broken, or none in spite of its name, is told and left at that."""
        try:
            contents = read_contents(self._source, entry, left)
            machine = Machine(
                contents.data, name=place_of(entry), limits=self._limits, progress=self._progress
            )
            stream = self._source.programs.run(machine, name, "object")
        except (ContainerError, PickleError):
            self.has_broken = True
            return None
        if contents.doubt is not None:
            self.doubts.append(contents.doubt)
        return stream


def _inside(records: Records) -> Iterator[Note]:
    """Yield what else is in a package that runs, or is not listed."""
    modules = [
        name[: -len(_SOURCE)].removesuffix("/__init__").replace("/", ".")
        for name in records.below("")
        if name.endswith(_SOURCE) and not name.startswith(_OWN)
    ]
    if modules:
        named = ", ".join(escape_text(cut_text(name, _MOST_CHARS)) for name in modules[:_FEW])
        more = f" and {len(modules) - _FEW:,} more" if len(modules) > _FEW else ""
        yield Note(NoteKind.PYTHON_INSIDE, (f"{format_count(len(modules), 'module')}, {named}{more}",))
    if next(records.below(_SCRIPTS), None) is not None:
        yield Note(NoteKind.NOT_LISTED, ("The tensors of its TorchScript objects",))


def _texts(source: Source, records: Records) -> Iterator[tuple[str, str]]:
    """Yield what the package says of the Python that it was written with, and needs."""
    for name in _TEXTS:
        entry = records.get(name)
        try:
            data = b"" if entry is None else read_contents(source, entry, _MOST_TEXT_NBYTES).data
        except ContainerError:
            continue
        text = ", ".join(data.decode("utf-8", "replace").split())
        if text:
            yield name.removeprefix(_OWN), cut_text(escape_text(text), 10 * _MOST_CHARS)


class Package(ZipFormat):
    """What torch.package writes."""

    name = "package"
    what = "a torch.package archive"
    loader = "torch.package.PackageImporter"
    pattern = _STORAGES
    left = re.compile(r"[^/]*/\.data/\d+\.storage")

    @override
    def matches_records(self, records: Records) -> bool:
        return records.lists(PACKAGED)

    @override
    def take_apart(
        self,
        source: Source,
        records: Records,
        limits: Limits,
        progress: Progress,
        damage: tuple[Note, ...] = (),
    ) -> Container:
        return open_package(source, records, limits, progress, damage)
