"""Tar archives: the format of torch 0.1, which `tar_archive` reads, and those of others."""

from __future__ import annotations

from inspector.containers.base import Format
from inspector.containers.container import Container
from inspector.containers.source import Source
from inspector.containers.unread import passes_for_tar, read_as_pickles
from inspector.limits import Limits
from inspector.overriding import override
from inspector.progress import Progress


class Tar(Format):
    """The format of torch.save before 0.2."""

    name = "tar"
    what = "a tar checkpoint of torch 0.1"
    has_tags = True
    torch_loads = True
    loads_restricted = False
    era = "the format of torch before 0.2"

    @override
    def matches(self, source: Source) -> bool:
        if not passes_for_tar(source):
            return False
        # `tarfile` takes longer to import than most files to read.
        from inspector.containers.tar_archive import INFO, NEEDED, list_members  # noqa: PLC0415 - see above

        return any(info.name in {INFO, *NEEDED} for info in list_members(source))

    @override
    def read(self, source: Source, limits: Limits, progress: Progress) -> Container:
        from inspector.containers.tar_archive import read_tar  # noqa: PLC0415 - as above

        return read_tar(source, limits, progress)

    @override
    def read_rival(self, source: Source, limits: Limits, progress: Progress) -> bool:
        return read_as_pickles(source, limits, progress)


class OtherTar(Format):
    """Any other tar archive."""

    name = "tar"
    what = "a tar archive"
    is_read = False
    is_foreign = True
    remedy = "unpack it with tar xf, and open what is inside"

    @override
    def matches(self, source: Source) -> bool:
        return passes_for_tar(source)
