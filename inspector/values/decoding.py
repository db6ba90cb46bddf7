"""Bytes of tensors as NumPy arrays, for every element type of torch, and without torch.

Where NumPy has the type, its own is used. Types of a byte or less are looked up in tables, which are made
here from what the types are defined as: the OCP formats of 8 and 4 bits (https://www.opencompute.org, "OFP8"
and "Microscaling Formats") and their `fnuz` variants (https://arxiv.org/abs/2206.02915).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt

from inspector.containers.element_types import BLOCKS
from inspector.errors import ValuesError

Array = npt.NDArray[Any]
"""Elements of whatever type a file has."""

NATIVE: dict[str, str] = {
    "float64": "<f8",
    "float32": "<f4",
    "float16": "<f2",
    "int64": "<i8",
    "int32": "<i4",
    "int16": "<i2",
    "int8": "|i1",
    "uint8": "|u1",
    "uint16": "<u2",
    "uint32": "<u4",
    "uint64": "<u8",
    "complex128": "<c16",
    "complex64": "<c8",
    "qint8": "|i1",
    "quint8": "|u1",
    "qint32": "<i4",
    "bits8": "|u1",
    "bits16": "<u2",
    "bits1x8": "|u1",
    "bits2x4": "|u1",
    "bits4x2": "|u1",
}
"""torch's types that NumPy has, and codes that it has the type of."""
PACKED = {"quint4x2": 2, "quint2x4": 4, "float4_e2m1fn_x2": 2}
"""How many values a byte holds, the first in the lowest bits."""
_FLOAT8: dict[str, tuple[int, int, bool, bool]] = {  # exponent bits, bias, has infinities, NaN is minus zero
    "float8_e4m3fn": (4, 7, False, False),
    "float8_e4m3fnuz": (4, 8, False, True),
    "float8_e5m2": (5, 15, True, False),
    "float8_e5m2fnuz": (5, 16, False, True),
}
_FLOAT4 = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)


def decode(data: bytes | memoryview, dtype: str, *, swapped: bool = False) -> Array:
    """Return the values of some elements, exactly.

    Args:
        dtype: torch's name of their type. bfloat16 and what is smaller becomes float32, complex32 becomes
            complex64; quantized elements and bits stay codes.
        swapped: Whether the most significant byte of each number stands first.
    """
    return value_of_codes(codes_of(data, dtype, swapped=swapped), dtype)


def is_decodable(dtype: str) -> bool:
    """Return whether the values of a type are known."""
    return dtype in NATIVE or dtype in PACKED or dtype in _OTHERS or dtype in _FLOAT8


def codes_of(data: bytes | memoryview, dtype: str, *, swapped: bool = False) -> Array:
    """Return elements as what NumPy has of their size: values where it has the type, else their bits."""
    if dtype in PACKED:
        return _unpacked(np.frombuffer(data, np.uint8), PACKED[dtype])
    code = NATIVE.get(dtype) or _OTHERS.get(dtype) or ("|u1" if dtype in _FLOAT8 else "")
    if not code:
        raise ValueError(f"the values of {dtype} elements are not known")
    found = np.frombuffer(data, code)
    return native_order(found, dtype) if swapped else found


def native_order(codes: Array, dtype: str) -> Array:
    """Return codes whose bytes came with the most significant one first."""
    numbers = codes.view(np.uint16) if dtype == "complex32" else codes
    return numbers.byteswap().view(codes.dtype)


def value_of_codes(codes: Array, dtype: str) -> Array:
    """Return the values of what `codes_of` returned."""
    other = _DECODERS.get(dtype)
    if other is not None:
        return other(codes)
    return codes if dtype in NATIVE or dtype.startswith("quint") else table_of(dtype)[codes]


@cache
def table_of(dtype: str) -> npt.NDArray[np.float32]:
    """Return the value of each code of a type of 8 or 4 bits."""
    codes = np.arange(256)
    if dtype == "float8_e8m0fnu":
        values = np.ldexp(1.0, codes - 127)
        values[255] = np.nan
    elif dtype == "float4_e2m1fn_x2":
        values = np.array([*_FLOAT4, *(-value for value in _FLOAT4)])
    else:
        values = _float8(codes, _FLOAT8[dtype])
    return values.astype(np.float32)


def _float8(codes: npt.NDArray[np.int_], row: tuple[int, int, bool, bool]) -> npt.NDArray[np.float64]:
    exponent_bits, bias, has_infinities, is_unsigned_zero = row
    mantissa_bits = 7 - exponent_bits
    mantissa = codes & ((1 << mantissa_bits) - 1)
    exponent = (codes >> mantissa_bits) & ((1 << exponent_bits) - 1)
    normal = exponent > 0
    fraction = mantissa + normal * (1 << mantissa_bits)
    values: npt.NDArray[np.float64] = np.ldexp(
        fraction.astype(np.float64), np.maximum(exponent, 1) - bias - mantissa_bits
    )
    if has_infinities:
        is_last = exponent == (1 << exponent_bits) - 1
        values[is_last] = np.where(mantissa[is_last] == 0, np.inf, np.nan)
    elif not is_unsigned_zero:
        values[(codes & 127) == 127] = np.nan
    values[codes >= 128] *= -1
    if is_unsigned_zero:
        values[128] = np.nan
    return values


def _unpacked(packed: npt.NDArray[np.uint8], count: int) -> Array:
    bits = 8 // count
    shifts = np.arange(0, 8, bits, dtype=np.uint8)
    return ((packed[:, None] >> shifts) & ((1 << bits) - 1)).reshape(-1)


def _bfloat16(codes: Array) -> Array:
    wide = codes.astype(np.uint32)
    wide <<= 16
    return wide.view(np.float32)


def _complex32(codes: Array) -> Array:
    halves = np.ascontiguousarray(codes).view(np.float16).astype(np.float32)
    return halves.view(np.complex64).reshape(codes.shape)


def _bool(codes: Array) -> Array:
    found: Array = codes != 0
    return found


_OTHERS = {"bfloat16": "<u2", "complex32": "<u4", "bool": "|u1", "float8_e8m0fnu": "|u1"}
_DECODERS: dict[str, Callable[[Array], Array]] = {
    "bfloat16": _bfloat16,
    "complex32": _complex32,
    "bool": _bool,
}


# --- blocks of GGUF, as the numbers that the package `gguf` makes of them -----------------------------------

_FLOAT_NBYTES = 4


def dequantized(read: Callable[[int, int], bytes], dtype: str, nbytes: int) -> Callable[[int, int], bytes]:
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
        per_block = block.numel * _FLOAT_NBYTES
        first, end = offset // per_block, -(-(offset + wanted) // per_block)
        if end * block.nbytes > nbytes:
            raise ValuesError(f"its elements run past the {nbytes:,} bytes of its storage")
        raw = read(first * block.nbytes, (end - first) * block.nbytes)
        try:
            with np.errstate(all="ignore"):
                made = dequantize(np.frombuffer(raw, np.uint8).reshape(end - first, block.nbytes), kind)
        except NotImplementedError:  # what gguf raises for types that it only names
            raise ValuesError(f"the package gguf does not dequantize {dtype}") from None
        data = np.ascontiguousarray(made, "<f4").tobytes()
        start = offset - first * per_block
        return data[start : start + wanted]

    return numbers
