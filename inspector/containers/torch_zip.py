"""Zips: that of torch.save, which most are, and the other archives, told by the names of their records."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from inspector.containers.base import Entry, Find, Format
from inspector.containers.container import Container, Extents
from inspector.containers.source import Source
from inspector.containers.unread import read_as_tar
from inspector.containers.zip.archive import open_torchzip, zip_extents
from inspector.containers.zip.directory import LOCAL_SIGNATURE
from inspector.containers.zip.records import PICKLE, ZipFormat, finder_of, records_of
from inspector.errors import ContainerError
from inspector.limits import Limits
from inspector.overriding import override
from inspector.progress import Progress

_SHARDS = ".distcp"
_CONSTANTS = "constants.pkl"  # torch's own mark of TorchScript: `_is_torchscript_zip`

ARCHIVES = (
    Entry("torchscript", "torchscript:TorchScript"),
    Entry("pt2", "pt2:ExportedProgram"),
    Entry("package", "package:Package"),
    Entry("npz", "npz:Npz"),
    Entry("stable-baselines3", "sb3:StableBaselines3"),
)
"""The other archives, in the order in which they are asked."""


def _archives() -> Iterator[ZipFormat]:
    return (cast("ZipFormat", entry.format()) for entry in ARCHIVES)


class TorchZip(Format):
    """The format of torch.save since 1.6."""

    name = "zip"
    what = "a torch.save zip"
    is_read_through_gzip = True
    torch_loads = True
    has_records = True
    is_archive = True

    @override
    def matches(self, source: Source) -> bool:
        return source.read_upto(0, len(LOCAL_SIGNATURE)) == LOCAL_SIGNATURE

    @override
    def kind_of(self, source: Source, limits: Limits, progress: Progress) -> str:
        """Return which archive a zip is: that of torch.save where nothing says that it is another.

        Of one whose directory is damaged nothing is known, and the reader sees to it.
        """
        source.kept = None
        try:
            records = records_of(source, limits, progress)
        except ContainerError:
            return "distcp" if _is_shard(source) else self.name
        if str(source.path).endswith(_SHARDS) or (records.directory.doubts and _is_shard(source)):
            source.kept = None
            return "distcp"
        # torch.load dispatches TorchScript alone; of the others it loads the data.pkl, if there is one.
        if records.get(PICKLE) is not None and not records.lists(_CONSTANTS):
            return self.name
        return next((form.name for form in _archives() if form.matches_records(records)), self.name)

    @override
    def read(self, source: Source, limits: Limits, progress: Progress) -> Container:
        return open_torchzip(source, limits, progress, _archives())[0]

    @override
    def finder(self, source: Source) -> Find:
        return finder_of(source, records_of(source))

    @override
    def extents(self, source: Source, limits: Limits, progress: Progress) -> Extents:
        return zip_extents(source, limits, progress, _archives())

    @override
    def read_rival(self, source: Source, limits: Limits, progress: Progress) -> bool:
        return read_as_tar(source, limits, progress)


def _is_shard(source: Source) -> bool:
    from inspector.containers.dcp import ends_in_row  # noqa: PLC0415 - healthy zips never need it

    return str(source.path).endswith(_SHARDS) or ends_in_row(source)
