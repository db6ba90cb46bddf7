"""A part of a file, read as a file of its own."""

from __future__ import annotations

from inspector.containers.source import Source
from inspector.errors import DamagedError
from inspector.overriding import override


class Window(Source):
    """Some bytes of another source, which stays open elsewhere."""

    def __init__(self, whole: Source, offset: int, nbytes: int) -> None:
        """Read so many bytes from an offset on."""
        if offset < 0 or nbytes < 0 or offset + nbytes > whole.nbytes:
            raise DamagedError(
                "the file ends too early",
                where=f"{whole.path}: {nbytes:,} bytes wanted from byte {offset:,} of {whole.nbytes:,} on",
                remedy="the file is incomplete: fetch or copy it again",
            )
        self._whole = whole
        self._offset = offset
        super().__init__(whole.path, nbytes)

    @override
    def read_at(self, offset: int, nbytes: int) -> bytes:
        return self._whole.read_at(self._offset + offset, nbytes)
