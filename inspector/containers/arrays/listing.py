"""NumPy's arrays as tensors: what torch could hold is one, where its bytes lie; the rest is told.

No array has a device: `torch.from_numpy` makes a tensor on the CPU.
"""

from __future__ import annotations

from math import prod

from inspector.containers.arrays.dtypes import contiguous_stride
from inspector.containers.arrays.npy_header import Header
from inspector.containers.arrays.npy_types import ArrayType, array_call
from inspector.containers.container import Extent, StoredBytes
from inspector.containers.persistent_ids import NO_DEVICE, StorageId
from inspector.containers.raw.codings import PLAIN, coded
from inspector.containers.zip.directory import STORED
from inspector.errors import ContainerError
from inspector.limits import Limits
from inspector.pickles.values import Blob, Dict, StoredTensor, Value


class Arrays:
    """Lists arrays, and where their bytes are.

    Attributes:
        storage_ids: As `Container` has it.
        stored: The same.
        extents: The bytes that do not stand in the file as they are meant, by key.
        is_swapped: Whether numbers of any stand the other way round, which torch does not take.
    """

    def __init__(self, limits: Limits) -> None:
        """Prepare to list arrays within these limits."""
        self.storage_ids: dict[str, StorageId] = {}
        self.stored: dict[str, StoredBytes] = {}
        self.extents: dict[str, Extent] = {}
        self.is_swapped = False
        self._limits = limits

    def add(self, key: str, header: Header, place: Extent) -> Value:
        """Return an array as a value.

        Args:
            key: The key of its storage.
            header: What it is.
            place: The bytes behind its header: as many as there are.
        """
        kind = header.type
        nbytes = kind.nbytes * prod(header.shape)
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
            return _fields(key, kind, header.shape, 0, _steps(header, kind.nbytes))
        stride = contiguous_stride(header.shape, is_fortran=header.is_fortran) if not kind.shape else None
        return StoredTensor(key, kind.element.dtype, (*header.shape, *kind.shape), stride)

    def _place(self, key: str, kind: ArrayType, place: Extent | None) -> None:
        """Remember where the bytes of an array are; nothing of one that is not whole."""
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


def _steps(header: Header, nbytes: int) -> tuple[int, ...]:
    """Return the steps of an array in bytes."""
    steps: list[int] = []
    step = nbytes
    for size in header.shape if header.is_fortran else header.shape[::-1]:
        steps.append(step)
        step *= max(size, 1)
    return tuple(steps if header.is_fortran else steps[::-1])


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
        stride = (*(step // size for step in steps), *_contiguous(inner.shape))
        sizes = (*shape, *inner.shape)
        pairs.append((field.name, StoredTensor(key, element.dtype, sizes, stride, offset // size)))
    return Dict(pairs)


def _contiguous(shape: tuple[int, ...]) -> tuple[int, ...]:
    steps, step = [], 1
    for size in reversed(shape):
        steps.append(step)
        step *= max(size, 1)
    return tuple(reversed(steps))
