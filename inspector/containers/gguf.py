"""GGUF, the format of llama.cpp: metadata, then a table of tensors, then their bytes.

See `docs/gguf.md` of ggml. Sizes are written with the fastest dimension first; here they stand as torch has
them. Nothing in such a file is a program, and nothing says a device.
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections.abc import Callable
from math import prod
from typing import NamedTuple

from inspector.containers.base import Cannot, Find, Format
from inspector.containers.codings import PLAIN, coded
from inspector.containers.container import Container, Extent, StoredBytes, losses
from inspector.containers.element_types import GGML_TYPES, BlockType, unknown_ggml_type
from inspector.containers.notes import shown
from inspector.containers.persistent_ids import NO_DEVICE, StorageId
from inspector.containers.source import Source
from inspector.containers.unread import read_as_other_pickle
from inspector.errors import ContainerError, DamagedError, UnsupportedFormatError
from inspector.limits import DEFAULT_LIMITS, Limits
from inspector.overriding import override
from inspector.pickles.values import Dict, StoredTensor, Value
from inspector.progress import Progress

MAGIC = b"GGUF"
_VERSIONS = (2, 3)
_ALIGNMENT = "general.alignment"
_DEFAULT_ALIGNMENT = 32
_MOST_ALIGNMENT = 1 << 20
_MOST_DIMENSIONS = 8
_MOST_SHOWN = 24  # elements of an array
_MOST_DEPTH = 4
_MOST_TEXT_NBYTES = 1 << 20
_MOST_KEY_NBYTES = 1 << 16
_WINDOW_NBYTES = 1 << 18
_MOST = (1 << 63) - 1
_SWAPPED = 1 << 16  # of a version, as it reads in the wrong byte order
_STRING, _ARRAY = 8, 9
_NUMBERS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_FETCH = "fetch or copy the file again"


class _Cursor:
    def __init__(self, source: Source, order: str, look: Callable[[int], None]) -> None:
        self.source = source
        self.order = order
        self.pos = 0
        self._look = look
        self._start = 0
        self._window = b""

    def take(self, nbytes: int) -> bytes:
        at = self.pos - self._start
        if at < 0 or at + nbytes > len(self._window):
            self._window = self.source.read_upto(self.pos, max(nbytes, _WINDOW_NBYTES))
            self._start, at = self.pos, 0
            if len(self._window) < nbytes:
                raise self._ended()
        self._look(1)
        self.pos += nbytes
        return self._window[at : at + nbytes]

    def number(self, code: str) -> int | float | bool:
        form = self.order + code
        found: int | float | bool = struct.unpack(form, self.take(struct.calcsize(form)))[0]
        return found

    def count(self, code: str = "Q") -> int:
        return int(self.number(code))

    def text(self, most: int) -> str:
        nbytes = self.count()
        if nbytes > most:
            start = self.take(_MOST_SHOWN) if self.source.reaches(self.pos + nbytes) else b""
            self.skip(nbytes - len(start))
            return f"{start.decode('utf-8', 'replace')}... ({nbytes:,} bytes)"
        return self.take(nbytes).decode("utf-8", "surrogateescape")

    def skip(self, nbytes: int) -> None:
        if not self.source.reaches(self.pos + nbytes):
            raise self._ended()
        self.pos += nbytes

    def _ended(self) -> DamagedError:
        what = "the file ends in the middle of its description"
        return DamagedError(what, where=f"byte {self.pos:,}", remedy=_FETCH)


class _Entry(NamedTuple):
    name: str
    kind: BlockType
    shape: tuple[int, ...]
    offset: int


def open_gguf(source: Source, limits: Limits, progress: Progress) -> tuple[Container, dict[str, Extent]]:
    """Take a GGUF file apart, and return where numbers stand that have the other byte order."""
    look = limits.counted(progress.advance).look
    cursor = _Cursor(source, "<", look)
    cursor.pos = len(MAGIC)
    version = cursor.count("I")
    if version and not version % _SWAPPED:
        cursor.order, cursor.pos = ">", len(MAGIC)
        version = cursor.count("I")
    if version not in _VERSIONS:
        raise UnsupportedFormatError(
            f"this is a GGUF model of version {version}, and versions 2 and 3 are read",
            where=source.path,
            remedy="convert it with a current llama.cpp",
        )
    tensors, pairs = cursor.count(), cursor.count()
    metadata = [(cursor.text(_MOST_KEY_NBYTES), _value(cursor, cursor.count("I"))) for _ in range(pairs)]
    if tensors > limits.storages:
        raise ContainerError(f"the file has more than {limits.storages:,} tensors", where=source.path)
    entries = [_entry(cursor) for _ in range(tensors)]
    return _container(source, cursor, version, metadata, entries)


def _value(cursor: _Cursor, kind: int, depth: int = 0) -> Value:
    """Read a value of the metadata; of a long array the first elements, and how many there are."""
    if kind in _NUMBERS:
        return cursor.number(_NUMBERS[kind])
    if kind == _STRING:
        return cursor.text(_MOST_TEXT_NBYTES)
    if kind != _ARRAY or depth >= _MOST_DEPTH:
        what = f"a value of the metadata has the type {kind}, which is none of GGUF"
        raise ContainerError(what, where=f"byte {cursor.pos:,}", remedy=_FETCH)
    inner, count = cursor.count("I"), cursor.count()
    shown: list[Value] = [_value(cursor, inner, depth + 1) for _ in range(min(count, _MOST_SHOWN))]
    left = count - len(shown)
    if left and inner in _NUMBERS:
        cursor.skip(left * struct.calcsize(_NUMBERS[inner]))
    else:
        for _ in range(left):
            if inner == _STRING:
                cursor.skip(cursor.count())
            else:
                _value(cursor, inner, depth + 1)
    return [*shown, f"... {left:,} more"] if left else shown


def _entry(cursor: _Cursor) -> _Entry:
    name = cursor.text(_MOST_KEY_NBYTES)
    where = shown(name)
    dimensions = cursor.count("I")
    if dimensions > _MOST_DIMENSIONS:
        raise ContainerError(f"a tensor has {dimensions:,} dimensions", where=where, remedy=_FETCH)
    shape = tuple(cursor.count() for _ in range(dimensions))[::-1]
    number = cursor.count("I")
    kind = GGML_TYPES.get(number) or unknown_ggml_type(number)
    if prod(shape) > _MOST:
        raise ContainerError("a tensor has more elements than can be counted", where=where, remedy=_FETCH)
    return _Entry(name, kind, shape, cursor.count())


def _gap_behind(offset: int, ends: list[int], nbytes: int) -> int:
    """Return how many bytes there are from a tensor to the next, or to the end of the file."""
    at = bisect_right(ends, offset)
    end = ends[at] if at < len(ends) else nbytes
    return max(min(end, nbytes) - offset, 0)


def _container(
    source: Source,
    cursor: _Cursor,
    version: int,
    metadata: list[tuple[str, Value]],
    entries: list[_Entry],
) -> tuple[Container, dict[str, Extent]]:
    known = dict(metadata).get(_ALIGNMENT, _DEFAULT_ALIGNMENT)
    alignment = known if type(known) is int and 0 < known <= _MOST_ALIGNMENT else _DEFAULT_ALIGNMENT
    start = -(-cursor.pos // alignment) * alignment
    storage_ids: dict[str, StorageId] = {}
    stored: dict[str, StoredBytes] = {}
    extents: dict[str, Extent] = {}
    pairs: list[tuple[Value, Value]] = []
    ends = sorted({entry.offset for entry in entries})
    unknown: dict[str, None] = {}
    for number, entry in enumerate(entries):
        key, kind = str(number), entry.kind
        numel = prod(entry.shape)
        if kind.numel:
            nbytes = -(-numel // kind.numel) * kind.nbytes
        else:  # up to the next tensor, with what fills the gap before it
            nbytes = _gap_behind(entry.offset, ends, source.nbytes - start)
            unknown[kind.name.rpartition("_")[2]] = None
        is_plain = kind.numel == 1
        own = (kind.name, kind.nbytes, numel, False) if is_plain else ("uint8", 1, nbytes, True)
        storage_ids[key] = StorageId(key, own[0], own[1], NO_DEVICE, own[2], untyped=own[3], view=None)
        pairs.append((entry.name, StoredTensor(key, kind.name, entry.shape)))
        place = start + entry.offset
        if not source.reaches(place + nbytes):
            continue
        is_swapped = cursor.order == ">" and is_plain and kind.nbytes > 1
        stored[key] = StoredBytes(0, None if is_swapped else place, nbytes)
        if is_swapped:
            extents[key] = Extent(place, nbytes, nbytes, coded(PLAIN, kind.nbytes), 0)
    root = Dict([("metadata", Dict([(key, value) for key, value in metadata])), ("tensors", Dict(pairs))])
    order = " (big-endian)" if cursor.order == ">" else ""
    container = Container(
        path=source.path,
        format="gguf",
        file_nbytes=source.file_nbytes,
        root=root,
        storage_ids=storage_ids,
        stored=stored,
        versions=(("gguf", f"{version}{order}"),),
        notes=tuple(losses(storage_ids, stored)),
        refusal=f"ValueError: {next(iter(unknown))} is not a valid GGMLQuantizationType" if unknown else "",
    )
    return container, extents


class Gguf(Format):
    """What llama.cpp and its relatives read."""

    name = "gguf"
    what = "a GGUF model"
    loader = "gguf.GGUFReader"
    copied_as = "state-dict"
    cannot = (
        Cannot(
            ("remap", "in-place"),
            "a GGUF file has no devices, so there are none to change",
            "llama.cpp and its relatives are told a device when they load it",
        ),
    )

    @override
    def matches(self, source: Source) -> bool:
        return source.read_upto(0, len(MAGIC)) == MAGIC

    @override
    def read(self, source: Source, limits: Limits, progress: Progress) -> Container:
        return open_gguf(source, limits, progress)[0]

    @override
    def finder(self, source: Source) -> Find:
        """Return what finds the bytes of a tensor of a big-endian file."""
        return open_gguf(source, DEFAULT_LIMITS, Progress())[1].get

    @override
    def read_rival(self, source: Source, limits: Limits, progress: Progress) -> bool:
        return read_as_other_pickle(source, limits, progress)
