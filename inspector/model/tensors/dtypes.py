"""torch's element types: their size, and which of them hold whole numbers.

The names are those of `torch.dtype` without `torch.`.
"""

from __future__ import annotations

from inspector.containers.element_types import BLOCKS, ITEMSIZES

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
