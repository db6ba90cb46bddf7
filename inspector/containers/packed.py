"""Files that are compressed as a whole: their inside as a source."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

from inspector.containers.inflated import MAGIC, Inflated
from inspector.containers.source import BytesSource, FileSource, Source, Stamp
from inspector.errors import DamagedError, TooLargeError
from inspector.limits import DEFAULT_LIMITS, Limits
from inspector.overriding import override

if TYPE_CHECKING:
    from inspector.containers.packings import Inside, Packing


_LOOK_NBYTES = 256
# What files begin with that are compressed as a whole, see `packings`.
_PACKED = (MAGIC, b"x", b"BZh", b"\xfd7z", b"]\0\0", b"ZF0x", b"\x04\x22\x4d\x18", b"\x28\xb5\x2f\xfd")


_MEASURED_NBYTES = 4 << 20


class PackedSource(Source):
    """The inside of a source that is compressed as a whole.

    torch.load does not open such files by their path, but people compress checkpoints and hand them on.
    """

    gzipped = True

    def __init__(
        self, packed: Source, limits: Limits = DEFAULT_LIMITS, packing: Packing | None = None
    ) -> None:
        """Read the inside, of gzip without a packing, up to a limit, and do not take it to end there."""
        self._packed = packed
        super().__init__(packed.path, limits.inflated_nbytes, packed.status)
        self.file_nbytes = packed.file_nbytes
        look = None if limits.work is None else limits.work.look
        self.packing, self.unpack = ("gzip", "gunzip") if packing is None else (packing.name, packing.unpack)
        self._inside: Inside = (Inflated if packing is None else packing.open)(packed.read_at, look)

    @override
    def read_at(self, offset: int, nbytes: int) -> bytes:
        try:
            return self._inside.read_upto(offset, nbytes)
        except zlib.error as error:
            raise DamagedError(
                f"the {self.packing} stream is damaged",
                where=f"byte {offset:,}: {error}",
                remedy="fetch or copy the file again",
            ) from error

    @override
    def _read_last(self, offset: int, nbytes: int) -> bytes:
        data = super()._read_last(offset, nbytes)
        if len(data) == nbytes and self.read_at(self.nbytes, 1):
            raise TooLargeError(
                f"the file holds more than {self.nbytes:,} bytes once unpacked, and no more are read",
                where=self.path,
                remedy=f"unpack it{self.unpack and ' with '}{self.unpack} first",
            )
        return data

    @override
    def measure(self) -> None:
        end = 0
        while data := self.read_upto(end, _MEASURED_NBYTES):
            end += len(data)
        self.nbytes = end

    @override
    def reaches(self, end: int) -> bool:
        return bool(self.read_upto(end - 1, 1))

    @override
    def identity(self) -> Stamp | None:
        return self._packed.identity()

    @override
    def close(self) -> None:
        self._packed.close()


def inflated_part(source: Source, offset: int, length: int, most: int) -> Source:
    """Return the inside of a part of a file that is compressed by itself, in memory."""
    from inspector.containers.packings import packing_of  # noqa: PLC0415 - few files are packed otherwise

    if length > most:
        raise TooLargeError(f"a part of {length:,} bytes holds more than {most:,}", where=source.path)
    packed = BytesSource(source.read(offset, length), source.path)
    packing = packing_of(packed.read_upto(0, _LOOK_NBYTES))
    if packing is None:
        raise DamagedError("a part is not compressed as it should be", where=source.path)
    data = PackedSource(packed, packing=packing).read_upto(0, most + 1)
    if len(data) > most:
        raise TooLargeError(f"a part holds more than {most:,} bytes once unpacked", where=source.path)
    return BytesSource(data, source.path)


def inflated_start(source: Source, nbytes: int) -> bytes:
    """Return the first bytes of the inside of a source; of what is not compressed, its own."""
    from inspector.containers.packings import packing_of  # noqa: PLC0415 - as above

    packing = packing_of(source.read_upto(0, _LOOK_NBYTES))
    return (source if packing is None else PackedSource(source, packing=packing)).read_upto(0, nbytes)


def unpacked(source: Source, head: bytes, limits: Limits) -> Source:
    """Return the inside of a source that begins so, or the source where it only looks packed."""
    if head.startswith(MAGIC):
        return PackedSource(source, limits)
    from inspector.containers.packings import packing_of  # noqa: PLC0415 - few are packed in other ways

    packing = packing_of(head)
    return source if packing is None else PackedSource(source, limits, packing)


def looked_through(source: Source, limits: Limits = DEFAULT_LIMITS) -> Source:
    """Return a source, or its inside where it is compressed as a whole; it is closed where that fails."""
    try:
        head = source.read_upto(0, _LOOK_NBYTES)
        if not head.startswith(_PACKED):
            return source
        return unpacked(source, head, limits)
    except BaseException:
        source.close()
        raise


def open_source(path: str, limits: Limits = DEFAULT_LIMITS) -> Source:
    """Open a file for reading, looking through gzip."""
    return looked_through(FileSource(path), limits)
