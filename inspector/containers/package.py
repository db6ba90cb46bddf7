"""The archive of `torch.package`: pickles, the modules that they need as source, and the storages of all.

Written by `PackageExporter` in torch's `torch/package/package_exporter.py`. No pickle in it is the saved
object: each is loaded by its name, and all of them count their storages together.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from inspector.containers.container import Container, PickleRecord, first_storage_ids
from inspector.containers.joined import shift_large_values
from inspector.containers.notes import Note, NoteKind, listed
from inspector.containers.zip.directory import ZipEntry, payload_offset, place_of
from inspector.containers.zip.records import PACKAGED, Archive, Records, ZipFormat
from inspector.containers.zip.storages import assemble, find_storages, read_metadata
from inspector.errors import ContainerError, PickleError
from inspector.overriding import override
from inspector.pickles.machine import Stream
from inspector.pickles.values import Dict, Value
from inspector.units import cut_text, escape_text, format_count

_STORAGES = ".data/{}.storage"
_OWN, _SCRIPTS = ".data/", ".data/ts_code/"
_TEXTS = (".data/extern_modules", ".data/python_version")
_PICKLE, _SOURCE = ".pkl", ".py"
_PROTOCOLS = tuple(bytes((0x80, version)) for version in range(2, 6))
_MOST_PICKLES = 1024
_MOST_TEXT_NBYTES = 1 << 16
_MOST_CHARS = 800


class _Reading:
    def __init__(self, archive: Archive) -> None:
        self._archive = archive
        self._limits = archive.limits
        self.roots: list[tuple[Value, Value]] = []
        self.large = bytearray()  # the data of those pickles that left large values in it
        self.doubts: list[NoteKind] = []
        self.has_broken = False

    def pickles(self) -> Iterator[PickleRecord]:
        """Read them in the order of the archive."""
        left = self._limits.pickle_nbytes
        names: set[str] = set()
        records = self._archive.records
        for entry in records.directory.entries:
            name = entry.name[len(records.prefix) :]
            if not entry.name.startswith(records.prefix) or name.startswith(_OWN):
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
            source = self._archive.source
            return source.read_upto(payload_offset(source, entry), 2) in _PROTOCOLS
        except ContainerError:
            return False

    def _read(self, entry: ZipEntry, name: str, left: int) -> Stream | None:
        try:
            contents = self._archive.contents(entry, left)
            stream = self._archive.run(contents.data, place_of(entry), name, "object")
        except (ContainerError, PickleError):
            self.has_broken = True
            return None
        if contents.doubt is not None:
            self.doubts.append(contents.doubt)
        return stream


def _inside(records: Records) -> Iterator[Note]:
    modules = [
        name[: -len(_SOURCE)].removesuffix("/__init__").replace("/", ".")
        for name in records.below("")
        if name.endswith(_SOURCE) and not name.startswith(_OWN)
    ]
    if modules:
        amount = format_count(len(modules), "module")
        yield Note(NoteKind.PYTHON_INSIDE, (f"{amount}, {listed(modules)}",))
    if next(records.below(_SCRIPTS), None) is not None:
        yield Note(NoteKind.NOT_LISTED, ("The tensors of its TorchScript objects",))


def _texts(archive: Archive) -> Iterator[tuple[str, str]]:
    for name in _TEXTS:
        entry = archive.records.get(name)
        try:
            data = b"" if entry is None else archive.contents(entry, _MOST_TEXT_NBYTES).data
        except ContainerError:
            continue
        text = ", ".join(data.decode("utf-8", "replace").split())
        if text:
            yield name.removeprefix(_OWN), cut_text(escape_text(text), _MOST_CHARS)


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
    def take_apart(self, archive: Archive) -> Container:
        source, records, limits, progress, _ = archive
        reading = _Reading(archive)
        pickles = tuple(reading.pickles())
        ids = (node for one in pickles for node in one.stream.persistent_ids)
        storage_ids = first_storage_ids(ids, limits)
        metadata = read_metadata(source, records)
        return assemble(
            archive,
            "package",
            Dict(reading.roots),
            storage_ids,
            find_storages(source, records, storage_ids, progress),
            metadata._replace(versions=(*metadata.versions, *_texts(archive))),
            doubts=reading.doubts,
            flags={NoteKind.BROKEN_OFF: reading.has_broken},
            more=_inside(records),
            pickles=pickles,
            data=bytes(reading.large),
        )
