"""Elements that are stored in another order than by rows, put in the order of rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from math import prod
from typing import Literal

from inspector.errors import DamagedError

_FORMATS: dict[int, Literal["B", "H", "I", "Q"]] = {1: "B", 2: "H", 4: "I", 8: "Q"}
_LARGEST = 8


def in_rows(
    data: bytes, sizes: Sequence[int], strides: Sequence[int], itemsize: int, look: Callable[[int], object]
) -> bytes:
    """Return the elements of a dense tensor in the order of rows.

    One dimension after the other is moved to its place, along the longest of the others at once: so no order
    takes more than some hundred thousand steps for each dimension, whatever the number of elements.

    Args:
        data: Its elements as they are stored.
        sizes: Its sizes.
        strides: Its steps by dimension, in elements.
        itemsize: Bytes of an element.
        look: Counts the steps.
    """
    if itemsize > _LARGEST:
        half = itemsize // 2
        return in_rows(data, (*sizes, 2), (*(2 * step for step in strides), 1), half, look)
    wanted = [number for number, size in enumerate(sizes) if size > 1]
    stored = sorted(wanted, key=lambda number: -strides[number])
    for place, number in enumerate(stored):
        if strides[number] != prod(sizes[behind] for behind in stored[place + 1 :]):
            raise DamagedError("a chunk is stored with elements that overlap or lie apart")
    source = memoryview(data).cast(_FORMATS[itemsize])[: prod(sizes)]
    for place, number in enumerate(wanted):
        at = stored.index(number)
        if at == place:
            continue
        counts = [
            prod(sizes[one] for one in part)
            for part in (stored[:place], stored[place:at], stored[at : at + 1], stored[at + 1 :])
        ]
        source = _moved(source, counts, look)
        stored.insert(place, stored.pop(at))
    return source.tobytes()


def _moved(source: memoryview[int], counts: Sequence[int], look: Callable[[int], object]) -> memoryview[int]:
    """Return elements of (outer, before, moved, inner) dimensions as (outer, moved, before, inner)."""
    _, before, moved, inner = counts
    out = memoryview(bytearray(source.nbytes)).cast(_FORMATS[source.itemsize])
    from_steps = before * moved * inner, moved * inner, inner, 1
    to_steps = before * moved * inner, inner, before * inner, 1
    long = max(range(4), key=counts.__getitem__)
    others = [axis for axis in range(4) if axis != long]
    span = counts[long] - 1
    for place in product(*(range(counts[axis]) for axis in others)):
        look(1)
        start = sum(index * from_steps[axis] for index, axis in zip(place, others, strict=True))
        to = sum(index * to_steps[axis] for index, axis in zip(place, others, strict=True))
        out[to : to + span * to_steps[long] + 1 : to_steps[long]] = source[
            start : start + span * from_steps[long] + 1 : from_steps[long]
        ]
    return out
