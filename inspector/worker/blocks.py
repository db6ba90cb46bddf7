"""Blocks of GGUF as the numbers that the package `gguf` makes of them, where it is installed."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

import numpy as np

from inspector.containers.element_types import BLOCKS
from inspector.errors import ValuesError

Read = Callable[[int, int], bytes]
_ITEMSIZE = 4  # of what `dequantize` makes: float32


def dequantized(read: Read, dtype: str, nbytes: int) -> Read:
    """Return what reads the numbers of a storage of blocks, which has so many bytes."""
    block = BLOCKS[dtype]
    try:
        gguf = import_module("gguf")
        kind = gguf.GGMLQuantizationType[dtype.upper()]
        dequantize = gguf.dequantize
    except (ImportError, KeyError, AttributeError):
        raise ValuesError(
            f"the values of {dtype} elements are known to the package gguf, which is not installed for the "
            "Python that reads values, or is too old"
        ) from None

    def numbers(offset: int, wanted: int) -> bytes:
        per_block = block.numel * _ITEMSIZE
        first, end = offset // per_block, -(-(offset + wanted) // per_block)
        if end * block.nbytes > nbytes:
            raise ValuesError(f"its elements run past the {nbytes:,} bytes of its storage")
        raw = read(first * block.nbytes, (end - first) * block.nbytes)
        try:
            with np.errstate(all="ignore"):
                made = dequantize(np.frombuffer(raw, np.uint8).reshape(end - first, block.nbytes), kind)
        except NotImplementedError:
            raise ValuesError(f"the package gguf does not dequantize {dtype}") from None
        data = np.ascontiguousarray(made, "<f4").tobytes()
        start = offset - first * per_block
        return data[start : start + wanted]

    return numbers
