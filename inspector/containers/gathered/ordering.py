"""Elements that are stored in another order than by rows, put in the order of rows."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import prod
from typing import Literal

_FORMATS: dict[int, Literal["B", "H", "I", "Q"]] = {1: "B", 2: "H", 4: "I", 8: "Q"}
_LARGEST = 8


def in_rows(data: bytes, sizes: Sequence[int], strides: Sequence[int], itemsize: int) -> bytes:
    """Return the elements of a dense tensor in the order of rows.

    Args:
        data: Its elements as they are stored; it must hold all that the strides lead to.
        sizes: Its sizes.
        strides: Its steps by dimension, in elements.
        itemsize: Bytes of an element.
    """
    if itemsize > _LARGEST:
        half = itemsize // 2
        return in_rows(data, (*sizes, 2), (*(2 * step for step in strides), 1), half)
    source = memoryview(data).cast(_FORMATS[itemsize])
    out = memoryview(bytearray(prod(sizes) * itemsize)).cast(_FORMATS[itemsize])
    steps = [prod(sizes[number + 1 :]) for number in range(len(sizes))]
    longest = max(range(len(sizes)), key=sizes.__getitem__)
    others = [number for number in range(len(sizes)) if number != longest]
    count = sizes[longest]
    for place in product(*(range(sizes[number]) for number in others)):
        at = sum(index * strides[number] for index, number in zip(place, others, strict=True))
        to = sum(index * steps[number] for index, number in zip(place, others, strict=True))
        last = count - 1
        out[to : to + last * steps[longest] + 1 : steps[longest]] = source[
            at : at + last * strides[longest] + 1 : strides[longest]
        ]
    return bytes(out)
