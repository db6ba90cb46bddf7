"""torch's element types: their size, and which of them hold whole numbers.

The names are those of `torch.dtype` without `torch.`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import product
from math import prod
from typing import Literal, NamedTuple

from inspector.containers.element_types import BLOCKS, ITEMSIZES
from inspector.progress import Progress

__all__ = ["ITEMSIZES", "PLAIN_ITEMSIZES", "is_whole", "known_dtype", "stored_nbytes"]

# Quantized types that hold several elements in one byte; the item size that torch states is still 1.
_ELEMENTS_PER_BYTE = {"quint4x2": 2, "quint2x4": 4}
# Types that other formats have and torch has not.
_FOREIGN_BITS = {"float6_e2m3": 6, "float6_e3m2": 6}

PLAIN_ITEMSIZES = {name: size for name, size in ITEMSIZES.items() if name not in _ELEMENTS_PER_BYTE}
"""The sizes of torch's types that hold one element each."""

_ALIASES = {
    "bit": "uint1",
    "float": "float32",
    "double": "float64",
    "half": "float16",
    "cfloat": "complex64",
    "cdouble": "complex128",
    "chalf": "complex32",
    "long": "int64",
    "int": "int32",
    "short": "int16",
}
_WHOLE = frozenset(name for name in ITEMSIZES if name.startswith(("int", "uint", "bool", "bits")))


def known_dtype(name: str) -> str | None:
    """Return torch's own name of a dtype (`float` is `float32`), or None if there is no such dtype."""
    name = _ALIASES.get(name, name)
    return name if name in ITEMSIZES else None


def is_whole(dtype: str) -> bool:
    """Return whether elements are integers, booleans or bits: buffers, as a rule, and never parameters."""
    return dtype in _WHOLE


def stored_nbytes(dtype: str, numel: int) -> int:
    """Return the bytes that so many elements take in a storage; packed types share them."""
    if dtype in BLOCKS:
        block = BLOCKS[dtype]
        return -(-numel // block.numel) * block.nbytes
    if dtype in _FOREIGN_BITS:
        return -(-numel * _FOREIGN_BITS[dtype] // 8)
    packed = _ELEMENTS_PER_BYTE.get(dtype, 1)
    return -(-numel // packed) * ITEMSIZES.get(dtype, 1)


def element_nbytes(dtype: str, numel: int) -> int:
    """Return elements times item size as torch states it; of types that torch has not, what they take."""
    is_foreign = dtype in _FOREIGN_BITS or dtype in BLOCKS
    return stored_nbytes(dtype, numel) if is_foreign else numel * ITEMSIZES[dtype]


# A strided view written row by row, in bounded memory: what `tensor.contiguous()` gives, from file to file.
#
# Elements are gathered a block at a time. A block is read in runs that are contiguous in the source, put in
# order by strided slices of memory, and written in runs that are contiguous in the target, so that
# transposing a matrix larger than memory still reads and writes kilobytes at a time.

BLOCK_NBYTES = 4 << 20
_GAP_NBYTES = 1 << 12  # bytes between two elements up to which reading the gap costs less than another read
_FORMATS: dict[int, Literal["B", "H", "I", "Q"]] = {1: "B", 2: "H", 4: "I", 8: "Q"}

Read = Callable[[int, int], bytes]
"""`read(offset, nbytes)` returns bytes of the storage."""
Write = Callable[[int, bytes | memoryview], object]
"""`write(offset, data)` puts bytes where the tensor's own begin with 0."""


class Axis(NamedTuple):
    """One dimension.

    Attributes:
        source: How far a step goes in the source, in elements.
    """

    size: int
    source: int
    target: int


def is_contiguous(shape: Sequence[int], stride: Sequence[int]) -> bool:
    """Return whether elements stand in the order of rows, without gaps."""
    return all(axis.source == axis.target for axis in axes_of(shape, stride))


def axes_of(shape: Sequence[int], stride: Sequence[int]) -> list[Axis]:
    """Return the dimensions that matter: those of one step vanish, those that go on evenly become one."""
    axes: list[Axis] = []
    step = 1
    for size, source in zip(reversed(shape), reversed(stride), strict=True):
        if size == 1:
            continue
        last = axes[-1] if axes else None
        if last is not None and source == last.source * last.size:
            axes[-1] = Axis(last.size * size, last.source, last.target)
        else:
            axes.append(Axis(size, source, step))
        step *= size
    return axes[::-1]


def copy_strided(
    view: tuple[Sequence[int], Sequence[int], int],
    itemsize: int,
    read: Read,
    write: Write,
    progress: Progress,
) -> None:
    """Write a view's elements in the order of rows.

    Args:
        view: Its shape, its strides, and its first element within the storage.
        progress: Told of bytes written, asked for cancellation.
    """
    shape, stride, first = view
    if not prod(shape):
        return
    unit = next(size for size in (8, 4, 2, 1) if itemsize % size == 0)
    units = itemsize // unit
    if units > 1:  # complex128: memory knows no element of 16 bytes
        shape, stride, first = (*shape, units), (*(step * units for step in stride), 1), first * units
    axes = axes_of(shape, stride) or [Axis(1, 1, 1)]
    for block, source, target in _blocks(axes, BLOCK_NBYTES // (unit * _gap(axes, unit))):
        data = _gather(block, unit, (first + source) * unit, read)
        for start, pos, count in _runs([axis.size for axis in block], [axis.target for axis in block]):
            write((target + start) * unit, data[pos * unit : (pos + count) * unit])
        progress.advance(prod(axis.size for axis in block) * unit)


def _blocks(axes: list[Axis], most: int) -> Iterator[tuple[list[Axis], int, int]]:
    """Divide a view into blocks: their axes in the target's order, and where each begins on both sides."""
    sizes = _block_sizes(axes, most)
    counts = [range(0, axis.size, size) for axis, size in zip(axes, sizes, strict=True)]
    for corner in product(*counts):
        block = [
            axis._replace(size=min(size, axis.size - start))
            for axis, size, start in zip(axes, sizes, corner, strict=True)
        ]
        source = sum(start * axis.source for axis, start in zip(axes, corner, strict=True))
        target = sum(start * axis.target for axis, start in zip(axes, corner, strict=True))
        yield block, source, target


def _block_sizes(axes: list[Axis], most: int) -> list[int]:
    """Choose how large blocks are: half of the room's digits for runs in the target, then the source's."""
    sizes = [1] * len(axes)
    by_target = sorted(range(len(axes)), key=lambda number: axes[number].target)
    by_source = sorted(range(len(axes)), key=lambda number: (not axes[number].source, axes[number].source))
    for room, order in ((int(most**0.5), by_target), (most, by_source)):
        for number in order:
            others = prod(sizes) // sizes[number]
            sizes[number] = max(sizes[number], min(axes[number].size, room // others))
            if sizes[number] < axes[number].size:
                break
    return sizes


def _gap(axes: Sequence[Axis], unit: int) -> int:
    inner = min((axis.source for axis in axes if axis.source), default=1)
    return inner if inner * unit <= _GAP_NBYTES else 1


def _gather(block: list[Axis], unit: int, start: int, read: Read) -> memoryview:
    data, strides = _read_block(block, unit, start, read)
    out = memoryview(bytearray(prod(axis.size for axis in block) * unit)).cast(_FORMATS[unit])
    steps = _dense([axis.size for axis in block])
    longest = max(range(len(block)), key=lambda number: block[number].size)
    count, from_step, to_step = block[longest].size, strides[longest], steps[longest]
    others = [number for number in range(len(block)) if number != longest]
    for place in product(*(range(block[number].size) for number in others)):
        at = sum(index * strides[number] for index, number in zip(place, others, strict=True))
        to = sum(index * steps[number] for index, number in zip(place, others, strict=True))
        end = to + (count - 1) * to_step + 1
        if from_step:
            out[to:end:to_step] = data[at : at + (count - 1) * from_step + 1 : from_step]
        else:
            out[to:end:to_step] = memoryview(bytes(data[at : at + 1]) * count).cast(_FORMATS[unit])
    return out.cast("B")


def _read_block(block: list[Axis], unit: int, start: int, read: Read) -> tuple[memoryview, list[int]]:
    """Read what a block views; give it, and how far a step along each axis goes in it."""
    order = [number for number in range(len(block)) if block[number].source] or [0]
    order.sort(key=lambda number: -block[number].source)
    sizes = [block[number].size if block[number].source else 1 for number in order]
    steps = [block[number].source for number in order]
    gap = _gap(block, unit)
    if gap > 1:  # read along
        sizes[-1], steps[-1] = (sizes[-1] - 1) * gap + 1, 1
    data = bytearray(prod(sizes) * unit)
    for offset, pos, count in _runs(sizes, steps):
        data[pos * unit : (pos + count) * unit] = read(start + offset * unit, count * unit)
    strides = [0] * len(block)
    for number, step in zip(order, _dense(sizes), strict=True):
        strides[number] = step if block[number].source else 0
    strides[order[-1]] *= gap
    return memoryview(data).cast(_FORMATS[unit]), strides


def _dense(sizes: Sequence[int]) -> list[int]:
    steps, step = [0] * len(sizes), 1
    for number in reversed(range(len(sizes))):
        steps[number] = step
        step *= sizes[number]
    return steps


def _runs(sizes: Sequence[int], steps: Sequence[int]) -> Iterator[tuple[int, int, int]]:
    """Return the runs without gaps of a block: where each begins outside and within, and how long it is."""
    count, depth = 1, len(sizes)
    while depth and (steps[depth - 1] == count or sizes[depth - 1] == 1):
        depth -= 1
        count *= sizes[depth]
    for number, place in enumerate(product(*map(range, sizes[:depth]))):
        yield sum(index * step for index, step in zip(place, steps, strict=False)), number * count, count
