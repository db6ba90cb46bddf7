"""One array of NumPy in a file of its own, as `numpy.save` writes it.

Its header (`_read_array_header` in NumPy's `numpy/lib/_format_impl.py`) is a literal of Python, parsed and
never run. An array of objects is a pickle behind it (`read_array`), which `numpy.load` refuses unless it is
told to run what that names. What torch could hold is a tensor where its bytes lie; no array has a device.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from math import prod
from typing import NamedTuple

from inspector.containers.base import Cannot, Find, Format
from inspector.containers.codings import PLAIN, coded
from inspector.containers.container import Container, Extent, StoredBytes, losses
from inspector.containers.notes import Note, NoteKind, listed
from inspector.containers.numpy_types import (
    UNKNOWN_TO_NUMPY,
    VOIDS,
    ArrayType,
    array_call,
    contiguous_stride,
    parse_shape,
    parse_type,
    steps_of,
)
from inspector.containers.persistent_ids import NO_DEVICE, StorageId
from inspector.containers.source import Source
from inspector.containers.zip.directory import STORED
from inspector.errors import ContainerError, DamagedError, UnsupportedFormatError
from inspector.limits import DEFAULT_LIMITS, Limits
from inspector.overriding import override
from inspector.pickles.machine import growing_machine
from inspector.pickles.values import Blob, Dict, StoredTensor, Value
from inspector.progress import Progress
from inspector.units import cut_text, escape_text

# --- the header ---------------------------------------------------------------------------------------------


MAGIC = b"\x93NUMPY"
_LENGTHS = {1: 2, 2: 4, 3: 4}
"""How many bytes the length of the header takes, by version."""
_KEYS = {"descr", "fortran_order", "shape"}
_MOST_NBYTES = 1 << 20
_MOST_TAKEN_NBYTES = 10_000
"""Longer headers are refused by `numpy.load`, which parses them with more than it trusts."""
_LONG = re.compile(r"(?<=[0-9])L\b")  # as Python 2 wrote its integers
_MOST_CHARS = 60
_FETCH = "fetch or copy the file again"


class Header(NamedTuple):
    """What a header says."""

    version: str
    type: ArrayType
    shape: tuple[int, ...]
    is_fortran: bool
    start: int  # where the elements begin
    is_long: bool  # whether `numpy.load` refuses it for its length


def read_header(source: Source, look: Callable[[int], None]) -> Header:
    """Read the header of a source that begins with the magic string."""
    head = source.read_upto(0, 12)
    version = (head[6], head[7]) if len(head) >= 10 and head.startswith(MAGIC) else (0, 0)
    width = _LENGTHS.get(version[0])
    if width is None or version[1]:
        raise UnsupportedFormatError(
            f"this is a NumPy array of version {version[0]}.{version[1]}, and 1.0, 2.0 and 3.0 are read",
            where=source.path,
            remedy=_FETCH,
        )
    start = 8 + width
    nbytes = int.from_bytes(head[8:start], "little")
    if nbytes > _MOST_NBYTES:
        raise DamagedError(f"the header of an array says that it has {nbytes:,} bytes", remedy=_FETCH)
    raw = source.read(start, nbytes)
    look(nbytes >> 1)
    literal = _parsed(raw.decode("latin-1" if version[0] < 3 else "utf-8", "replace"), version[0])
    if not isinstance(literal, dict) or set(literal) != _KEYS or type(literal["fortran_order"]) is not bool:
        raise _broken("it does not say type, order and shape")
    shape = parse_shape(literal["shape"])
    if shape is None:
        raise _broken(f"its shape is {_shown(literal['shape'])}")
    kind = parse_type(literal["descr"])
    if kind is None:
        raise UnsupportedFormatError(
            f"the element type of an array is not known here: {_shown(literal['descr'])}", where=source.path
        )
    is_long = nbytes > _MOST_TAKEN_NBYTES
    number = f"{version[0]}.{version[1]}"
    return Header(number, kind, shape, literal["fortran_order"], start + nbytes, is_long)


def _parsed(text: str, version: int) -> object:
    try:
        return ast.literal_eval((_LONG.sub("", text) if version < 3 else text).strip())
    except (ValueError, SyntaxError, RecursionError, MemoryError, TypeError) as error:
        raise _broken(str(error)) from None


def _broken(why: str) -> DamagedError:
    shown = escape_text(cut_text(why, 2 * _MOST_CHARS))
    return DamagedError(f"the header of an array cannot be read: {shown}", remedy=_FETCH)


def _shown(found: object) -> str:
    return escape_text(cut_text(repr(found)[: 4 * _MOST_CHARS], _MOST_CHARS))


# --- arrays as tensors --------------------------------------------------------------------------------------


class Arrays:
    """Lists arrays, and where their bytes are."""

    def __init__(self, limits: Limits) -> None:
        self.storage_ids: dict[str, StorageId] = {}
        self.stored: dict[str, StoredBytes] = {}
        self.extents: dict[str, Extent] = {}  # of bytes that do not stand in the file as they are meant
        self.untyped: dict[str, list[str]] = {}  # the names of arrays by the code of elements without a type
        self.unreadable = ""  # the code of a type that NumPy writes and does not read
        self.is_swapped = False  # whether numbers of any stand the other way round, which torch does not take
        self._limits = limits

    def add(self, key: str, header: Header, place: Extent) -> Value:
        """Return an array as a value."""
        kind = header.type
        nbytes = kind.nbytes * prod(header.shape)
        if kind.code in VOIDS:
            self.untyped.setdefault(kind.code, []).append(key)
        if kind.code in UNKNOWN_TO_NUMPY:
            self.unreadable = self.unreadable or f"<{kind.code}"
        if kind.element is None and not kind.fields:
            return array_call(kind, header.shape, Blob("buffer", 0, nbytes))
        if len(self.storage_ids) >= self._limits.storages:
            raise ContainerError(f"the file has more than {self._limits.storages:,} arrays")
        own = ("uint8", 1, nbytes, True)
        if kind.element is not None:
            own = (kind.element.dtype, kind.element.itemsize, nbytes // kind.element.itemsize, False)
        self.storage_ids[key] = StorageId(key, own[0], own[1], NO_DEVICE, own[2], untyped=own[3], view=None)
        self._place(key, kind, place._replace(nbytes=nbytes) if nbytes <= place.nbytes else None)
        if kind.element is None:
            return _fields(
                key, kind, header.shape, 0, steps_of(header.shape, kind.nbytes, is_fortran=header.is_fortran)
            )
        stride = contiguous_stride(header.shape, is_fortran=header.is_fortran) if not kind.shape else None
        return StoredTensor(key, kind.element.dtype, (*header.shape, *kind.shape), stride)

    def notes(self) -> Iterator[Note]:
        """Yield what elements without a type probably are."""
        for code, names in self.untyped.items():
            named = "the array" if names == [_KEY] else listed(names)
            yield Note(NoteKind.UNTYPED, (named, VOIDS[code]))

    def refusal(self) -> str:
        """Return what NumPy says to a type of ml_dtypes that it wrote; empty where there is none."""
        return (
            f"ValueError: descr is not a valid dtype descriptor: {self.unreadable!r}"
            if self.unreadable
            else ""
        )

    def _place(self, key: str, kind: ArrayType, place: Extent | None) -> None:
        if place is None:
            return
        swap = 1 if kind.element is None else kind.element.swap
        is_plain = place.method == STORED and swap == 1
        self.stored[key] = StoredBytes(0, place.offset if is_plain else None, place.nbytes)
        if is_plain:
            return
        self.is_swapped = self.is_swapped or swap > 1
        if place.method == STORED:
            place = place._replace(method=coded(PLAIN, swap), stored_nbytes=place.nbytes)
        self.extents[key] = place._replace(swap=swap)


def _fields(key: str, kind: ArrayType, shape: tuple[int, ...], start: int, steps: tuple[int, ...]) -> Dict:
    """Return the fields of an array by name: each is a view of the whole, where it lies as torch wants it."""
    pairs: list[tuple[Value, Value]] = []
    for field in kind.fields:
        inner, offset = field.type, start + field.offset
        if inner.fields and not inner.shape:
            pairs.append((field.name, _fields(key, inner, shape, offset, steps)))
            continue
        element = inner.element
        size = 1 if element is None else element.itemsize
        if element is None or element.swap > 1 or any(place % size for place in (offset, *steps)):
            pairs.append((field.name, array_call(inner, shape, Blob("buffer", 0, 0))))
            continue
        stride = (*(step // size for step in steps), *steps_of(inner.shape))
        sizes = (*shape, *inner.shape)
        pairs.append((field.name, StoredTensor(key, element.dtype, sizes, stride, offset // size)))
    return Dict(pairs)


# --- the file -----------------------------------------------------------------------------------------------


OBJECTS = "pickle"
_KEY = "0"
_NO_PICKLES = "ValueError: Object arrays cannot be loaded when allow_pickle=False"


def open_npy(source: Source, limits: Limits, progress: Progress) -> tuple[Container, Arrays]:
    """Take a file of one array apart, and return where its bytes are."""
    limits = limits.started(progress.advance)
    try:
        header = read_header(source, limits.counted(progress.advance).look)
    except ContainerError as error:
        source.programs.miss("what stands behind its header", error.what)
        raise
    arrays = Arrays(limits)
    left = max(source.nbytes - header.start, 0)
    if header.type.has_objects:
        root = read_objects(source, header.start, OBJECTS, limits, progress)
    else:
        root = arrays.add(_KEY, header, Extent(header.start, left, left, STORED, 0))
    container = Container(
        path=source.path,
        format="npy",
        file_nbytes=source.file_nbytes,
        root=root,
        programs=source.programs.all(),
        storage_ids=arrays.storage_ids,
        stored=arrays.stored,
        versions=(("npy", header.version),),
        notes=tuple(_notes(header, left, arrays)),
        refusal=arrays.refusal() or _refusal(header, left),
    )
    return container, arrays


def read_objects(source: Source, start: int, name: str, limits: Limits, progress: Progress) -> Value:
    """Read the pickle that an array of objects is; nothing in it is run."""
    machine = growing_machine(
        lambda nbytes: source.read_upto(start, nbytes), name=name, limits=limits, progress=progress
    )
    return source.programs.run(machine, name, "object").root


def _notes(header: Header, left: int, arrays: Arrays) -> list[Note]:
    notes = [*losses(arrays.storage_ids, arrays.stored), *arrays.notes()]
    if arrays.is_swapped:
        notes.append(Note(NoteKind.SWAPPED))
    if header.type.has_objects:
        return [*notes, Note(NoteKind.OBJECT_ARRAYS, ("Its elements are objects",))]
    more = left - header.type.nbytes * prod(header.shape)
    return [*notes, Note(NoteKind.BEHIND_ARRAY, (f"{more:,}",))] if more > 0 else notes


def _refusal(header: Header, left: int) -> str:
    if header.is_long:
        return "ValueError: Header info length is large and may not be safe to load securely."
    if header.type.has_objects:
        return _NO_PICKLES
    nbytes = header.type.nbytes
    if nbytes * prod(header.shape) <= left or not nbytes:
        return ""
    expected = f"{header.shape} = {prod(header.shape)}"
    return (
        f"ValueError: Failed to read all data for array. Expected {expected} elements, could only read "
        f"{left // nbytes} elements. (file seems not fully written?)"
    )


NO_DEVICES = Cannot(
    ("remap", "in-place"),
    "the arrays of NumPy have no devices, so there are none to change",
    "torch.from_numpy makes a tensor on the CPU; for torch.load write one file: export -o model.pth",
)
ON_THE_CPU = "torch.from_numpy(array).to(device) decides"


class Npy(Format):
    """What numpy.save writes."""

    name = "npy"
    what = "a NumPy array"
    loader = "numpy.load"
    runs_with = "allow_pickle=True"
    unchecked = True
    device_from = ON_THE_CPU
    copied_as = "objects"
    cannot = (NO_DEVICES,)

    @override
    def matches(self, source: Source) -> bool:
        return source.read_upto(0, len(MAGIC)) == MAGIC

    @override
    def read(self, source: Source, limits: Limits, progress: Progress) -> Container:
        return open_npy(source, limits, progress)[0]

    @override
    def finder(self, source: Source) -> Find:
        """Return what finds the bytes of an array whose numbers stand the other way round."""
        return open_npy(source, DEFAULT_LIMITS, Progress())[1].extents.get
