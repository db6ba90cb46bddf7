"""torch's element types: their size, and which of them hold whole numbers.

The names are those of `torch.dtype` without `torch.`; sizes are those of `torch.dtype.itemsize`. The
sub-byte integers exist only as the type of wrapper tensors and count one byte for each element there.
"""

from __future__ import annotations

ITEMSIZES: dict[str, int] = {
    "float64": 8,
    "float32": 4,
    "float16": 2,
    "bfloat16": 2,
    "int64": 8,
    "int32": 4,
    "int16": 2,
    "int8": 1,
    "uint8": 1,
    "uint16": 2,
    "uint32": 4,
    "uint64": 8,
    "bool": 1,
    "complex128": 16,
    "complex64": 8,
    "complex32": 4,
    "qint8": 1,
    "qint32": 4,
    "quint8": 1,
    "quint4x2": 1,
    "quint2x4": 1,
    "float8_e5m2": 1,
    "float8_e4m3fn": 1,
    "float8_e5m2fnuz": 1,
    "float8_e4m3fnuz": 1,
    "float8_e8m0fnu": 1,
    "float4_e2m1fn_x2": 1,
    "bits8": 1,
    "bits16": 2,
    "bits1x8": 1,
    "bits2x4": 1,
    "bits4x2": 1,
    **{f"{sign}int{bits}": 1 for bits in range(1, 8) for sign in ("", "u")},
}

# Quantized types that hold several elements in one byte; the item size that torch states is still 1.
_ELEMENTS_PER_BYTE = {"quint4x2": 2, "quint2x4": 4}

PLAIN_ITEMSIZES = {name: size for name, size in ITEMSIZES.items() if name not in _ELEMENTS_PER_BYTE}
"""The sizes of all types but those."""

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
    packed = _ELEMENTS_PER_BYTE.get(dtype, 1)
    return -(-numel // packed) * ITEMSIZES.get(dtype, 1)
