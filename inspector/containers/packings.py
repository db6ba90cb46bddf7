"""Files that are compressed as a whole: by which program, and what inflates them.

joblib compresses with most of these (`_COMPRESSORS` in `joblib/numpy_pickle.py`), people with gzip, xz, zstd.
zlib can be copied in the middle of a stream, so that `Inflated` goes back; the others begin again.
"""

from __future__ import annotations

import bz2
import lzma
import zlib
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from typing import Any, NamedTuple, Protocol

from inspector.containers.inflated import PART_SHIFT, Inflated
from inspector.errors import UnsupportedFormatError
from inspector.overriding import override

_PACKED_NBYTES = 1 << 18
_PLAIN_NBYTES = 1 << 20
_HELD_NBYTES = 4 << 20
_MOST_EMPTY_STEPS = 1000
_ZFILE = b"ZF0x"
ZSTD = b"\x28\xb5\x2f\xfd"
_ZFILE_NBYTES = 21  # `ZF` and 19 places for the size, then maybe a blank
_ZLIB = (b"x\x01", b"x^", b"x\x9c", b"x\xda")
_LZMA_PROPERTIES = b"]\0\0"

Read = Callable[[int, int], bytes]
Look = Callable[[int], None]


class Inside(Protocol):
    """What reads the inside of a compressed file."""

    def read_upto(self, offset: int, nbytes: int) -> bytes:
        """Return at most so many bytes; raise `zlib.error` where the stream is damaged."""


class _Decompressor(Protocol):
    @property
    def eof(self) -> bool: ...
    @property
    def needs_input(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...

    def decompress(self, data: bytes, max_length: int = -1) -> bytes: ...


class Packing(NamedTuple):
    """One way of compressing."""

    name: str
    matches: Callable[[bytes], bool]
    open: Callable[[Read, Look | None], Inside]
    unpack: str = ""  # the command that unpacks a file; empty where there is none
    opener: str = ""  # what opens such a file in Python, module and function; empty where nothing does


class Forward:
    """Reads the inside of a stream that can only be read from its start on; going far back begins again."""

    def __init__(self, read: Read, make: Callable[[], _Decompressor], look: Look | None) -> None:
        self._read = read
        self._make = make
        self._look = look
        self._begin()

    def _begin(self) -> None:
        self._inflate = self._make()
        self._taken = 0
        self._packed = b""
        self._start = 0  # inflated offset of what is held
        self._held = b""

    def read_upto(self, offset: int, nbytes: int) -> bytes:
        """Return at most `nbytes` inflated bytes; fewer where the stream ends."""
        if offset < self._start:
            self._begin()
        parts = [self._held]
        reached = self._start + len(self._held)
        while reached < offset + nbytes and (plain := self._some()):
            parts.append(plain)
            reached += len(plain)
            if reached < offset:  # nothing of it was asked for; a part is held for small steps back
                parts = [b"".join(parts)[-_HELD_NBYTES:]]
            if self._look is not None:
                self._look(len(plain) >> PART_SHIFT)
        data = b"".join(parts)
        first = offset - (reached - len(data))
        found = data[first : first + nbytes]
        self._held = data[-max(_HELD_NBYTES, len(found)) :]
        self._start = reached - len(self._held)
        return found

    def _some(self) -> bytes:
        for _ in range(_MOST_EMPTY_STEPS):
            if self._inflate.eof:
                self._packed = self._inflate.unused_data or self._more()
                if not self._packed.strip(b"\0"):
                    break
                self._inflate = self._make()
            if not self._packed and self._inflate.needs_input:
                self._packed = self._more()
                if not self._packed:
                    break
            packed, self._packed = self._packed, b""
            try:
                plain = self._inflate.decompress(packed, _PLAIN_NBYTES)
            except (OSError, EOFError, ValueError, RuntimeError, lzma.LZMAError) as error:
                raise zlib.error(str(error)) from error
            if plain:
                return plain
        return b""

    def _more(self) -> bytes:
        data = self._read(self._taken, _PACKED_NBYTES)
        self._taken += len(data)
        return data


class _Fed:
    def __init__(self, read: Read) -> None:
        self._read = read
        self._taken = 0

    def read(self, nbytes: int) -> bytes:
        """Return the next bytes, or fewer at the end."""
        data = self._read(self._taken, nbytes)
        self._taken += len(data)
        return data


class Pulled(Forward):
    """Reads forwards with a library that takes compressed bytes by itself, and returns as many as asked for.

    What such a library makes of a few bytes has no bound where it is handed them instead.
    """

    def __init__(self, read: Read, make: Callable[[_Fed], _Reader], look: Look | None) -> None:
        self._open = make
        super().__init__(read, _no_decompressor, look)

    @override
    def _begin(self) -> None:
        self._reader = self._open(_Fed(self._read))
        self._start = 0
        self._held = b""

    @override
    def _some(self) -> bytes:
        return self._reader.read(_PLAIN_NBYTES)


class _Reader(Protocol):
    def read(self, size: int, /) -> bytes: ...


class _Zstandard:
    """A reader of the package `zstandard`; its window is bounded by its own default, 128 MB."""

    def __init__(self, module: Any, source: _Fed) -> None:  # noqa: ANN401 - it need not be installed
        self._error = module.ZstdError
        inflate = module.ZstdDecompressor()
        self._stream = inflate.stream_reader(source, read_size=_PACKED_NBYTES, read_across_frames=True)

    def read(self, size: int, /) -> bytes:
        """Return at most so many bytes."""
        try:
            found: bytes = self._stream.read(size)
        except self._error as error:
            raise zlib.error(str(error)) from error
        return found


def _no_decompressor() -> _Decompressor:
    raise NotImplementedError  # `Pulled` has a reader in its place


def _is_zlib(head: bytes) -> bool:
    """Match zlib by trying it: its first two bytes may be letters."""
    if not head.startswith(_ZLIB) or head.isascii():
        return False
    try:
        return bool(zlib.decompressobj().decompress(head, 1))
    except zlib.error:
        return False


def _is_lzma(head: bytes) -> bool:
    if not head.startswith(_LZMA_PROPERTIES):
        return False
    try:
        return bool(lzma.LZMADecompressor(lzma.FORMAT_ALONE).decompress(head, 1))
    except lzma.LZMAError:
        return False


def _begins(magic: bytes) -> Callable[[bytes], bool]:
    return lambda head: head.startswith(magic)


def _forward(make: Callable[[], _Decompressor]) -> Callable[[Read, Look | None], Inside]:
    return lambda read, look: Forward(read, make, look)


def _open_zfile(read: Read, look: Look | None) -> Inside:
    """Open a file of joblib before 0.10, whose header may be followed by a blank."""
    start = _ZFILE_NBYTES + (read(_ZFILE_NBYTES, 1) == b" ")
    return Inflated(lambda offset, nbytes: read(start + offset, nbytes), look, wbits=zlib.MAX_WBITS)


def _imported(module: str, make: str) -> Callable[[], _Decompressor]:
    def made() -> _Decompressor:
        found: Callable[[], _Decompressor] = getattr(import_module(module), make)
        return found()

    return made


def _needing(name: str, module: str, make: str) -> Callable[[Read, Look | None], Inside]:
    """Return what opens a stream with a package that need not be there."""

    def open_with(read: Read, look: Look | None) -> Inside:
        try:
            import_module(module)
        except ImportError:
            raise _not_installed(name, module.partition(".")[0]) from None
        return Forward(read, _imported(module, make), look)

    return open_with


_ZSTD_MODULES = ("compression.zstd", "backports.zstd")


def can_open_zstd() -> bool:
    """Return whether anything is installed that inflates zstd."""
    for name in (*_ZSTD_MODULES, "zstandard"):
        with suppress(ImportError):
            import_module(name)
            return True
    return False


def _open_zstd(read: Read, look: Look | None) -> Inside:
    """Open a stream of zstd with Python's own library, where it is new enough, or a package."""
    for name in _ZSTD_MODULES:
        with suppress(ImportError):
            import_module(name)
            return Forward(read, _imported(name, "ZstdDecompressor"), look)
    with suppress(ImportError):
        module = import_module("zstandard")
        return Pulled(read, lambda source: _Zstandard(module, source), look)
    raise _not_installed("zstd", "zstandard")


def _not_installed(name: str, package: str) -> UnsupportedFormatError:
    return UnsupportedFormatError(
        f"this file is compressed with {name}, and the package {package}, which inflates it, is not "
        "installed here",
        remedy=f"unpack it with un{name} first",
    )


PACKINGS: tuple[Packing, ...] = (
    Packing("xz", _begins(b"\xfd7zXZ\0"), _forward(lzma.LZMADecompressor), "unxz", "lzma.open"),
    Packing("bzip2", _begins(b"BZh"), _forward(bz2.BZ2Decompressor), "bunzip2", "bz2.open"),
    Packing("lzma", _is_lzma, _forward(lzma.LZMADecompressor), "unlzma", "lzma.open"),
    Packing(
        "zlib",
        _is_zlib,
        lambda read, look: Inflated(read, look, wbits=zlib.MAX_WBITS),
    ),
    Packing("joblib's zlib", _begins(_ZFILE), _open_zfile),
    Packing(
        "lz4",
        _begins(b"\x04\x22\x4d\x18"),
        _needing("lz4", "lz4.frame", "LZ4FrameDecompressor"),
        "unlz4",
        "lz4.frame.open",
    ),
    Packing("zstd", _begins(ZSTD), _open_zstd, "unzstd", "zstandard.open"),
)


def packing_of(head: bytes) -> Packing | None:
    """Return how a file is compressed that begins so; None where it is not in one of these ways."""
    return next((one for one in PACKINGS if one.matches(head)), None)
