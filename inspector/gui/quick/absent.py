"""What stands in for modules that PySide imports at its start and hardly uses.

PySide reads a zip of its own with `zipfile`, which brings six modules along, and keeps `traceback` for errors
that do not happen; `pathlib` keeps `urllib.parse` for addresses. While PySide is imported, modules of these
names stand there that import the real ones when something is asked of them. A zip as PySide makes it is read
here, any other by `zipfile`.
"""

from __future__ import annotations

import os
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from io import BytesIO
from struct import error as StructError  # noqa: N812 - a class
from struct import unpack_from
from types import ModuleType, SimpleNamespace
from typing import IO, Any

from inspector.overriding import override

_END, _ENTRY, _LOCAL = b"PK\5\6", b"PK\1\2", b"PK\3\4"
_END_SIZE, _ENTRY_SIZE, _LOCAL_SIZE = 22, 46, 30
_STORED, _DEFLATED = 0, 8


@contextmanager
def put_off(names: tuple[str, ...]) -> Iterator[None]:
    """Have modules stand in for those of some names that were not imported yet, for a while."""
    put = {name: _Later(name) for name in names if name not in sys.modules}
    sys.modules |= put
    try:
        yield
    finally:
        for name, module in put.items():
            if sys.modules.get(name) is module:
                del sys.modules[name]


class _Later(ModuleType):
    """Imports the module of its name when something is asked of it."""

    @override
    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # the import system's questions
            raise AttributeError(name)
        return _STAND_INS.get(f"{self.__name__}.{name}") or getattr(_import_real(self.__name__), name)


def _import_real(name: str) -> Any:  # noqa: ANN401 - any module
    if isinstance(sys.modules.get(name), _Later):
        del sys.modules[name]
    return import_module(name)


def _quote(given: bytes, *safe: str) -> str:
    """Stand in for what `pathlib` keeps of `urllib.parse`."""
    return str(_import_real("urllib.parse").quote_from_bytes(given, *safe))


def _dedent(text: str) -> str:
    """Stand in for what a warning of PySide's needs of `textwrap`."""
    return str(_import_real("textwrap").dedent(text))


def open_zip(stream: BytesIO) -> Any:  # noqa: ANN401 - or a `ZipFile`
    """Open a zip as `zipfile.ZipFile` does."""
    if not os.environ.get("SBK_EMBED"):  # it asks PySide to unpack its zip
        try:
            return _PlainZip(stream.getvalue())
        except (ValueError, StructError):
            pass
    return _import_real("zipfile").ZipFile(stream)


class _PlainZip:
    """A zip without a comment, passwords or more than 64 K of anything."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        count, _, at = unpack_from("<HII", data, _expect(data, len(data) - _END_SIZE, _END) + 10)
        self._entries: dict[str, tuple[int, int, int]] = {}
        for _ in range(count):
            flags, method = unpack_from("<HH", data, _expect(data, at, _ENTRY) + 8)
            size, _, *lengths = unpack_from("<IIHHH", data, at + 20)
            (place,) = unpack_from("<I", data, at + 42)
            if flags & ~0x2 or method not in (_STORED, _DEFLATED):  # how hard it was packed is no matter
                raise ValueError("not as PySide makes it")
            _expect(data, place, _LOCAL)
            name = data[at + _ENTRY_SIZE : at + _ENTRY_SIZE + lengths[0]].decode("ascii")
            self._entries[name] = method, size, place
            at += _ENTRY_SIZE + sum(lengths)
        self.filelist = [SimpleNamespace(filename=name) for name in self._entries]

    def open(self, name: str, _: str = "r") -> IO[bytes]:
        """Open a file in the zip."""
        method, size, place = self._entries[name]
        begin = place + _LOCAL_SIZE + sum(unpack_from("<HH", self._data, place + 26))
        packed = self._data[begin : begin + size]
        return BytesIO(packed if method == _STORED else zlib.decompress(packed, -zlib.MAX_WBITS))


def _expect(data: bytes, at: int, mark: bytes) -> int:
    if at < 0 or not data.startswith(mark, at):
        raise ValueError("not as PySide makes it")
    return at


_STAND_INS: dict[str, Callable[..., Any]] = {
    "textwrap.dedent": _dedent,
    "urllib.parse.quote_from_bytes": _quote,
    "zipfile.ZipFile": open_zip,
}
