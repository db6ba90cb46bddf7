"""Flat vectors: all parameters one behind the other, divided among the ranks, and put together again.

ZeRO 1 and 2 cut one long vector of a group's parameters into a part for each rank. ZeRO 3 cuts each of the
parameters, and the vector of a rank consists of its parts. The rules are those of DeepSpeed's
`zero_to_fp32.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod
from typing import Any, NamedTuple

from inspector.containers.container import Container
from inspector.containers.gathered.chunks import Chunk
from inspector.containers.persistent_ids import StorageId, parse_storage_id
from inspector.containers.rebuilds import FROM_TYPE, PARAMETERS, VIEWS
from inspector.pickles.values import Call, Global, PersistentId, Value

_LEAST_ARGUMENTS = 4
_MOST_WRAPPED = 4


class Flat(NamedTuple):
    """A vector within a storage of a file.

    Attributes:
        storage: The storage.
        part: The number of its file.
        offset: Where its first byte is in the file.
        numel: How many elements it has.
        span: How many it stands for, where that is another number: those at its end may be filling.
    """

    storage: StorageId
    part: int
    offset: int
    numel: int
    span: int = -1


def flat_of(value: Value, container: Container, part: int) -> Flat | None:
    """Read a tensor as a vector whose bytes are in the file; None where it is anything else."""
    value, args = _unwrapped(value)
    func = value.func if isinstance(value, Call) else None
    is_view = isinstance(func, Global) and func.name in VIEWS and len(args) >= _LEAST_ARGUMENTS
    storage = parse_storage_id(args[0]) if is_view and isinstance(args[0], PersistentId) else None
    if storage is None or not isinstance(args[2], tuple) or not isinstance(args[3], tuple):
        return None
    first, sizes, steps = args[1:4]
    numbers = (first, *sizes, *steps)
    if not all(type(one) is int and 0 <= one < 1 << 62 for one in numbers) or not _is_dense(sizes, steps):
        return None
    stored, numel = container.stored.get(storage.key), prod(sizes)
    if stored is None or stored.offset is None or (first + numel) * storage.itemsize > stored.nbytes:
        return None
    return Flat(storage, part, stored.offset + first * storage.itemsize, numel)


def _unwrapped(value: Value) -> tuple[Value, tuple[Any, ...]]:
    """Return what makes the data of a tensor, without what makes a parameter or a subclass of it."""
    for _ in range(_MOST_WRAPPED):
        args: tuple[Any, ...] = (
            value.args if isinstance(value, Call) and isinstance(value.args, tuple) else ()
        )
        func = value.func if isinstance(value, Call) else None
        if not isinstance(func, Global) or not args:
            break
        if func.name in FROM_TYPE and len(args) > 2:
            value = Call(args[0], args[2], "reduce")
        elif func.name in PARAMETERS:
            value = args[0]
        else:
            return value, args
    return value, ()


def _is_dense(sizes: tuple[int, ...], steps: tuple[int, ...]) -> bool:
    return len(sizes) == len(steps) and all(
        size == 1 or step == prod(sizes[number + 1 :])
        for number, (size, step) in enumerate(zip(sizes, steps, strict=True))
    )


def cut(flats: Sequence[Flat], start: int, numel: int, first: int = 0) -> Iterator[Chunk]:
    """Yield where some elements are of vectors that stand one behind the other.

    Args:
        flats: The vectors.
        start: The first element that is wanted.
        numel: How many are.
        first: Which element of the whole it is.
    """
    reached = 0
    for flat in flats:
        span = flat.numel if flat.span < 0 else flat.span
        low, high = max(start, reached), min(start + numel, reached + min(flat.numel, span))
        if low < high:
            itemsize = flat.storage.itemsize
            offset = flat.offset + (low - reached) * itemsize
            yield Chunk((first + low - start,), (high - low,), flat.part, offset, (high - low) * itemsize)
        reached += span


def cut_evenly(ranks: Sequence[Sequence[Flat]], start: int, numel: int) -> Iterator[Chunk]:
    """Yield where a parameter is of which each rank has the same share, the last one with a filling."""
    share = -(-numel // max(len(ranks), 1))
    for rank, flats in enumerate(ranks):
        first = rank * share
        yield from cut(flats, start, max(min(share, numel - first), 0), first)
